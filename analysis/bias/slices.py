"""Slices: is a grader more lenient than humans in one part of the sample than in the rest?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenhand.analysis.bias.audit_rows import AuditRows
from evenhand.analysis.bias.calls import Calls
from evenhand.analysis.bias.shift import Shifts
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.types import Mask


def add_slice_bias_rows(
    audit: AuditRows, calls: Calls | None, columns: Sequence[UnitColumn]
) -> None:
    """Add `bias_slice` of every grader and every value of the columns.

    It is the affirmative calls in the slice minus those in the rest, beyond what humans' score of
    the same units explains.

    Agreement with humans in the slice is another question: `slice_difference`.
    """
    if calls is None:
        return
    for column in columns:
        if len(column.values) < 2:
            continue
        codes = column.codes[calls.unit]
        shifts = [
            Shifts(calls, np.where(codes >= 0, codes == code, np.nan), audit.resamples)
            for code in range(len(column.values))
        ]
        for grader in calls.graders:
            for code, value in enumerate(column.values):
                shift = shifts[code].of(grader)
                if shift is not None and (units := _called(calls, grader, codes == code)).any():
                    audit.add_shift(
                        "bias_slice",
                        calls.raters[grader],
                        replace(shift, counts=audit.resamples.count(calls.clusters, units)),
                        subset=calls.part(f"{column.name}={value}"),
                    )


def _called(calls: Calls, grader: int, inside: Mask) -> Mask:
    """Return the units of the slice that the grader and a human called."""
    by_people = ~np.isnan(calls.people).all(axis=1)
    return np.asarray(inside & by_people & ~np.isnan(calls.values[:, grader]))
