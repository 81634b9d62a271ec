"""Numbers as they are shown, each bound to the results row it was read off."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.results import ResultRow, key_of

__all__ = ["ALL", "ALL_BINARY", "DASH", "Figure", "Figures", "explained", "shown"]

DASH = "—"
ALL, ALL_BINARY = "all", "all" + BINARY

_SIGNED = {
    "human_ceiling_difference",
    "human_ceiling_difference_held_out",
    "threshold_held_out_gain",
    "slice_difference",
    "rater_agreement_drift",
    "direction_net",
    "rogan_gladen_bias",
    *(f"bias_{what}" for what in ("side", "side_share", "side_errors", "order", "length")),
    *("bias_self_preference", "bias_rater_group", "bias_slice"),
}
_PLACES = {
    **dict.fromkeys(("prevalence", "coverage", "subject_score", "sensitivity", "specificity"), 3),
    **dict.fromkeys(("rate_human", "rate_raw", "rate_rogan_gladen", "rate_ppi"), 3),
    **dict.fromkeys(("rater_seconds_median", "rater_seconds_part"), 1),
    **dict.fromkeys(("confusion", "grades_attempted", "grades_scored", "grades_unscored"), 0),
    **dict.fromkeys(("tokens_input", "tokens_output"), 0),
}
"""Places behind the point; 2 elsewhere."""
_THREE_DIGITS = {
    "threshold",
    "threshold_recommended",
    "confidence_cut",
    "subject_rank",
    "rate_rank_raw",
    "rate_rank_ppi",
}
"""Shown to three digits, however small or whole."""
_FIRST_LINE = 2
_REASONS = {
    "no_variation": "no variation",
    "no_pairable_units": "no unit has two labels",
    "no_labels": "no labels",
    "no_eligible_annotator": "no annotator has enough units",
    "too_few_clusters": "too few clusters for an interval",
    "too_few_subjects": "too few subjects",
    "not_resampled": "not resampled",
    "too_few_raters": "too few raters",
    "category_not_used": "nobody used the category",
    "grader_not_informative": "sensitivity + specificity - 1 may be 0",
    "no_unlabelled_units": "nothing graded beyond people's labels",
    "outside_zero_one": "beyond 0 to 1: its error rates are not those of all subjects",
    "zero_variance": "no variance to test",
    "target_not_reached": "no cut reaches the target",
    "nothing_kept": "nothing is kept",
    "not_testable": "no test possible",
    "people_agree_by_chance": "people agree with each other no better than chance",
    "constant_rater": "constant rater: always one category, so kappa cannot tell it from chance",
}


@dataclass(frozen=True)
class Figure:
    """One results row, rounded for display.

    `line` is its row in results.csv as a spreadsheet counts; `bounds` are low, estimate, high as
    they are, NaN where undefined; the rest is text. `interval` is empty where there is
    none; `reason` says why the estimate is undefined; `remarks` is all else the row's note says.
    """

    key: tuple[str, str, str, str, str, str]
    line: int
    n_units: int
    n_clusters: int
    bounds: tuple[float, float, float]
    estimate: str
    interval: str
    reason: str
    remarks: tuple[str, ...]

    @property
    def statistic(self) -> str:
        return self.key[1]

    @property
    def raters(self) -> tuple[str, str]:
        return self.key[2], self.key[3]

    @property
    def subset(self) -> str:
        return self.key[4]

    @property
    def at(self) -> str:
        return self.key[5]

    def datum(self, **more: object) -> dict[str, object]:
        """What a chart draws of it: the bounds as they are, None where undefined, and its row."""
        low, estimate, high = (None if math.isnan(each) else each for each in self.bounds)
        found = {"estimate": estimate, "low": low, "high": high, "shown": self.estimate}
        return {**found, "row": self.line, **more}


def shown(value: float, statistic: str = "") -> str:
    """A number rounded for display: shares to three places, coefficients to two.

    >>> shown(0.8482), shown(-0.004), shown(float("nan")), shown(0.0042, "prevalence")
    ('0.85', '0.00', '—', '0.004')
    >>> shown(0.021, "human_ceiling_difference"), shown(0.123456, "threshold")
    ('+0.02', '0.123')
    """
    if math.isnan(value):
        return DASH
    if statistic in _THREE_DIGITS:
        return f"{value:.3g}"
    if statistic.startswith("bias_") and statistic.endswith("_p"):
        return f"{value:.2g}"
    places = _PLACES.get(statistic, 2)
    value = round(value, places) + 0.0  # turns -0.0 into 0.0
    return f"{value:+.{places}f}" if statistic in _SIGNED else f"{value:.{places}f}"


class Figures:
    """The `results` table, looked up by key."""

    def __init__(self, rows: Sequence[ResultRow]) -> None:
        each = (_figure(row, line) for line, row in enumerate(rows, start=_FIRST_LINE))
        self._by_key: dict[tuple[str, ...], Figure] = {figure.key: figure for figure in each}
        self._families: dict[tuple[str, str], dict[str, list[Figure]]] = {}
        for figure in self._by_key.values():
            subsets = self._families.setdefault(figure.key[:2], {})
            subsets.setdefault(figure.subset, []).append(figure)

    @property
    def rubrics(self) -> list[str]:
        """All rubrics, in the order of the table."""
        return _distinct(figure.key[0] for figure in self._by_key.values())

    @property
    def statistics(self) -> list[str]:
        """All statistics, in the order of the table."""
        return _distinct(figure.statistic for figure in self._by_key.values())

    def get(
        self,
        rubric: str,
        statistic: str,
        rater_a: str,
        rater_b: str = "",
        subset: str = ALL,
        at: str = "",
    ) -> Figure | None:
        """The figure with this key."""
        return self.by_key((rubric, statistic, rater_a, rater_b, subset, at))

    def by_key(self, key: tuple[str, ...]) -> Figure | None:
        """The figure with this key."""
        return self._by_key.get(key)

    def everywhere(self, rubric: str, statistic: str) -> list[Figure]:
        """All figures of one statistic, whatever they are on, in the order of the table."""
        families = self._families.get((rubric, statistic), {}).values()
        return sorted((each for family in families for each in family), key=lambda each: each.line)

    def select(self, rubric: str, statistic: str, subset: str = ALL) -> list[Figure]:
        """All figures of one statistic, in the order of the table."""
        return self._families.get((rubric, statistic), {}).get(subset, [])

    def slices(self, rubric: str, statistic: str) -> dict[str, list[Figure]]:
        """All figures of one statistic in parts of the sample, on the categories, by column."""
        found: dict[str, list[Figure]] = {}
        for subset, figures in self._families.get((rubric, statistic), {}).items():
            column, is_slice, _ = subset.partition("=")
            if is_slice and not subset.endswith(BINARY):
                found.setdefault(column, []).extend(figures)
        return found


def _figure(row: ResultRow, line: int) -> Figure:
    key = key_of(row)
    estimate, low, high = row["estimate"], row["low"], row["high"]
    remarks = [explained(part) for part in row["note"].split("; ") if part]
    undefined = math.isnan(estimate)
    reason = (remarks.pop(0) if remarks else "undefined") if undefined else ""
    no_interval = math.isnan(low) or math.isnan(high)
    interval = "" if no_interval else f"[{shown(low, key[1])}, {shown(high, key[1])}]"
    return Figure(
        key=key,
        line=line,
        n_units=row["n_units"],
        n_clusters=row["n_clusters"],
        bounds=(low, estimate, high),
        estimate=shown(estimate, key[1]),
        interval=interval,
        reason=reason,
        remarks=tuple(remarks),
    )


def explained(part: str) -> str:
    """A part of a note in words; what is not a known code stays as it is."""
    code, _, rest = part.partition(" ")
    return f"{_REASONS[code]} {rest}".strip() if code in _REASONS else part


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
