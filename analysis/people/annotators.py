"""Checks of the labels of annotators and graders: selected labels, reversed scales, gross errors.

*Selected labels* (`selection_of`). Units (labelled items) with several labels show the agreement on
all units only if they were chosen without regard to labels. A third label where two differ, or a
second one on hard units, lowers people's agreement and makes a grader look as good as people. The
test correlates a unit's number of labels with people's and graders' labels, and with the distances
of people's labels from one another and from graders', within a person or a pair of people, so that
strict people are not taken for hard units. Each correlation gives a studentised sum of scores by
cluster; the largest sum is compared with those under random signs (Liu 1988; Westfall & Young
1993). One label against several is tested at the level .20, as a missed selection lets graders
pass; two labels against more at .05 (wrong verdicts: `python -m benchmarks.designs`).

*Reversed scales* (`add_annotator_rows`). Labels of an annotator whose covariance with the others'
mean label is clearly negative (normal bound, clusters as units) are reversed, and all annotators
are tested again. Three or more categories without order cannot be reversed: they are exchanged if
labels then clearly agree better. Annotators are reported only if their kappas confirm it.
`add_recoded_rows` compares a grader's labels with the humans' again, reversed, a category lower or
higher, or exchanged: a grader that recoding improves has a low kappa and is easily fixed.

*Gross errors* (`add_gross_error_rows`) are labels further from every person's label than people's
labels are from each other. One in a hundred hardly changes a kappa, which averages over units.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import NormalDist, median
from typing import Literal, NamedTuple

import numpy as np

from evenhand.analysis.agreement import pairs as pairwise
from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.bootstrap.bounds import ALPHA
from evenhand.analysis.bootstrap.intervals import Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, listed
from evenhand.analysis.people.comparison import with_and_among_humans
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.statistics import text_of
from evenhand.analysis.types import Array, Codes, DataFrame, Labels, Mask, Numbers
from evenhand.analysis.writer import About, RubricView, View
from evenhand.lazy import pd
from evenhand.texts import written

LEVEL_SINGLE, LEVEL_MORE = 0.20, 0.05  # of the tests of one label against several, two against more
NEARLY_ALL = 0.95  # share of the units from which an annotator counts as having labelled all
BY_LABELS = "agreement_by_labels"
ITEM_CLASSES = ("unanimous", "majority", "split")  # by how far annotators agree on an item
_DRAWS, _SIGNS_AT_ONCE = 999, 4_000_000  # draws of random signs; signs held in memory at a time

Distance = Callable[[Codes, Codes], Array]  # distances between the labels of two arrays of codes


class Selection(NamedTuple):
    """Result of the test for selected labels. By `rule`, agreement is computed from:

    - "all": all labels, as they were not selected.
    - "first": the first `min_labels` labels of each unit.
    - "nearly_all": the labels of people who labelled nearly all units, all but `excluded_people`.
    - "tie_break": all labels; third ones were given because two differ.
    - "unknown": all labels; units with `min_labels` labels may differ from those with more.
    """

    rule: Literal["all", "first", "nearly_all", "tie_break", "unknown"] = "all"
    min_labels: int = 0  # least number of labels of a unit
    excluded_people: tuple[str, ...] = ()
    counted: Mask | None = None  # (units, raters), the labels that count; None for all
    has_min_labels: Mask | None = None  # (units,), where the rule is "unknown"
    has_more_labels: Mask | None = None  # (units,), where the rule is "unknown"

    @property
    def note(self) -> str:
        """Sentence on the labels that count; "" for "all", and for "unknown": see the verdicts."""
        if self.rule in ("all", "unknown"):
            return ""
        names = listed(self.excluded_people or ("",))
        return written(f"selection.{self.rule}", number=self.min_labels, people=names)


def selection_of(
    labels: LabelMatrix,
    resamples: Resamples,
    rng: np.random.Generator,
    times: Array | None = None,
    *,
    is_random: bool = False,
) -> Selection:
    """Test whether labels were selected, and return which labels agreement is computed from.

    Of the `resamples` only the clusters and their frequencies are used. `times` (units, raters) are
    the times of labels in seconds, NaN where unknown. Nothing is tested where overlap `is_random`
    by declaration or design, where all units have equally many labels or are fewer than 30 (there
    is then no verdict), or where everybody labelled nearly all.
    """
    coded = _comparable_view(labels)
    people = [human for human in coded.members("human") if coded.labelled[:, human].any()]
    is_shared = coded.labelled_by_any(people) & coded.labelled_by_any(coded.members("model"))
    has_few_units = resamples.count(coded.clusters, is_shared)[0] < pairwise.MIN_SHARED_UNITS
    people_codes = np.where(is_shared[:, None], coded.codes[:, people], -1)  # (units, people)
    n_labels = (people_codes >= 0).sum(axis=1)
    frequency = resamples.frequency[coded.clusters]
    labels_by_person = frequency @ (people_codes >= 0)
    labelled_nearly_all = np.asarray(labels_by_person >= NEARLY_ALL * (frequency @ is_shared))
    is_uniform = len(np.unique(n_labels[is_shared])) < 2 or labelled_nearly_all.all()
    is_untested = is_random or has_few_units or is_uniform
    if is_untested or not _is_selected(coded, people_codes, resamples, rng):
        return Selection()

    # Use labels not selected by labels: the first ones, or complete annotators'; else all count.
    min_labels = int(n_labels[is_shared].min())
    counted = np.ones(labels.codes.shape, dtype=bool)
    if times is not None and min_labels >= 2:
        is_first = _first_labels(people_codes >= 0, times[:, people], min_labels)
        if is_first is not None:
            counted[:, people] = is_first
            return Selection("first", min_labels, counted=counted)
    if labelled_nearly_all.sum() >= 2:
        counted[:, people] = labelled_nearly_all
        names = tuple(labels.raters[human] for human in np.asarray(people)[~labelled_nearly_all])
        return Selection("nearly_all", excluded_people=names, counted=counted)

    agree = np.array([len(np.unique(row[row >= 0])) < 2 for row in people_codes[is_shared]])
    if (n_labels[is_shared] == np.where(agree, 2, 3)).all():  # a third label breaks each tie
        return Selection("tie_break")
    has_min, has_more = is_shared & (n_labels == min_labels), is_shared & (n_labels > min_labels)
    return Selection("unknown", min_labels, has_min_labels=has_min, has_more_labels=has_more)


def _comparable_view(labels: LabelMatrix) -> Coded:
    """Return the labels as categories, or as binary labels where no grader gave a category."""
    has_categories = (labels.codes[:, list(labels.models)] >= 0).any()
    return labels.on_categories() if has_categories or not labels.has_binary else labels.on_binary()


def _first_labels(is_labelled: Mask, times: Array, number: int) -> Mask | None:
    """Return each unit's first `number` labels (units, people); None if their order is unknown."""
    times = np.where(is_labelled, times, np.inf)
    if np.isnan(times).any():
        return None
    order = np.argsort(times, axis=1, kind="stable")
    sorted_times = np.take_along_axis(times, order, axis=1)
    last_time, next_time = sorted_times[:, number - 1], sorted_times[:, number]
    if (np.isfinite(next_time) & (last_time >= next_time)).any():
        return None  # two labels have the same time
    rank = np.argsort(order, axis=1, kind="stable")  # from 0, of each label of a unit
    return np.asarray(is_labelled & (rank < number))


