"""Slices: is a grader more lenient than people in one part of the sample than in the rest?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.analysis.bias.audit_rows import AuditRows
from evenhand.analysis.bias.beside_people import BesidePeople
from evenhand.analysis.bias.calls import Calls
from evenhand.analysis.labels.units import UnitColumn


def add_slice_bias_rows(
    audit: AuditRows, calls: Calls | None, columns: Sequence[UnitColumn]
) -> None:
    """`bias_slice` of every grader and every value of the columns: affirmative calls in the slice
    less those in the rest, and from that people's own difference, scaled.

    How well it agrees with people there is another question: `slice_difference`.
    """
    if calls is None:
        return
    for column in columns:
        if len(column.values) < 2:
            continue
        codes = column.codes[calls.unit]
        inside = codes[:, None] == np.arange(len(column.values))
        x = np.where(codes[:, None] >= 0, inside, np.nan)
        for grader in calls.graders:
            beside = BesidePeople(calls, grader, audit.resamples)
            values = beside.slopes(x)
            for code, value in enumerate(column.values):
                counts = beside.counts(inside[:, code])
                if counts[0]:
                    audit.add(
                        "bias_slice",
                        calls.raters[grader],
                        values[:, code],
                        counts,
                        subset=calls.part(f"{column.name}={value}"),
                        note=beside.note,
                        reason=beside.reason,
                    )
