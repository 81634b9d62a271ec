"""When a person's labels deserve a second look, and the reasons in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.study.settings.quality import QualitySettings

SHORTEST_RUN = 8
"""A shorter run of one label says nothing, however rare it is."""


def reasons(row: Mapping[str, Any], rules: QualitySettings) -> Iterator[tuple[str, str]]:
    """Yield (flag, reason in words) for every flag that a row of `rater_quality` raises.

    A difference is flagged only if its whole interval lies beyond the margin.
    """
    if row["answers"] >= rules.min_answers:
        yield from _of_answers(row, rules)
    failed = row["attention_given"] - row["attention_passed"]
    if failed > rules.attention:
        yield "attention", f"failed {failed} of {row['attention_given']} attention checks"


def _of_answers(row: Mapping[str, Any], rules: QualitySettings) -> Iterator[tuple[str, str]]:
    if row["pace"] < rules.fast:
        yield "fast", f"takes {row['pace']:.0%} of the others' time"
    at_work = row["idle_minutes"] + row["work_minutes"]
    if row["idle_minutes"] > rules.idle * at_work:
        yield "idle", f"{row['idle_minutes']:.0f} of {at_work:.0f} minutes without an answer"
    if row["longest_run"] >= max(SHORTEST_RUN, rules.run * row["usual_run"]):
        usual = f"up to {row['usual_run']:.0f} would be usual"
        yield "run", f"the same label {row['longest_run']} times in a row; {usual}"
    if row["behind_high"] < -rules.agreement:
        behind = f"{-row['behind']:.2f} behind what the others reach"
        yield "low_agreement", f"kappa with the others {row['agreement']:.2f}, {behind}"
    if row["leaning_low"] > rules.leaning:
        more = f"on {row['leaning']:.0%} of units more than the others do"
        yield "leaning", f"uses {row['leaning_at']} {more}"
    if row["drift_high"] < -rules.drift:
        yield "drift", f"agreement fell by {-row['drift']:.2f} in the second half"
