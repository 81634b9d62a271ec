"""Selective labels: did it depend on labels which units got several?

Agreement on units with several labels is that on all units only if they were chosen without regard
to labels. A third label where two differ, or a second one on hard units, makes people look as if
they disagreed more than they do, and a grader as if it kept up with them.

*Test.* A unit's number of labels is held against people's distance from one another and from each
grader, people's labels and the graders' labels; within a person or a pair of people, lest strict
people pass for hard units. Scores by cluster, studentised; the largest is compared with those under
random signs (Liu 1988; Westfall & Young 1993). One label against several is tested at the level
.20, as a selection that is missed lets graders pass; two against more, which biases little, at .05.

*Handling.* Of selected labels those are counted that were given before the others, or by those who
labelled nearly everything; a third label where two differ leaves any two that differ as the first.
Else agreement on all units is not known. `python -m benchmarks.designs` shows how often verdicts
are wrong under selective designs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.analysis.agreement.overlap import OWN_SHARE, entry_pairs
from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, distances
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, listed
from evenhand.analysis.types import Array, Codes, DataFrame, Labels, Mask
from evenhand.analysis.writer import About, RubricView
from evenhand.texts import written

LEVEL_SINGLE, LEVEL_MORE = 0.20, 0.05
"""Levels of the tests of one label against several, and of two against more."""
NEARLY_ALL = 0.95
"""Who labelled this share of the units is taken to have labelled all."""
BY_LABELS = "agreement_by_labels"
_DRAWS = 999
_SIGNS_AT_ONCE = 4_000_000

Distance = Callable[[Codes, Codes], Array]
"""Distances of labels, given as two arrays of codes."""
How = Literal["all", "first", "nearly_all", "tie_break", "unknown"]


@dataclass(frozen=True)
class Selection:
    """Whether labels were selected, and which of them agreement is computed of.

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
        """Which labels agreement is computed of, in a sentence; empty where it is all of them, or
        where the verdicts say that it is not known.
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
    if first is not None:
        return Selection("first", least, counted=_mask(labels, people, first))
    if core.sum() >= 2:
        others = tuple(labels.raters[at] for at, own in zip(people, core, strict=True) if not own)
        kept = np.broadcast_to(core, held.shape)
        return Selection("nearly_all", left_out=others, counted=_mask(labels, people, kept))
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


def _mask(labels: LabelMatrix, people: list[int], kept: Mask) -> Mask:
    """Mask (units, raters) of all labels but those of `people` that are not `kept`."""
    counted = np.ones(labels.codes.shape, dtype=bool)
    counted[:, people] = kept
    return counted


def label_times(ratings: DataFrame, units: Sequence[str], raters: Sequence[str]) -> Array | None:
    """Return when each label was given, (units, raters) in seconds, NaN where unknown; None where
    no time is known. Of several labels of a rater the first counts.
    """
    import pandas as pd

    known = ratings[(ratings["created_at"] != "") & (ratings["label"] != "")]
    if known.empty:
        return None
    stamps = pd.to_datetime(known["created_at"], utc=True, format="ISO8601", errors="coerce")
    seconds = (stamps - pd.Timestamp(0, tz="UTC")).dt.total_seconds().to_numpy(dtype=float)
    rows = pd.Index(units).get_indexer(pd.Index(known["unit_id"]))
    columns = pd.Index(raters).get_indexer(pd.Index(known["rater_id"]))
    times = np.full((len(units), len(raters)), np.nan)
    for at in np.argsort(-seconds, kind="stable"):
        if rows[at] >= 0 and columns[at] >= 0:
            times[rows[at], columns[at]] = seconds[at]
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
    coded: Coded,
    codes: Labels,
    resamples: Resamples,
    rng: np.random.Generator,
    most: int | None = None,
) -> float:
    """Return a p value: does the number of people's labels `codes` (units, people) of a unit depend
    on labels? 1 where all units have the same number, or nothing varies. Numbers above `most` count
    as `most`.
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
        values = np.eye(coded.q)[:, min(coded.q - 1, 1) :] if coded.q == 2 else np.eye(coded.q)
    weight = 1.0 / (codes >= 0).sum(axis=1)[unit]

    def within(key: Codes, at: Codes, what: Array, own: Array) -> Array:
        """Scores within each `key` of entries of the units `at`."""
        many = own * copies[at]
        total = np.maximum(np.bincount(key, many), 1e-300)
        centred = [v - (np.bincount(key, many * v) / total)[key] for v in (number[at], what)]
        return np.asarray(np.bincount(at, own * centred[0] * centred[1], n), dtype=float)

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
