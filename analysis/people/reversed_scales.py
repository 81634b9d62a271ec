"""Plain mistakes in labels: a scale read the other way round, or labels far from all others.

An annotator's labels and the others' mean label on the same units have a covariance. Where it is
clearly negative, by a normal bound with clusters as units, these labels are reversed, and all are
looked at again. Of three or more categories without order those are exchanged with which labels
clearly agree better so. Annotators are named only if their kappas bear it out.

A grader that reads the scale the other way round, or labels everything one category too high, has a
low kappa and is easily fixed. So its labels are compared with the humans' once more, reversed, a
category lower or higher, or, where categories have no order, exchanged to match the humans' best.

A kappa averages over units, and one gross error in a hundred hardly moves it. So labels further
from every person's than theirs are from each other are counted as gross errors, with the share of
them that a sample cannot rule out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median

import numpy as np

from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.overlap import KappaMeans, compared_units, entry_pairs
from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, data_table, deciding_kappa
from evenhand.analysis.bootstrap.influence import ALPHA
from evenhand.analysis.bootstrap.intervals import Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import text_of
from evenhand.analysis.people.ceiling import with_and_among_humans
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.types import Array, Codes, Labels, Numbers
from evenhand.analysis.writer import About, View


def best_match(together: Numbers) -> Codes:
    """Match each category (column) with a class (row), one to one.

    The match maximises the sum of the matched counts of `together` (q, q).

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
    together = sum((data_table(coded, grader, each, data) for each in people), np.zeros(()))
    if together.ndim == 2:
        best = best_match(together.T)
        if (best != code).any():
            yield REVERSED if coded.q == 2 else EXCHANGED, best


ANNOTATOR_KAPPA = "annotator_kappa"
AS_GIVEN, PERHAPS = "as_given", "perhaps_"
LEVEL = 0.001
"""Chance that anybody is named whose labels have nothing to do with the others'."""
CLEARLY_AGREE = NormalDist().inv_cdf(0.95)
LEAST_BESIDE = 10
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
    found, given = [], None
    for row in rows.rows.values():
        if row["statistic"] != ANNOTATOR_KAPPA:
            continue
        if row["at"] == AS_GIVEN:
            given = row
        elif given is not None:
            how, others = row["at"].removeprefix(PERHAPS), text_of(row["remarks"])
            found.append(Opposed(row["rater_a"], others, given, row, how, how == row["at"]))
    return found


def add_annotator_rows(view: View) -> None:
    """Add `annotator_kappa` of annotators who label the other way round: the mean kappa with the
    others, as it is and with the labels reversed or exchanged.

    Without an interval: it is a hint, though one that a verdict waits for.
    """
    coded, data = view.coded, _data_alone(view)
    people = coded.members("human")
    turned, codes = _turned(coded, people, data)
    others = [each for each in people if each not in turned]
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
    names = ", ".join(coded.raters[each] for each in others)
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
        against = [each for each in scores if scores[each] < -bound and each not in turned]
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
    own = coded.codes[units, annotator].astype(np.intp)
    others = counts[units] - np.eye(coded.q)[own]
    together = np.zeros((coded.q, coded.q))
    np.add.at(together, own, data.frequency[coded.clusters[units]][:, None] * others)
    return best_match(together.T)


def _beside_others(
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
        alone = len(people) > 2 and together.sum() - together.max(initial=0) < LEAST_BESIDE
        if alone or data.count(coded.clusters, units)[1] < MIN_SHARED_UNITS:
            continue
        own = coded.codes[units, annotator].astype(np.intp)
        others = (total[units] - marks[own]) / (number[units] - 1)[:, None]
        yield annotator, own, others, coded.clusters[units]


def _with_others(coded: Coded, people: Sequence[int], data: Resamples) -> dict[int, float]:
    """The covariance of each annotator's labels with the others' mean, over its standard error."""
    found = {}
    for annotator, codes, others, clusters in _beside_others(coded, people, data):
        times = data.frequency[clusters]
        own, share = _marks(coded)[codes], times / float(times.sum())
        product = (own - share @ own) * (others - share @ others)
        found[annotator] = _over_error(product.sum(axis=1), clusters, data)
    return found


def _against_others(coded: Coded, people: Sequence[int], data: Resamples) -> dict[int, float]:
    """How clearly each annotator's labels go against the others': as `_with_others`, below 0; or,
    where categories have no direction, by how much less they agree than if best exchanged.
    """
    if _has_direction(coded):
        return _with_others(coded, people, data)
    found, marks, counts = {}, _marks(coded), label_counts(coded, people)
    for annotator, codes, others, clusters in _beside_others(coded, people, data):
        exchanged = _recoding(coded, annotator, counts, data)[codes]
        lost = ((marks[codes] - marks[exchanged]) * others).sum(axis=1)
        found[annotator] = _over_error(lost, clusters, data)
    return found


def _marks(coded: Coded) -> Array:
    """What each category counts as, (q, 1) on a scale and else (q, q)."""
    if coded.is_number:
        return np.asarray(coded.values, dtype=float)[:, None]
    return np.eye(coded.q) if coded.level == "nominal" else np.arange(float(coded.q))[:, None]


def _over_error(values: Array, clusters: Codes, data: Resamples) -> float:
    """The mean of values (units,) over its standard error, with clusters as units."""
    size = float(data.frequency[clusters].sum())
    mean = float(data.frequency[clusters] @ values) / size
    each = np.bincount(clusters, values - mean, minlength=len(data.frequency))
    error = float(np.sqrt(data.frequency @ each**2) / size)
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
        each = view.each_cluster(np.column_stack([gross, units]))
        found = Interval(*share_bounds(each[:, 0], each[:, 1], ALPHA))
        view.add(GROSS, found, units, a="humans", b=coded.raters[grader], at=f"{far:g}")


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
