"""Annotators who label the other way round: against the others, who agree with one another.

An annotator's labels and the others' mean label on the same units have a covariance. Where it is
clearly negative, by a normal bound with clusters as units, these labels are reversed, and all are
looked at again. Of three or more categories without order those are exchanged with which labels
clearly agree better so. Annotators are named only if their kappas bear it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median

import numpy as np

from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS, deciding_kappa
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.match import best_match
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import text_of
from evenhand.analysis.people.recoded import EXCHANGED, GAIN, REVERSED
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.types import Array, Codes, Labels
from evenhand.analysis.writer import Writer

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
    return list(_opposed(row for row in rows.rows.values() if row["statistic"] == ANNOTATOR_KAPPA))


def _opposed(rows: Iterable[ResultRow]) -> Iterator[Opposed]:
    given = None
    for row in rows:
        if row["at"] == AS_GIVEN:
            given = row
        elif given is not None:
            how = row["at"].removeprefix(PERHAPS)
            is_sure = how == row["at"]
            yield Opposed(row["rater_a"], text_of(row["remarks"]), given, row, how, is_sure)


def add_annotator_rows(rows: ResultRows, coded: Coded, resamples: Resamples) -> None:
    """Add `annotator_kappa` of annotators who label the other way round: the mean kappa with the
    others, as it is and with the labels reversed or exchanged.

    Without an interval: it is a hint, though one that a verdict waits for.
    """
    rng = np.random.default_rng(0)
    data = Resamples(resamples.frequency, 0, rng, weight=resamples.weight)
    people = coded.members("human")
    turned, codes = _turned(coded, people, data)
    others = [each for each in people if each not in turned]
    is_sure = len(turned) < len(others)
    if not turned or len(turned) > len(others) or (is_sure and not _agree(coded, others, data)):
        return
    if not (is_sure or _has_direction(coded)):
        return  # two can be exchanged to agree by chance
    out, name = Writer.of(rows, coded, resamples), deciding_kappa(coded)
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
                out.add_value(ANNOTATOR_KAPPA, kappa, shared, a=who, b="humans", at=at, note=names)


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
        code = _recoding(view, worst, _label_counts(view, people), data)
        held = view.labelled[:, worst]
        codes = codes.copy()
        codes[held, worst] = code[codes[held, worst]]
        turned.append(worst)


def _agree(coded: Coded, people: Sequence[int], data: Resamples) -> bool:
    scores = _with_others(coded, people, data)
    return bool(scores) and median(scores.values()) > CLEARLY_AGREE


def _has_direction(coded: Coded) -> bool:
    """Return True if categories can be reversed: they have an order, or there are two."""
    return coded.level != "nominal" or coded.q == 2


def _label_counts(coded: Coded, people: Sequence[int]) -> Array:
    """How many people gave each unit each category, (units, q)."""
    unit, person = np.nonzero(coded.labelled[:, list(people)])
    given = coded.codes[unit, np.asarray(people, dtype=np.intp)[person]].astype(np.intp)
    counts = np.bincount(unit * coded.q + given, minlength=len(coded.codes) * coded.q)
    return counts.reshape(-1, coded.q).astype(float)


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
        own, share = _marks(coded)[codes], data.frequency[clusters] / _size(clusters, data)
        product = (own - share @ own) * (others - share @ others)
        found[annotator] = _over_error(product.sum(axis=1), clusters, data)
    return found


def _against_others(coded: Coded, people: Sequence[int], data: Resamples) -> dict[int, float]:
    """How clearly each annotator's labels go against the others': as `_with_others`, below 0; or,
    where categories have no direction, by how much less they agree than if best exchanged.
    """
    if _has_direction(coded):
        return _with_others(coded, people, data)
    found, marks, counts = {}, _marks(coded), _label_counts(coded, people)
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


def _size(clusters: Codes, data: Resamples) -> float:
    return float(data.frequency[clusters].sum())


def _over_error(values: Array, clusters: Codes, data: Resamples) -> float:
    """The mean of values (units,) over its standard error, with clusters as units."""
    size = _size(clusters, data)
    mean = float(data.frequency[clusters] @ values) / size
    each = np.bincount(clusters, values - mean, minlength=len(data.frequency))
    error = float(np.sqrt(data.frequency @ each**2) / size)
    return 0.0 if abs(mean) < 1e-12 else mean / max(error, 1e-12)
