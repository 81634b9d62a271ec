"""Annotators whose labels need care before graders are judged by them, and plain mistakes.

*Selective labels*: did it depend on labels which units got several? Agreement on units with several
labels is that on all units only if they were chosen without regard to labels. A third label where
two differ, or a second one on hard units, makes people look as if they disagreed more than they do,
and a grader as if it kept up with them.

*Test.* A unit's number of labels is held against people's distance from one another and from each
grader, people's labels and the graders' labels; within a person or a pair of people, lest strict
people pass for hard units. Scores by cluster, studentised; the largest is compared with those under
random signs (Liu 1988; Westfall & Young 1993). One label against several is tested at the level
.20, as a selection that is missed lets graders pass; two against more, which biases little, at .05.

*Handling.* Of selected labels those are counted that were given before the others, or by those who
labelled nearly everything; a third label where two differ leaves any two that differ as the first.
Else agreement on all units is not known. `python -m benchmarks.designs` shows how often verdicts
are wrong under selective designs.

*Plain mistakes*: a scale read the other way round, or labels far from all others. An annotator's
labels and the others' mean label on the same units have a covariance. Where it is clearly negative,
by a normal bound with clusters as units, these labels are reversed, and all are looked at again. Of
three or more categories without order those are exchanged with which labels clearly agree better
so. Annotators are named only if their kappas bear it out.

A grader that reads the scale the other way round, or labels everything one category too high, has a
low kappa and is easily fixed. So its labels are compared with the humans' once more, reversed, a
category lower or higher, or, where categories have no order, exchanged to match the humans' best.

A kappa averages over units, and one gross error in a hundred hardly moves it. So labels further
from every person's than theirs are from each other are counted as gross errors, with the share of
them that a sample cannot rule out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median
from typing import Literal

import numpy as np

from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    OWN_SHARE,
    KappaMeans,
    compared_units,
    data_table,
    deciding_kappa,
    distances,
    entry_pairs,
)
from evenhand.analysis.bootstrap.bounds import ALPHA
from evenhand.analysis.bootstrap.intervals import Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, listed
from evenhand.analysis.people.comparison import with_and_among_humans
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.statistics import text_of
from evenhand.analysis.types import Array, Codes, DataFrame, Labels, Mask, Numbers
from evenhand.analysis.writer import About, RubricView, View
from evenhand.texts import written

LEVEL_SINGLE, LEVEL_MORE = 0.20, 0.05
"""Levels of the tests of one label against several, and of two against more."""
NEARLY_ALL = 0.95
"""Who labelled this share of the units is taken to have labelled all."""
BY_LABELS = "agreement_by_labels"
CONTESTED = ("unanimous", "majority", "split")
_DRAWS = 999
_SIGNS_AT_ONCE = 4_000_000

Distance = Callable[[Codes, Codes], Array]
"""Distances of labels, given as two arrays of codes."""
How = Literal["all", "first", "nearly_all", "tie_break", "unknown"]


@dataclass(frozen=True)
class Selection:
    """Result of the test for selected labels, and the labels that agreement is computed of.

    `number` is the least number of labels of a unit. `how` is "all" where nothing speaks against
    it; "first" for so many first labels of each unit; "nearly_all" without the labels of the people
    in `left_out`; "tie_break" where third labels were given because two differ; "unknown" where no
    choice shows agreement on all units.
    `counted` (units, raters) are the labels that count, None for all. `fewer` and `more` (units,)
    tell units with few labels from others.
    """

    how: How = "all"
    number: int = 0
    left_out: tuple[str, ...] = ()
    counted: Mask | None = None
    fewer: Mask | None = None
    more: Mask | None = None

    @property
    def note(self) -> str:
        """The labels that agreement is computed of, in a sentence; empty where it is all, or where
        the verdicts say that it is not known.
        """
        if self.how in ("all", "unknown"):
            return ""
        people = listed(self.left_out or ("",))
        return written(f"selection.{self.how}", number=self.number, people=people)


def selection_of(
    labels: LabelMatrix,
    resamples: Resamples,
    rng: np.random.Generator,
    times: Array | None = None,
    *,
    is_random: bool = False,
) -> Selection:
    """Find out whether labels were selected, and of which agreement is to be computed.

    Of the `resamples` only the clusters are taken, and how often each occurs in the data. `times`
    (units, raters) are when labels were given, NaN where unknown. Nothing is tested where
    overlap `is_random` by declaration or design, where units have as many labels as one another or
    are fewer than 30, or where everybody labelled nearly all.
    """
    coded = _view(labels)
    people = [at for at in coded.members("human") if coded.labelled[:, at].any()]
    graders = coded.members("model")
    inside = coded.labelled_by_any(people) & coded.labelled_by_any(graders)
    held = coded.labelled[:, people] & inside[:, None]
    number = held.sum(axis=1)
    several = np.unique(number[inside])
    copies = resamples.frequency[coded.clusters]
    unit, person = np.nonzero(held)
    by_person = np.bincount(person, copies[unit], held.shape[1])
    core = np.asarray(by_person >= NEARLY_ALL * (copies @ inside))
    few = resamples.count(coded.clusters, inside)[0] < MIN_SHARED_UNITS  # and so no verdict
    if is_random or few or labels.weight is not None or len(several) < 2 or core.all():
        return Selection()
    codes = np.where(held, coded.codes[:, people], -1)
    # Do units with several labels differ from those with one, or units with more from those with
    # two?
    by_people = (codes >= 0).sum(axis=1)
    more = np.where((by_people >= 2)[:, None], codes, -1)
    if not (
        ((by_people == 1).any() and selection_p(coded, codes, resamples, rng, 2) <= LEVEL_SINGLE)
        or selection_p(coded, more, resamples, rng) <= LEVEL_MORE
    ):
        return Selection()
    least = int(several[0])
    first = None if times is None or least < 2 else _first(held, times[:, people], least)
    counted = np.ones(labels.codes.shape, dtype=bool)
    if first is not None:
        counted[:, people] = first
        return Selection("first", least, counted=counted)
    if core.sum() >= 2:
        counted[:, people] = core
        others = tuple(labels.raters[people[at]] for at in np.flatnonzero(~core))
        return Selection("nearly_all", left_out=others, counted=counted)
    agree = np.array([len(np.unique(row[row >= 0])) < 2 for row in codes])
    of_two, of_three = (agree[inside & (number == n)] for n in (2, 3))
    if several.tolist() == [2, 3] and of_two.all() and not of_three.any():
        return Selection("tie_break")
    fewer = inside & (number == least)
    return Selection("unknown", least, fewer=fewer, more=inside & ~fewer)


def add_selection_rows(view: RubricView, selection: Selection) -> None:
    """Add `agreement_by_labels` of graders where selected labels leave agreement on all units open:
    with people's labels on units with few of them (`at` their number) and with more, each unit
    counting once. On an ordered scale agreement is 1 minus the distance, as a share of the scale's
    length.
    """
    if selection.fewer is None or selection.more is None:
        return
    coded = _view(view.labels)
    apart, out = _distance_of(coded), view.seen_as(coded)
    people = list(coded.members("human"))
    unit, person = np.nonzero(coded.labelled[:, people])
    given = coded.codes[unit, np.asarray(people)[person]].astype(np.intp)
    for grader in coded.members("model"):
        grades = coded.codes[:, grader].astype(np.intp)
        both = grades[unit] >= 0
        close = 1.0 - apart(given[both], grades[unit[both]])
        sums = np.bincount(unit[both], close, len(grades))
        mean = sums / np.maximum(np.bincount(unit[both], minlength=len(grades)), 1)
        least = selection.number
        for at, units in ((f"{least}", selection.fewer), (f"{least + 1}+", selection.more)):
            held = units & (grades >= 0)
            values = out.share(mean, held)
            of = About(a="humans", b=coded.raters[grader], at=at)
            out.add(BY_LABELS, values, held, reason="no_pairable_units", **of)


def add_contested_rows(view: View) -> None:
    """Add `agreement_by_labels` of every grader with the annotators of items by how far these agree
    (at): unanimous, majority (more than half) or split. "unanimous: annotators" is one annotator's
    with the others on the same items.

    Each annotator is left out in turn and compared, as the grader is, with the others, who alone
    settle the class: else annotators would agree on all that is unanimous by definition. Items with
    three labels or more count, once each. On an ordered scale agreement is as in `_distance_of`.
    """
    coded, apart = view.coded, _distance_of(view.coded)
    every = np.arange(coded.q)
    near = 1.0 - apart(every[:, None], every)
    for grader in coded.members("model"):
        counts = label_counts(coded, coded.people_beside(grader))
        others, grades = counts.sum(axis=1) - 1.0, coded.codes[:, grader].astype(np.intp)
        held = (others >= 2) & (grades >= 0)
        sums = np.zeros((3, 3, len(held)))
        for code in every:
            rest = counts - np.eye(coded.q)[code]
            largest = rest.max(axis=1)
            kind = np.where(largest == others, 0, np.where(2.0 * largest > others, 1, 2))
            weight = np.where(held, counts[:, code] / np.maximum(others + 1.0, 1.0), 0.0)
            for k, values in enumerate((1.0, rest @ near[code], (rest * near[grades]).sum(axis=1))):
                share = values if k == 0 else values / np.maximum(others, 1.0)
                sums[k, kind, np.arange(len(held))] += weight * share
        for at, (size, people, graded) in zip(CONTESTED, sums.swapaxes(0, 1), strict=True):
            if (units := size > 0).any():
                mean = ratio(*np.split(view.sums(people, graded, size), [2], axis=1))
                for column, name in enumerate((f"{at}: annotators", at)):
                    of = About(a="humans", b=coded.raters[grader], at=name)
                    view.add(BY_LABELS, mean[:, column], units, **of)


def label_times(ratings: DataFrame, units: Sequence[str], raters: Sequence[str]) -> Array | None:
    """Return when each label was given, (units, raters) in seconds, NaN where unknown; None where
    no time is known. Of several labels of a rater the first counts.
    """
    import pandas as pd

    timed = ratings[(ratings["created_at"] != "") & (ratings["label"] != "")]
    if timed.empty:
        return None
    stamps = pd.to_datetime(timed["created_at"], utc=True, format="ISO8601", errors="coerce")
    seconds = (stamps - pd.Timestamp(0, tz="UTC")).dt.total_seconds().to_numpy(dtype=float)
    rows = pd.Index(units).get_indexer(pd.Index(timed["unit_id"]))
    columns = pd.Index(raters).get_indexer(pd.Index(timed["rater_id"]))
    inside = np.flatnonzero((rows >= 0) & (columns >= 0))
    latest_first = inside[np.argsort(-seconds[inside])]
    times = np.full((len(units), len(raters)), np.nan)
    times[rows[latest_first], columns[latest_first]] = seconds[latest_first]
    return times


def _distance_of(coded: Coded) -> Distance:
    if coded.is_number:
        values = np.asarray(coded.values) / max(float(np.ptp(coded.values)), 1e-300)
        return lambda first, second: np.abs(values[first] - values[second])
    apart = distances(coded)
    return lambda first, second: apart[first, second]


def _view(labels: LabelMatrix) -> Coded:
    """The view of the labels on which most graders can be compared."""
    if (labels.codes[:, list(labels.models)] >= 0).any() or not labels.has_verdicts:
        return labels.on_categories()
    return labels.on_verdicts()


def _first(held: Mask, times: Array, number: int) -> Mask | None:
    """Mask (units, people) of each unit's first labels; None where their order is not known."""
    when = np.where(held, times, np.inf)
    if np.isnan(when).any():
        return None
    order = np.argsort(when, axis=1, kind="stable")
    sorted_times = np.take_along_axis(when, order, axis=1)
    last, following = sorted_times[:, number - 1], sorted_times[:, number]
    if (np.isfinite(following) & (last >= following)).any():
        return None
    rank = np.argsort(order, axis=1, kind="stable")
    return np.asarray(held & (rank < number))


