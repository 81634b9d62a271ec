"""`plan` with a pilot: what would decide, why people disagree, and what more data would bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.cli.terminal import console, print_table
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis import Analysis
    from evenhand.analysis.planning.g_study import VarianceComponents
    from evenhand.analysis.results import ResultRow

GROWTH = (1.0, 2.0, 4.0)
"""Sizes of samples, as multiples of the pilot."""
MORE_PEOPLE = (0, 1, 2, 4, 8, 16)
"""Numbers of people to add to the pilot's."""
MOST_RATERS = 6
STATISTICS = {
    "kappa": ("weighted_kappa_quadratic", "cohen_kappa"),
    "alpha": ("krippendorff_alpha_ordinal", "krippendorff_alpha_nominal"),
    "ac1": ("gwet_ac1",),
    "rate": ("prevalence",),
    "threshold": ("threshold",),
}
"""Statistics that may be wanted, and the rows in which a pilot may have them, in order."""


def describe_pilot(analysis: Analysis, statistic: str, wanted: float) -> None:
    """Print what would decide; then for each rubric its variance components, and the effect of more
    data.
    """
    _print_deciding(analysis)
    for rubric, found in analysis.components.items():
        _print_components(rubric or "labels", found)
        _print_raters(found)
    _print_intervals(analysis, statistic, wanted)


def _print_deciding(analysis: Analysis) -> None:
    """Print the number of pairs that would decide on each grader, by the number of people per
    pair.
    """
    from evenhand.analysis.verdicts.pilot import pilots

    found = pilots(analysis.rows)
    if not found:
        console().print(written("pilot.no_grader"))
        return
    first = max(3, *(each.people for each in found))
    numbers = [first + more for more in MORE_PEOPLE]
    rows = [
        (
            f"{each.rubric} {each.grader}".strip(),
            f"{each.difference:+z.2f}",
            str(each.clusters),
            _or_none(each.clusters_to_decide()),
            *(_or_none(each.clusters_to_decide(k)) if each.people else "-" for k in numbers),
        )
        for each in found
    ]
    print_table(
        ["", "difference", "now", "these", *(f"like {k}" for k in numbers)],
        rows,
        title=written("pilot.to_decide"),
    )
    console().print(written("pilot.if_it_stays"))


def _or_none(clusters: int | None) -> str:
    return "none" if clusters is None else str(clusters)


def _print_components(rubric: str, found: VarianceComponents) -> None:
    names = ("units differ", "annotators are lenient or strict", "everything else")
    values = (found.unit, found.rater, found.residual)
    print_table(
        ["source", "variance", "share"],
        [
            (name, f"{value:.3f}", f"{share:.0%}" if share == share else "-")
            for name, value, share in zip(names, values, found.shares, strict=True)
        ],
        title=written(
            "pilot.components", rubric=rubric, units=found.n_units, people=found.n_raters
        ),
    )


def _print_raters(found: VarianceComponents) -> None:
    from evenhand.analysis import d_study

    rows = [
        (str(one.raters), f"{one.relative:.2f}", f"{one.absolute:.2f}")
        for one in (d_study(found, raters) for raters in range(1, MOST_RATERS + 1))
    ]
    print_table(
        ["annotators per unit", "ranking units", "placing units"], rows, title="Dependability"
    )


def _print_intervals(analysis: Analysis, statistic: str, wanted: float) -> None:
    """The wanted statistic as the pilot has it, and how wide its interval would be with more."""
    from evenhand.analysis.labels.matrix import BINARY
    from evenhand.analysis.planning.more_clusters import clusters_for_width

    rows = []
    for row in _wanted(analysis, statistic):
        half = (row["high"] - row["low"]) / 2
        more = clusters_for_width(row["n_clusters"], row["low"], row["high"], wanted)
        who = " · ".join(part for part in (row["rater_a"], row["rater_b"]) if part)
        if row["subset"].endswith(BINARY):
            who = f"{who}, binary verdict"
        rows.append(
            (
                f"{row['rubric']} {who} {row['at']}".strip(),
                f"{row['estimate']:.2f}",
                *(f"±{half / size**0.5:.2f}" for size in GROWTH),
                "-" if more is None else str(more),
            )
        )
    if not rows:
        console().print(written("pilot.no_interval", statistic=statistic))
        return
    columns = ["", "estimate", "pilot's size", "twice", "four times"]
    title = written("pilot.half_widths", statistic=statistic)
    print_table([*columns, f"more for ±{wanted:g}"], rows, title=title)
    console().print(written("pilot.narrowing"))


def _wanted(analysis: Analysis, statistic: str) -> list[ResultRow]:
    results = analysis.results
    found: list[ResultRow] = []
    for rubric in dict.fromkeys(results["rubric"]):
        own = results[(results["rubric"] == rubric) & (results["rater_a"] == "humans")]
        for name in STATISTICS[statistic]:
            rows = own[(own["statistic"] == name) & own["subset"].isin(["all", "all|binary"])]
            rows = rows[rows["low"].notna()]
            if not rows.empty:
                found += rows.to_dict("records")
                break
    return found
