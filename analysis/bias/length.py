"""Length: does a grader reward or punish length more than humans do?"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.bias.audit_rows import AuditRows
from evenhand.analysis.bias.calls import Calls
from evenhand.analysis.bias.shift import Shifts
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.types import Array

LENGTH_COLUMNS = ("response_words",)
PAIR_LENGTH_COLUMNS = ("response_a_words", "response_b_words")


def add_length_rows(
    audit: AuditRows, verdicts: Calls | None, directed: Calls | None, facts: UnitFacts
) -> None:
    """Add `bias_length` of every grader: the rise of its calls with every doubling of the length.

    The rise is beyond what humans' score of the same units explains (see `analysis.bias.shift`).

    For responses it relates the verdict to the length (column `response_words`); for pairs, the
    side favoured to how much longer side a is than b (`response_a_words`, `response_b_words`).
    """
    for calls, columns, unit in (
        (verdicts, LENGTH_COLUMNS, "per doubling of the response"),
        (directed, PAIR_LENGTH_COLUMNS, "towards a side, per doubling of its length"),
    ):
        doublings = _doublings(facts, columns)
        if calls is None or np.isnan(doublings).all():
            continue
        shifts = Shifts(calls, doublings[calls.unit], audit.resamples)
        for grader in calls.graders:
            shift = shifts.of(grader)
            if shift is not None:
                audit.add_shift(
                    "bias_length",
                    calls.raters[grader],
                    shift,
                    subset=calls.subset,
                    at=columns[0],
                    note=unit,
                )


def _doublings(facts: UnitFacts, columns: tuple[str, ...]) -> Array:
    """Return log2 of the words (with two columns, of their ratio); NaN where unknown."""
    words = [facts.numbers(name) for name in columns]
    logs = [np.log2(np.where(each > 0, each, np.nan)) for each in words]
    return np.asarray(logs[0] if len(logs) == 1 else logs[0] - logs[1])