def selection_p(
    coded: Coded, codes: Labels, resamples: Resamples, rng: np.random.Generator, most: int = 0
) -> float:
    """Return a p value: does the number of people's labels `codes` (units, people) of a unit depend
    on labels? 1 where all units have the same number, or nothing varies. Numbers above `most` count
    as `most`, unless it is 0.
    """
    number = np.minimum((codes >= 0).sum(axis=1), most or codes.shape[1])
    if len(np.unique(number[number > 0])) < 2:
        return 1.0
    copies = resamples.frequency[coded.clusters].astype(float)
    scores = np.stack(list(_scores(coded, codes, number.astype(float), copies)), axis=1)
    summed, times = resamples.signed(resamples.cluster_sums(coded.clusters, scores))
    spread = np.sqrt(times @ summed**2)
    summed = (summed / np.where(spread > 1e-9, spread, np.inf)).astype(np.float32)
    observed = np.abs(times @ summed).max()
    beyond, step = 0, max(1, _SIGNS_AT_ONCE // len(summed))
    for start in range(0, _DRAWS, step):
        size = min(step, _DRAWS - start), len(summed)
        # The sum of as many random signs as a cluster occurs in the data.
        signs = (2 * rng.binomial(times, 0.5, size) - times).astype(np.float32)
        beyond += int((np.abs(signs @ summed).max(axis=1) >= observed - 1e-6).sum())
    return (1 + beyond) / (_DRAWS + 1)


def _scores(coded: Coded, codes: Labels, number: Array, copies: Array) -> Iterator[Array]:
    """Yield scores (units,): how a unit's `number` of labels goes with distances and labels. Each
    unit occurs in the data in so many `copies` (units,).
    """
    n, units = len(codes), np.flatnonzero(number > 0)
    unit, person = np.nonzero(codes >= 0)
    given = codes[unit, person].astype(np.intp)
    by_person = np.bincount(person, copies[unit], codes.shape[1])
    much = by_person >= OWN_SHARE * copies[units].sum()
    table = np.where(much, np.cumsum(much), 0)[person]
    apart, values = _distance_of(coded), np.asarray(coded.values, dtype=float)[:, None]
    if coded.level == "nominal":  # whether a label is each category
        values = np.eye(coded.q)[:, int(coded.q == 2) :]
    weight = 1.0 / (codes >= 0).sum(axis=1)[unit]

    def within(key: Codes, at: Codes, what: Array, weights: Array) -> Array:
        """Scores within each `key` of entries of the units `at`."""
        many = weights * copies[at]
        total = np.maximum(np.bincount(key, many), 1e-300)
        centred = [v - (np.bincount(key, many * v) / total)[key] for v in (number[at], what)]
        return np.asarray(np.bincount(at, weights * centred[0] * centred[1], n), dtype=float)

    for column in values.T:
        yield within(table, unit, column[given], weight)
    for grader in coded.members("model"):
        grades = coded.codes[:, grader].astype(np.intp)
        both = grades[unit] >= 0
        entries = table[both], unit[both], apart(given[both], grades[unit[both]]), weight[both]
        if both.any():
            yield within(*entries)
            labelled = units[grades[units] >= 0]
            for column in values.T:
                key, ones = np.zeros(len(labelled), dtype=np.intp), np.ones(len(labelled))
                yield within(key, labelled, column[grades[labelled]], ones)
    yield _scores_of_pairs((unit, given, table), number, copies, apart)


def _scores_of_pairs(
    labels: tuple[Codes, Codes, Codes], number: Array, copies: Array, apart: Distance
) -> Array:
    """Scores (units,) of the number of labels with people's distance from one another, within each
    two tables, from labels with their unit, code and table.
    """
    unit, given, table = labels
    n, tables = len(number), int(table.max(initial=0)) + 1
    labels_of = np.bincount(unit, minlength=n)

    def pairs() -> Iterator[tuple[Codes, Codes, Array, Array]]:
        for i, j in entry_pairs(unit):
            a, b = table[i], table[j]
            key, m = np.minimum(a, b) * tables + np.maximum(a, b), labels_of[unit[i]]
            yield key, unit[i], apart(given[i], given[j]), 2.0 / (m * (m - 1.0))

    total, sums = np.zeros(tables**2), np.zeros((2, tables**2))
    for key, at, what, weight in pairs():
        many = weight * copies[at]
        total += np.bincount(key, many, tables**2)
        sums[0] += np.bincount(key, many * number[at], tables**2)
        sums[1] += np.bincount(key, many * what, tables**2)
    means = sums / np.maximum(total, 1e-300)
    out = np.zeros(n)
    for key, at, what, weight in pairs():
        out += np.bincount(at, weight * (number[at] - means[0][key]) * (what - means[1][key]), n)
    return out


def best_match(together: Numbers) -> Codes:
    """Match each category (column) with a class (row), one to one. The match maximises the sum of
    the matched counts of `together` (q, q).

    >>> best_match(np.array([[1, 8, 0], [9, 2, 0], [0, 0, 3]])).tolist()
    [1, 0, 2]
    """
    best = np.asarray(together).argmax(axis=0)
    if len(np.unique(best)) == len(best):  # each has its own best one, so no match counts more
        return np.asarray(best)
    from scipy.optimize import linear_sum_assignment  # slow to import, seldom needed

    classes, categories = linear_sum_assignment(together, maximize=True)
    return np.asarray(classes[np.argsort(categories)])


RECODED = "kappa_recoded"
REVERSED, LOWER, HIGHER, EXCHANGED = "reversed", "one_lower", "one_higher", "exchanged"
RECODINGS = (REVERSED, EXCHANGED, LOWER, HIGHER)
GAIN = 0.2
"""Gain in kappa from which a recoding has a row."""


def add_recoded_rows(view: View) -> None:
    """Add `kappa_recoded` of graders whose mean kappa with humans is far higher when recoded.
    Without an interval: it is a hint, on which no verdict rests.
    """
    coded, data = view.coded, _data_alone(view)
    plain = KappaMeans(coded, data, [deciding_kappa(coded)])
    for grader in coded.members("model"):
        _, mean, _ = with_and_among_humans(plain, coded, grader)
        if mean is None:
            continue
        for name, code in _recodings(coded, grader, data):
            codes = coded.codes.copy()
            held = codes[:, grader] >= 0
            codes[held, grader] = code[codes[held, grader]]
            _, other, _ = with_and_among_humans(plain, replace(coded, codes=codes), grader)
            if other is not None and other.values[0] - mean.values[0] >= GAIN:
                units = view.count(held & coded.labelled_by_any(coded.people_beside(grader)))
                note = ", ".join(
                    f"{coded.categories[was]} as {coded.categories[now]}"
                    for was, now in enumerate(code)
                    if was != now
                )
                of = About(a="humans", b=coded.raters[grader], at=name, note=note)
                view.add(RECODED, float(other.values[0]), units, **of)


def _data_alone(view: View) -> Resamples:
    """Return the clusters of the data, without resamples."""
    drawn, rng = view.resamples, np.random.default_rng(0)
    return Resamples(drawn.frequency, 0, rng, weight=drawn.weight)


def _recodings(coded: Coded, grader: int, data: Resamples) -> Iterator[tuple[str, Codes]]:
    """Yield the recodings by name, each with the code that every code becomes."""
    code = np.arange(coded.q)
    if coded.level != "nominal":
        yield REVERSED, code[::-1]
        yield LOWER, np.maximum(code - 1, 0)
        yield HIGHER, np.minimum(code + 1, coded.q - 1)
        return
    people = coded.people_beside(grader)
    together = sum((data_table(coded, grader, person, data) for person in people), np.zeros(()))
    if together.ndim == 2:
        best = best_match(together.T)
        if (best != code).any():
            yield REVERSED if coded.q == 2 else EXCHANGED, best


ANNOTATOR_KAPPA = "annotator_kappa"
AS_GIVEN, PERHAPS = "as_given", "perhaps_"
LEVEL = 0.001
"""Chance that anybody is named whose labels have nothing to do with the others'."""
CLEARLY_AGREE = NormalDist().inv_cdf(0.95)
LEAST_SHARED = 10
"""Units that an annotator shares with others than the one with whom they share most."""


@dataclass(frozen=True)
class Opposed:
    """An annotator whose labels go against those of the `others` (names): the mean kappa with them
    as it is (`given`) and with the labels reversed or exchanged (`recoded`: `how`). Unless
    `is_sure`, the others are as few, and it may be they who label the other way round.
    """

    annotator: str
    others: str
    given: ResultRow
    recoded: ResultRow
    how: str
    is_sure: bool


def opposed_in(rows: ResultRows) -> list[Opposed]:
    """Return the annotators who label the other way round, from the rows of a rubric."""
    opposed, given = [], None
    for row in rows.rows.values():
        if row["statistic"] != ANNOTATOR_KAPPA:
            continue
        if row["at"] == AS_GIVEN:
            given = row
        elif given is not None:
            how, others = row["at"].removeprefix(PERHAPS), text_of(row["remarks"])
            opposed.append(Opposed(row["rater_a"], others, given, row, how, how == row["at"]))
    return opposed


def add_annotator_rows(view: View) -> None:
    """Add `annotator_kappa` of annotators who label the other way round: the mean kappa with the
    others, as it is and with the labels reversed or exchanged. Without an interval: it is a hint,
    though one that a verdict waits for.
    """
    coded, data = view.coded, _data_alone(view)
    people = coded.members("human")
    turned, codes = _turned(coded, people, data)
    others = [person for person in people if person not in turned]
    is_sure = len(turned) < len(others)
    if not turned or len(turned) > len(others):
        return
    if is_sure:  # the others have to agree clearly
        scores = _with_others(coded, others, data)
        if not scores or not median(scores.values()) > CLEARLY_AGREE:
            return
    elif not _has_direction(coded):
        return  # two can be exchanged to agree by chance
    name = deciding_kappa(coded)
    given, recoded = (
        KappaMeans(replace(coded, codes=c), data, [name]) for c in (coded.codes, codes)
    )
    least = float(given.among(others)[name].values[0]) / 2 if is_sure else GAIN
    how = REVERSED if _has_direction(coded) else EXCHANGED
    names = ", ".join(coded.raters[person] for person in others)
    for annotator in turned:
        shared = coded.labelled[:, annotator] & coded.labelled_by_any(others)
        before, after = (
            float(means.with_rater(others, annotator, shared)[name].values[0])
            for means in (given, recoded)
        )
        if after - before >= GAIN and after >= least:
            for at, kappa in ((AS_GIVEN, before), (how if is_sure else PERHAPS + how, after)):
                who = coded.raters[annotator]
                view.add(ANNOTATOR_KAPPA, kappa, shared, a=who, b="humans", at=at, note=names)


def _turned(coded: Coded, people: Sequence[int], data: Resamples) -> tuple[list[int], Labels]:
    """Return the annotators whose labels go against those of the others, and all labels (units,
    raters) with theirs reversed or exchanged.
    """
    codes, turned = coded.codes, list[int]()
    bound = NormalDist().inv_cdf(1.0 - LEVEL / max(len(people), 1))
    while True:
        view = replace(coded, codes=codes)
        scores = _against_others(view, people, data)
        against = [person for person in scores if scores[person] < -bound and person not in turned]
        if not against:
            return turned, codes
        worst = min(against, key=scores.__getitem__)
        code = _recoding(view, worst, label_counts(view, people), data)
        held = view.labelled[:, worst]
        codes = codes.copy()
        codes[held, worst] = code[codes[held, worst]]
        turned.append(worst)


def _has_direction(coded: Coded) -> bool:
    """Return True if categories can be reversed: they have an order, or there are two."""
    return coded.level != "nominal" or coded.q == 2


def _recoding(coded: Coded, annotator: int, counts: Array, data: Resamples) -> Codes:
    """The code (q,) that every code of an annotator becomes; `counts` are people's labels by unit
    and category, the annotator's included.
    """
    if _has_direction(coded):
        return np.arange(coded.q)[::-1]
    units = coded.labelled[:, annotator]
    codes = coded.codes[units, annotator].astype(np.intp)
    others = counts[units] - np.eye(coded.q)[codes]
    together = np.zeros((coded.q, coded.q))
    np.add.at(together, codes, data.frequency[coded.clusters[units]][:, None] * others)
    return best_match(together.T)


def _shared_with_others(
    coded: Coded, people: Sequence[int], data: Resamples
) -> Iterator[tuple[int, Codes, Array, Codes]]:
    """Yield each annotator's codes (units,), the others' mean marks (units, marks) and the clusters
    of units that they share; without those who share fewer than 30 clusters, or nearly all units
    with one other alone.
    """
    held, marks = coded.labelled[:, list(people)], _marks(coded)
    number, total = held.sum(axis=1), np.zeros((len(held), marks.shape[1]))
    for at, annotator in enumerate(people):
        total[held[:, at]] += marks[coded.codes[held[:, at], annotator]]
    for at, annotator in enumerate(people):
        units = held[:, at] & (number >= 2)
        together = held[units].sum(axis=0)
        together[at] = 0
        alone = len(people) > 2 and together.sum() - together.max(initial=0) < LEAST_SHARED
        if alone or data.count(coded.clusters, units)[1] < MIN_SHARED_UNITS:
            continue
        codes = coded.codes[units, annotator].astype(np.intp)
        others = (total[units] - marks[codes]) / (number[units] - 1)[:, None]
        yield annotator, codes, others, coded.clusters[units]


def _with_others(coded: Coded, people: Sequence[int], data: Resamples) -> dict[int, float]:
    """The covariance of each annotator's labels with the others' mean, over its standard error."""
    scores = {}
    for annotator, codes, others, clusters in _shared_with_others(coded, people, data):
        times = data.frequency[clusters]
        mark, share = _marks(coded)[codes], times / float(times.sum())
        product = (mark - share @ mark) * (others - share @ others)
        scores[annotator] = _over_error(product.sum(axis=1), clusters, data)
    return scores


def _against_others(coded: Coded, people: Sequence[int], data: Resamples) -> dict[int, float]:
    """Score each annotator whose labels go against the others': as `_with_others`, below 0; or,
    where categories have no direction, by how much less they agree than if best exchanged.
    """
    if _has_direction(coded):
        return _with_others(coded, people, data)
    scores, marks, counts = {}, _marks(coded), label_counts(coded, people)
    for annotator, codes, others, clusters in _shared_with_others(coded, people, data):
        exchanged = _recoding(coded, annotator, counts, data)[codes]
        lost = ((marks[codes] - marks[exchanged]) * others).sum(axis=1)
        scores[annotator] = _over_error(lost, clusters, data)
    return scores


def _marks(coded: Coded) -> Array:
    """Values of the categories: (q, 1) on a scale, else one column for each, (q, q)."""
    if coded.is_number:
        return np.asarray(coded.values, dtype=float)[:, None]
    return np.eye(coded.q) if coded.level == "nominal" else np.arange(float(coded.q))[:, None]


def _over_error(values: Array, clusters: Codes, data: Resamples) -> float:
    """The mean of values (units,) over its standard error, with clusters as units."""
    size = float(data.frequency[clusters].sum())
    mean = float(data.frequency[clusters] @ values) / size
    by_cluster = np.bincount(clusters, values - mean, minlength=len(data.frequency))
    error = float(np.sqrt(data.frequency @ by_cluster**2) / size)
    return 0.0 if abs(mean) < 1e-12 else mean / max(error, 1e-12)


GROSS = "gross_errors"
USUAL = 0.99
"""Share of the distances of people's labels of one unit that a gross error exceeds."""


def add_gross_error_rows(view: View) -> None:
    """Add `gross_errors` of every grader on an ordered scale: the share of its labels further from
    every person's than 99% of people's labels of one unit from each other; `at` is that distance.
    `low` and `high` are Clopper & Pearson's (1934) on the effective sample size.
    """
    coded, resamples = view.coded, view.resamples
    if coded.level == "nominal":
        return
    values = np.asarray(coded.values, dtype=float)
    for grader in coded.members("model"):
        people = coded.people_beside(grader)
        units, both = compared_units(coded, resamples, people, grader)
        if not both:
            continue
        unit, person = np.nonzero(coded.labelled[:, list(people)] & units[:, None])
        given = coded.codes[unit, np.asarray(people)[person]].astype(np.intp)
        far = _usual_distance(unit, given, values, resamples.mass[coded.clusters].astype(float))
        apart = np.abs(values[given] - values[coded.codes[unit, grader].astype(np.intp)])
        nearest = np.full(len(units), np.inf)
        np.minimum.at(nearest, unit, apart)
        gross = units & (nearest > far + 1e-9)
        sums = view.each_cluster(np.column_stack([gross, units]))
        share = Interval(*share_bounds(sums[:, 0], sums[:, 1], ALPHA))
        view.add(GROSS, share, units, a="humans", b=coded.raters[grader], at=f"{far:g}")


def _usual_distance(unit: Codes, given: Codes, values: Array, mass: Array) -> float:
    """The distance that 99% of pairs of labels of one unit do not exceed, each unit counting once,
    from labels with their units and codes.
    """
    q, number = len(values), np.bincount(unit, minlength=len(mass)).astype(float)
    together = np.zeros(q * q)
    for i, j in entry_pairs(unit):
        at = unit[i]
        weight = mass[at] / (number[at] * (number[at] - 1.0))
        together += np.bincount(given[i] * q + given[j], weight, q * q)
    apart = np.abs(values[:, None] - values).ravel()
    order = np.argsort(apart, kind="stable")
    reached = together[order].cumsum()
    return float(apart[order][np.searchsorted(reached, USUAL * reached[-1] - 1e-9)])
