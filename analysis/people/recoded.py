"""Recodings of a grader's labels: is it wrong in a simple way?

A grader that reads the scale the other way round, or labels everything one category too high, has a
low kappa and is easily fixed. So its labels are compared with the humans' once more, reversed, a
category lower or higher, or, where categories have no order, exchanged to match the humans' best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.agreement.pairs import data_table, deciding_kappa
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.match import best_match
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.people.ceiling import with_and_among_humans
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Codes
from evenhand.analysis.writer import Writer

RECODED = "kappa_recoded"
REVERSED, LOWER, HIGHER, EXCHANGED = "reversed", "one_lower", "one_higher", "exchanged"
GAIN = 0.2
"""Gain in kappa from which a recoding has a row."""


def add_recoded_rows(rows: ResultRows, coded: Coded, resamples: Resamples) -> None:
    """Add `kappa_recoded` of graders whose mean kappa with humans is far higher when recoded.

    Without an interval: it is a hint, on which no verdict rests.
    """
    rng = np.random.default_rng(0)
    data = Resamples(resamples.frequency, 0, rng, weight=resamples.weight)
    out, plain = Writer.of(rows, coded, data), KappaMeans(coded, data, [deciding_kappa(coded)])
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
                units = out.count(held & coded.labelled_by_any(coded.people_beside(grader)))
                note = ", ".join(
                    f"{coded.categories[was]} as {coded.categories[now]}"
                    for was, now in enumerate(code)
                    if was != now
                )
                found = Interval.point(float(other.values[0]))
                of = {"a": "humans", "b": coded.raters[grader], "at": name}
                out.add_interval(RECODED, found, units, **of, note=note)


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