def _is_selected(
    coded: Coded, people_codes: Labels, resamples: Resamples, rng: np.random.Generator
) -> bool:
    """Return True if one of the two tests shows that labels (units, people) were selected."""
    n_labels = (people_codes >= 0).sum(axis=1)
    one_or_more = np.minimum(n_labels, 2)  # 1, or 2 for any larger number
    test = partial(selection_p, coded, resamples=resamples, rng=rng)
    if 1 in n_labels and test(people_codes, one_or_more) <= LEVEL_SINGLE:
        return True
    has_several = n_labels >= 2
    two_or_more = np.where(has_several[:, None], people_codes, -1)
    return test(two_or_more, n_labels * has_several) <= LEVEL_MORE


def selection_p(
    coded: Coded, codes: Labels, n_labels: Codes, resamples: Resamples, rng: np.random.Generator
) -> float:
    """Return the p value of the hypothesis that a unit's number of labels does not depend on them.

    `codes` (units, people) are people's labels, `n_labels` (units,) their number: 2 may mean 2
    or more, 0 leaves a unit out. The p value is 1 if all are equal, or no score varies.
    """
    if len(np.unique(n_labels[n_labels > 0])) < 2:
        return 1.0
    units = _Units(n_labels.astype(float), resamples.frequency[coded.clusters].astype(float))
    scores = np.stack(list(_scores(coded, codes, units)), axis=1)  # (units, tests)
    # Sums over each distinct cluster, (distinct, tests), and the number of clusters equal to it.
    sums, n_clusters = resamples.distinct_clusters(resamples.sums_by_type(coded.clusters, scores))
    standard_error = np.sqrt(n_clusters @ sums**2)  # of the sum over all clusters
    sums = (sums / np.where(standard_error > 1e-9, standard_error, np.inf)).astype(np.float32)
    observed = np.abs(n_clusters @ sums).max()
    n_beyond, draws_at_once = 0, max(1, _SIGNS_AT_ONCE // len(sums))
    for start in range(0, _DRAWS, draws_at_once):
        size = min(draws_at_once, _DRAWS - start), len(sums)
        # The sum of the random signs of equal clusters, of which a binomial number are +1.
        signs = (2 * rng.binomial(n_clusters, 0.5, size) - n_clusters).astype(np.float32)
        n_beyond += int((np.abs(signs @ sums).max(axis=1) >= observed - 1e-6).sum())
    return (1 + n_beyond) / (_DRAWS + 1)


class _Labels(NamedTuple):
    """Labels in a list; arrays are (labels,)."""

    unit: Codes
    code: Codes
    group: Codes  # labels with one mean: of a person, or of all people with few labels
    weight: Array  # the weights of a unit's labels add up to 1


class _Units(NamedTuple):
    """Numbers of labels of the units, and frequencies of the units in the data; both (units,)."""

    n_labels: Array
    frequency: Array

    def scores(self, labels: _Labels, values: Array) -> Array:
        """Return scores (units,), whose sum is the covariance of `n_labels` with `values` (labels,)
        within groups of labels: the products of both numbers' deviations from a group's mean.
        """
        mass = labels.weight * self.frequency[labels.unit]
        group_mass = np.maximum(np.bincount(labels.group, mass), 1e-300)

        def centred(numbers: Array) -> Array:
            means = np.bincount(labels.group, mass * numbers) / group_mass
            return np.asarray(numbers - means[labels.group])

        products = labels.weight * centred(self.n_labels[labels.unit]) * centred(values)
        return np.asarray(np.bincount(labels.unit, products, len(self.n_labels)), dtype=float)


def _scores(coded: Coded, people_codes: Labels, units: _Units) -> Iterator[Array]:
    """Yield arrays of `_Units.scores`: of people's labels, by grader, and of pairs of labels."""
    is_labelled = people_codes >= 0
    unit, person = np.nonzero(is_labelled)
    # Each person with many labels is a group, numbered by cumsum; all others are group 0.
    n_units = units.frequency[units.n_labels > 0].sum()
    has_many = units.frequency @ is_labelled >= pairwise.INDIVIDUAL_SHARE * n_units
    group = np.where(has_many, np.cumsum(has_many), 0)[person]
    weight = 1.0 / is_labelled.sum(axis=1)[unit]
    labels = _Labels(unit, people_codes[unit, person].astype(np.intp), group, weight)
    values = np.asarray(coded.values, dtype=float)[:, None]  # of the categories, (q, columns)
    if coded.level == "nominal":  # an indicator of each category; of two, the second is enough
        values = np.eye(coded.q)[:, int(coded.q == 2) :]
    for column in values.T:
        yield units.scores(labels, column[labels.code])
    distance = _distance_of(coded)
    for grader in coded.members("model"):
        grades = coded.codes[:, grader].astype(np.intp)
        yield from _grader_scores(units, labels, grades, distance, values)
    yield _pair_scores(units, labels, distance)


def _grader_scores(
    units: _Units, labels: _Labels, grades: Codes, distance: Distance, values: Array
) -> Iterator[Array]:
    """Yield scores of the distances of `labels` from a grader's `grades` (units,), and of these."""
    of_graded = np.flatnonzero(grades[labels.unit] >= 0)  # people's labels of graded units
    if not len(of_graded):
        return
    unit, code = labels.unit[of_graded], labels.code[of_graded]
    shared = _Labels(unit, code, labels.group[of_graded], labels.weight[of_graded])
    yield units.scores(shared, distance(code, grades[unit]))
    graded = np.flatnonzero((units.n_labels > 0) & (grades >= 0))
    one_group, ones = np.zeros(len(graded), dtype=np.intp), np.ones(len(graded))
    by_grader = _Labels(graded, grades[graded], one_group, ones)
    for column in values.T:
        yield units.scores(by_grader, column[by_grader.code])


def _pair_scores(units: _Units, labels: _Labels, distance: Distance) -> Array:
    """Return scores, like `_Units.scores`, of the distances of people's labels from one another:
    pairs of labels are read twice, for the means of pairs of groups, then for the deviations.
    """
    n_groups, labels_per_unit = int(labels.group.max(initial=0)) + 1, np.bincount(labels.unit)

    def pairs() -> Iterator[tuple[Codes, Codes, Array, Array]]:
        """Yield some pairs of labels at a time: pairs of groups, units, distances and weights."""
        for first, second in pairwise.label_pairs(labels.unit):
            unit, groups = labels.unit[first], (labels.group[first], labels.group[second])
            group_pair = np.minimum(*groups) * n_groups + np.maximum(*groups)
            n_pairs = labels_per_unit[unit] * (labels_per_unit[unit] - 1.0) / 2.0  # of the unit
            yield group_pair, unit, distance(labels.code[first], labels.code[second]), 1.0 / n_pairs

    group_mass, sum_labels, sum_distances = np.zeros((3, n_groups**2))
    for group_pair, unit, distances, weight in pairs():
        mass = weight * units.frequency[unit]
        group_mass += np.bincount(group_pair, mass, n_groups**2)
        sum_labels += np.bincount(group_pair, mass * units.n_labels[unit], n_groups**2)
        sum_distances += np.bincount(group_pair, mass * distances, n_groups**2)
    group_mass = np.maximum(group_mass, 1e-300)
    mean_labels, mean_distance = sum_labels / group_mass, sum_distances / group_mass
    scores = np.zeros(len(units.n_labels))
    for group_pair, unit, distances, weight in pairs():
        centred_labels = units.n_labels[unit] - mean_labels[group_pair]
        products = centred_labels * (distances - mean_distance[group_pair])
        scores += np.bincount(unit, weight * products, len(scores))
    return scores


def _distance_of(coded: Coded) -> Distance:
    """Return a function for distances of labels, from 0 to 1: of numbers as shares of the range."""
    if coded.is_number:
        values = np.asarray(coded.values) / max(float(np.ptp(coded.values)), 1e-300)
        return lambda first, second: np.abs(values[first] - values[second])
    distances = pairwise.measurement_of(coded).distances  # in the kappa that verdicts use
    return lambda first, second: distances[first, second]


def add_selection_rows(view: RubricView, selection: Selection) -> None:
    """Add `agreement_by_labels` of graders with people where the rule of the selection is
    "unknown", on the units with the least number of labels (`at` this number) and on those with
    more. Each unit counts once. On an ordered scale agreement is 1 minus `_distance_of`.
    """
    if selection.has_min_labels is None or selection.has_more_labels is None:
        return
    coded = _comparable_view(view.labels)
    distance, comparable = _distance_of(coded), view.seen_as(coded)
    people = list(coded.members("human"))
    n_labels = coded.labelled[:, people].sum(axis=1)
    unit, person = np.nonzero(coded.labelled[:, people])  # of each label
    codes = coded.codes[unit, np.asarray(people)[person]].astype(np.intp)
    for grader in coded.members("model"):
        grades = coded.codes[:, grader].astype(np.intp)
        agreement = 1.0 - distance(codes, grades[unit])  # units without a grade are not compared
        mean = np.bincount(unit, agreement, len(grades)) / np.maximum(n_labels, 1)
        fewest, more = str(selection.min_labels), f"{selection.min_labels + 1}+"
        for at, units in ((fewest, selection.has_min_labels), (more, selection.has_more_labels)):
            compared = units & (grades >= 0)
            about = About(a="humans", b=coded.raters[grader], at=at)
            share = comparable.share(mean, compared)
            comparable.add(BY_LABELS, share, compared, reason="no_pairable_units", **about)


def add_contested_rows(view: View) -> None:
    """Add `agreement_by_labels` of every grader with the annotators, by class of item (at):
    unanimous, majority (more than half agree) or split. The row "unanimous: annotators" is the
    agreement of one annotator with the others on the same items.

    Each annotator is left out in turn and compared, as the grader is, with the others. Only the
    others determine the class: else annotators would always agree on unanimous items. Items with
    three labels or more count, once each. On an ordered scale agreement is 1 minus `_distance_of`.
    """
    coded, distance = view.coded, _distance_of(view.coded)
    categories = np.arange(coded.q)
    agreement = 1.0 - distance(categories[:, None], categories)
    for grader in coded.members("model"):
        grades = coded.codes[:, grader].astype(np.intp)
        counts = label_counts(coded, coded.humans_not_copied(grader))  # without people it copies
        units = (counts.sum(axis=1) >= 3) & (grades >= 0)
        shares, by_annotator, by_grader = _agreement_by_class(counts, grades, units, agreement)
        for k, item_class in enumerate(ITEM_CLASSES):
            in_class = shares[k] > 0
            if in_class.any():
                sums = view.sums(by_annotator[k], by_grader[k], shares[k])  # (rows, 3)
                for column, at in enumerate((f"{item_class}: annotators", item_class)):
                    about = About(a="humans", b=coded.raters[grader], at=at)
                    view.add(BY_LABELS, ratio(sums[:, column], sums[:, 2]), in_class, **about)


def _agreement_by_class(
    counts: Array, grades: Codes, units: Mask, agreement: Array
) -> tuple[Array, Array, Array]:
    """Return, (classes, units) each, the share of annotators for whom a unit is of a class, and
    this share times the mean agreement with the others of these annotators, and of the grader.

    `counts` (units, q) are annotators' labels, `agreement` (q, q) is that of two labels. With the
    labels yes, yes, no and the grade yes, the unit is unanimous for the third annotator (1/3), with
    whom nobody agrees. For the first two (2/3) it is split, and half of the others agree.
    """
    n_labels = counts.sum(axis=1)
    n_others = np.maximum(n_labels - 1.0, 1.0)  # one annotator is left out
    shares, by_annotator, by_grader = np.zeros((3, len(ITEM_CLASSES), len(units)))
    for label, one_hot in enumerate(np.eye(len(agreement))):  # of the annotator who is left out
        others = counts - one_hot
        largest = others.max(axis=1)
        unit_class = np.select([largest == n_others, 2.0 * largest > n_others], [0, 1], 2)
        cells = unit_class, np.arange(len(units))  # of each unit only that of its class
        share = np.where(units, counts[:, label] / np.maximum(n_labels, 1.0), 0.0)
        shares[cells] += share
        by_annotator[cells] += share * (others @ agreement[label] / n_others)
        by_grader[cells] += share * ((others * agreement[grades]).sum(axis=1) / n_others)
    return shares, by_annotator, by_grader


def label_times(ratings: DataFrame, units: Sequence[str], raters: Sequence[str]) -> Array | None:
    """Return the times of labels (units, raters) in seconds, NaN for none; None without times."""
    timed = ratings[(ratings["created_at"] != "") & (ratings["label"] != "")]
    if timed.empty:
        return None
    stamps = pd.to_datetime(timed["created_at"], utc=True, format="ISO8601", errors="coerce")
    seconds = (stamps - pd.Timestamp(0, tz="UTC")).dt.total_seconds().to_numpy(dtype=float)
    rows = pd.Index(units).get_indexer(pd.Index(timed["unit_id"]))
    columns = pd.Index(raters).get_indexer(pd.Index(timed["rater_id"]))
    in_matrix = np.flatnonzero((rows >= 0) & (columns >= 0))
    latest_first = in_matrix[np.argsort(-seconds[in_matrix])]  # the first label stays
    times = np.full((len(units), len(raters)), np.nan)
    times[rows[latest_first], columns[latest_first]] = seconds[latest_first]
    return times


# ---- Reversed scales -----------------------------------------------------------------------------
# A *recoding* ("reversed" and so on) replaces each code of a rater's labels by that in `new_codes`.
# `data` are `Resamples` without resamples: the clusters of the data and their frequencies, one row.
RECODED = "kappa_recoded"
REVERSED, LOWER, HIGHER, EXCHANGED = "reversed", "one_lower", "one_higher", "exchanged"
RECODINGS = (REVERSED, EXCHANGED, LOWER, HIGHER)
GAIN = 0.2  # gain in kappa from which a recoding has a row


def add_recoded_rows(view: View) -> None:
    """Add `kappa_recoded` of graders whose kappa is far higher when recoded; without intervals."""
    coded, data = view.coded, Resamples(view.resamples.frequency, weight=view.resamples.weight)
    kappas = pairwise.KappaMeans(coded, data, [pairwise.deciding_kappa(coded)])
    for grader in coded.members("model"):
        mean = with_and_among_humans(kappas, coded, grader).with_humans
        if mean is None:
            continue
        for recoding, new_codes in _recodings(coded, grader, data):
            recoded_labels = _with_new_codes(coded, grader, new_codes)
            recoded_mean = with_and_among_humans(kappas, recoded_labels, grader).with_humans
            if recoded_mean is not None and recoded_mean.values[0] - mean.values[0] >= GAIN:
                by_people = coded.labelled_by_any(coded.humans_not_copied(grader))
                units = view.count(coded.labelled[:, grader] & by_people)
                pairs = zip(coded.categories, np.array(coded.categories)[new_codes], strict=True)
                note = ", ".join(f"{old} as {new}" for old, new in pairs if old != new)
                about = About(a="humans", b=coded.raters[grader], at=recoding, note=note)
                view.add(RECODED, float(recoded_mean.values[0]), units, **about)


def _with_new_codes(coded: Coded, rater: int, new_codes: Codes) -> Coded:
    """Return the labels with every code of a rater replaced by that in `new_codes` (q,)."""
    codes, labelled = coded.codes.copy(), coded.labelled[:, rater]
    codes[labelled, rater] = new_codes[codes[labelled, rater]]
    return replace(coded, codes=codes)


def _recodings(coded: Coded, grader: int, data: Resamples) -> Iterator[tuple[str, Codes]]:
    """Yield recodings of a grader's labels by name, each with its `new_codes` (q,)."""
    codes = np.arange(coded.q)
    if coded.level != "nominal":
        yield REVERSED, codes[::-1]
        yield LOWER, np.maximum(codes - 1, 0)
        yield HIGHER, np.minimum(codes + 1, coded.q - 1)
        return
    people = coded.humans_not_copied(grader)
    tables = (pairwise.data_table(coded, grader, person, data) for person in people)
    table = sum(tables, np.zeros(()))
    if table.ndim == 2:  # else there are no people, and so no tables
        best = best_match(table)  # rows are the grader's labels
        if (best != codes).any():
            yield REVERSED if coded.q == 2 else EXCHANGED, best


def best_match(counts: Numbers) -> Codes:
    """Return the `new_codes` (q,) with which labels match others' best: of the `counts` (q, q) of
    pairs of labels, a row's new code is its column, all different, so that the sum is the largest.

    >>> best_match(np.array([[1, 9, 0], [8, 2, 0], [0, 0, 3]])).tolist()
    [1, 0, 2]
    """
    best = np.asarray(counts).argmax(axis=1)
    if len(np.unique(best)) == len(best):  # the best column of each row is another one
        return np.asarray(best)
    from scipy.optimize import linear_sum_assignment  # slow to import, seldom needed

    new_codes, codes = linear_sum_assignment(np.transpose(counts), maximize=True)
    return np.asarray(new_codes[np.argsort(codes)])


ANNOTATOR_KAPPA = "annotator_kappa"
AS_GIVEN, PERHAPS = "as_given", "perhaps_"  # `at` of labels as given; prefix of unsure recodings
LEVEL_OPPOSED = 0.001  # chance that anyone is reported whose labels are unrelated to the others'
CLEARLY_AGREE = NormalDist().inv_cdf(0.95)
"""Standard errors of the covariance with the others above which an annotator clearly agrees."""
MIN_SHARED_WITH_OTHERS = 10
"""Fewest units that an annotator shares with annotators other than the one who shares most."""


class Opposed(NamedTuple):
    """An annotator whose labels contradict the others', with rows of the mean kappa with them."""

    annotator: str
    others: str  # their names
    as_given: ResultRow
    recoded: ResultRow
    recoding: str  # reversed or exchanged
    is_sure: bool  # False: the others are equally many, and may be the ones who reverse labels


def opposed_in(rows: ResultRows) -> list[Opposed]:
    """Return the annotators who reverse or exchange labels, from the rows of a rubric."""
    opposed = []
    kappas = [row for row in rows.rows.values() if row["statistic"] == ANNOTATOR_KAPPA]
    as_given = {row["rater_a"]: row for row in kappas if row["at"] == AS_GIVEN}
    for recoded in (row for row in kappas if row["at"] != AS_GIVEN):
        annotator, others = recoded["rater_a"], text_of(recoded["remarks"])
        recoding, is_sure = recoded["at"].removeprefix(PERHAPS), PERHAPS not in recoded["at"]
        opposed.append(Opposed(annotator, others, as_given[annotator], recoded, recoding, is_sure))
    return opposed


def add_annotator_rows(view: View) -> None:
    """Add `annotator_kappa` of annotators who reverse the scale or exchange categories: the mean
    kappa with the others, as given and recoded. It has no interval: it is a hint, though one that
    must be settled before a grader passes.
    """
    coded, data = view.coded, Resamples(view.resamples.frequency, weight=view.resamples.weight)
    people = coded.members("human")
    opposed, recoded = _find_opposed(coded, people, data)
    others = [person for person in people if person not in opposed]
    statistic = pairwise.deciding_kappa(coded)
    before, after = (pairwise.KappaMeans(labels, data, [statistic]) for labels in (coded, recoded))
    recoding = REVERSED if _has_direction(coded) else EXCHANGED
    if opposed and len(opposed) < len(others):
        # Sure: the others are the majority. They have to agree clearly with each other, and the
        # recoded labels at least half as well with them.
        scores = _covariance_scores(coded, others, data)
        if not scores or not median(scores.values()) > CLEARLY_AGREE:
            return
        min_kappa = float(before.among(others)[statistic].values[0]) / 2
    elif opposed and len(opposed) == len(others) and _has_direction(coded):
        # Not sure: either side may reverse the scale. A side may be a single annotator, so that the
        # bound is fixed. An exchange of categories can make two agree by chance, and has no row.
        recoding, min_kappa = PERHAPS + recoding, GAIN
    else:
        return
    names = ", ".join(coded.raters[person] for person in others)  # for `opposed_in`
    for annotator in opposed:
        shared = coded.labelled[:, annotator] & coded.labelled_by_any(others)
        kappa_before, kappa_after = (
            float(means.with_rater(others, annotator, shared)[statistic].values[0])
            for means in (before, after)
        )
        if kappa_after - kappa_before >= GAIN and kappa_after >= min_kappa:
            for at, kappa in ((AS_GIVEN, kappa_before), (recoding, kappa_after)):
                about = About(a=coded.raters[annotator], b="humans", at=at, note=names)
                view.add(ANNOTATOR_KAPPA, kappa, shared, **about)


def _find_opposed(coded: Coded, people: Sequence[int], data: Resamples) -> tuple[list[int], Coded]:
    """Return annotators who contradict the others, and the labels with theirs recoded. The worst
    annotator is recoded first, then all are tested again, as this changes the others' mean.
    """
    labels, opposed = coded, list[int]()
    bound = NormalDist().inv_cdf(1.0 - LEVEL_OPPOSED / max(len(people), 1))  # Bonferroni's
    while True:
        scores = _agreement_scores(labels, people, data)
        scores = {person: score for person, score in scores.items() if person not in opposed}
        worst = min(scores, key=scores.__getitem__, default=None)
        if worst is None or not scores[worst] < -bound:
            return opposed, labels
        new_codes = _opposite_codes(labels, worst, label_counts(labels, people), data)
        labels = _with_new_codes(labels, worst, new_codes)
        opposed.append(worst)


def _has_direction(coded: Coded) -> bool:
    """Return True if categories can be reversed: they have an order, or there are two."""
    return coded.level != "nominal" or coded.q == 2


def _opposite_codes(coded: Coded, annotator: int, counts: Array, data: Resamples) -> Codes:
    """Return the `new_codes` that reverse an annotator's labels, or match the others' best."""
    if _has_direction(coded):
        return np.arange(coded.q)[::-1]
    units = coded.labelled[:, annotator]
    codes = coded.codes[units, annotator].astype(np.intp)
    others = counts[units] - np.eye(coded.q)[codes]  # all people's labels but the annotator's
    table = np.zeros((coded.q, coded.q))  # rows are the annotator's labels
    np.add.at(table, codes, data.frequency[coded.clusters[units]][:, None] * others)
    return best_match(table)


class _SharedLabels(NamedTuple):
    """Labels of an annotator (column) on units that others labelled, too."""

    annotator: int
    codes: Codes  # the annotator's, (units,)
    others: Array  # their mean `_category_values`, (units, columns)
    clusters: Codes  # (units,)


def _shared_labels(coded: Coded, people: Sequence[int], data: Resamples) -> Iterator[_SharedLabels]:
    """Yield the shared labels of each annotator, except of those who share too few units (one for
    each cluster), or nearly all with one other person: either of the two may contradict the other.
    """
    labelled, category_values = coded.labelled[:, list(people)], _category_values(coded)
    n_labels = labelled.sum(axis=1)
    sums = np.zeros((len(labelled), category_values.shape[1]))  # over people
    for column, annotator in enumerate(people):
        units = labelled[:, column]
        sums[units] += category_values[coded.codes[units, annotator]]
    for column, annotator in enumerate(people):
        units = labelled[:, column] & (n_labels >= 2)
        shared_with = labelled[units].sum(axis=0)  # numbers of units that each person shares
        shared_with[column] = 0
        n_beyond_closest = shared_with.sum() - shared_with.max(initial=0)
        has_one_partner = len(people) > 2 and n_beyond_closest < MIN_SHARED_WITH_OTHERS
        if has_one_partner or data.count(coded.clusters, units)[1] < pairwise.MIN_SHARED_UNITS:
            continue
        codes = coded.codes[units, annotator].astype(np.intp)
        others = (sums[units] - category_values[codes]) / (n_labels[units] - 1)[:, None]
        yield _SharedLabels(annotator, codes, others, coded.clusters[units])


def _covariance_scores(coded: Coded, people: Sequence[int], data: Resamples) -> dict[int, float]:
    """Return a score of each annotator: the covariance with the others, in standard errors."""
    scores = {}
    for annotator, codes, others, clusters in _shared_labels(coded, people, data):
        frequency = data.frequency[clusters]
        values, share = _category_values(coded)[codes], frequency / float(frequency.sum())
        products = (values - share @ values) * (others - share @ others)
        scores[annotator] = _over_standard_error(products.sum(axis=1), clusters, data)
    return scores


def _agreement_scores(coded: Coded, people: Sequence[int], data: Resamples) -> dict[int, float]:
    """Return a score of each annotator, below 0 where labels contradict the others'. Of categories
    without direction it is the agreement as given minus that after the best exchange.
    """
    if _has_direction(coded):
        return _covariance_scores(coded, people, data)
    scores, category_values, counts = {}, _category_values(coded), label_counts(coded, people)
    for annotator, codes, others, clusters in _shared_labels(coded, people, data):
        exchanged = _opposite_codes(coded, annotator, counts, data)[codes]
        difference = ((category_values[codes] - category_values[exchanged]) * others).sum(axis=1)
        scores[annotator] = _over_standard_error(difference, clusters, data)
    return scores


def _category_values(coded: Coded) -> Array:
    """Return numbers for the categories: (q, 1) on a scale, else an indicator of each, (q, q)."""
    if coded.is_number:
        return np.asarray(coded.values, dtype=float)[:, None]
    return np.eye(coded.q) if coded.level == "nominal" else np.arange(float(coded.q))[:, None]


def _over_standard_error(values: Array, clusters: Codes, data: Resamples) -> float:
    """Return the mean of values (units,) over its standard error, with clusters as units."""
    size = float(data.frequency[clusters].sum())
    mean = float(data.frequency[clusters] @ values) / size
    deviations = np.bincount(clusters, values - mean, minlength=len(data.frequency))
    error = float(np.sqrt(data.frequency @ deviations**2) / size)
    return 0.0 if abs(mean) < 1e-12 else mean / max(error, 1e-12)


# ---- Gross errors --------------------------------------------------------------------------------
GROSS = "gross_errors"
QUANTILE = 0.99  # share of the distances of people's labels of one unit that a gross error exceeds


def add_gross_error_rows(view: View) -> None:
    """Add `gross_errors` of every grader on an ordered scale: the share of its labels further from
    every person's label than a threshold (at), the 99% quantile of the distances between people's
    labels of one unit. Bounds are Wilson's (`share_bounds`).
    """
    coded, resamples = view.coded, view.resamples
    if coded.level == "nominal":
        return
    values = np.asarray(coded.values, dtype=float)
    for grader in coded.members("model"):
        people = coded.humans_not_copied(grader)
        units, has_two = pairwise.compared_units(coded, resamples, people, grader)
        if not has_two:
            continue
        unit, person = np.nonzero(coded.labelled[:, list(people)] & units[:, None])
        codes = coded.codes[unit, np.asarray(people)[person]].astype(np.intp)
        mass = resamples.mass[coded.clusters].astype(float)
        threshold = _distance_quantile(unit, codes, values, mass)
        distance = np.abs(values[codes] - values[coded.codes[unit, grader].astype(np.intp)])
        nearest = np.full(len(units), np.inf)  # distance of the nearest person's label
        np.minimum.at(nearest, unit, distance)
        sums = view.sums_by_cluster(np.column_stack([units & (nearest > threshold + 1e-9), units]))
        share = Interval(*share_bounds(sums[:, 0], sums[:, 1], ALPHA))
        view.add(GROSS, share, units, a="humans", b=coded.raters[grader], at=f"{threshold:g}")


def _distance_quantile(unit: Codes, codes: Codes, values: Array, mass: Array) -> float:
    """Return the 99% quantile of distances of labels of one unit, each unit counting once."""
    q, n_labels = len(values), np.bincount(unit, minlength=len(mass)).astype(float)
    weights = np.zeros(q * q)
    for first, second in pairwise.label_pairs(unit):
        n = n_labels[unit[first]]
        weight = mass[unit[first]] / (n * (n - 1.0))  # of a unit's pairs, half the mass in all
        weights += np.bincount(codes[first] * q + codes[second], weight, q * q)
    distances = np.abs(values[:, None] - values).ravel()
    order = np.argsort(distances, kind="stable")
    cumulative = weights[order].cumsum()
    return float(distances[order][np.searchsorted(cumulative, QUANTILE * cumulative[-1] - 1e-9)])
