"""What a pilot says of the study to come: why people disagree, and what more would bring."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evenhand.cli.terminal import console, print_table

if TYPE_CHECKING:
    from evenhand.analysis import Analysis
    from evenhand.analysis.planning.g_study import VarianceComponents
    from evenhand.analysis.results import ResultRow

__all__ = ["describe_pilot"]

SIZES = (1.0, 2.0, 4.0)
"""Samples so many times the pilot."""
MOST_RATERS = 6
_ROWS = {
    "kappa": ("weighted_kappa_quadratic", "cohen_kappa"),
    "alpha": ("krippendorff_alpha_ordinal", "krippendorff_alpha_nominal"),
    "ac1": ("gwet_ac1",),
    "rate": ("prevalence",),
    "threshold": ("threshold",),
}


def describe_pilot(analysis: Analysis, arguments: argparse.Namespace) -> None:
    """For every rubric: variance components, what more raters bring, and what more pairs bring."""
    for rubric, found in analysis.components.items():
        _print_components(rubric or "labels", found)
        _print_raters(found)
    _print_intervals(analysis, arguments)
    for verdict in analysis.verdicts:
        if verdict["more_clusters"]:
            console().print(
                f"To decide on {verdict['grader']}"
                f"{' on ' + verdict['rubric'] if verdict['rubric'] else ''}: label about "
                f"{verdict['more_clusters']} more clusters, if the estimate stays."
            )


def _print_components(rubric: str, found: VarianceComponents) -> None:
    names = ("units differ", "raters are lenient or strict", "everything else")
    values = (found.unit, found.rater, found.residual)
    print_table(
        ["source", "variance", "share"],
        [
            (name, f"{value:.3f}", f"{share:.0%}" if share == share else "-")
            for name, value, share in zip(names, values, found.shares, strict=True)
        ],
        title=f"{rubric}: where labels differ ({found.n_units} units x {found.n_raters} people)",
    )


def _print_raters(found: VarianceComponents) -> None:
    from evenhand.analysis import d_study

    rows = [
        (str(one.raters), f"{one.relative:.2f}", f"{one.absolute:.2f}")
        for one in (d_study(found, raters) for raters in range(1, MOST_RATERS + 1))
    ]
    print_table(["people per unit", "ranking units", "placing units"], rows, title="Dependability")


def _print_intervals(analysis: Analysis, arguments: argparse.Namespace) -> None:
    """The wanted statistic as the pilot has it, and how wide its interval would be with more."""
    from evenhand.analysis.planning.more_clusters import clusters_for_width

    rows = []
    for row in _wanted(analysis, arguments.statistic):
        half = (row["high"] - row["low"]) / 2
        more = clusters_for_width(row["n_clusters"], row["low"], row["high"], arguments.half_width)
        who = " · ".join(part for part in (row["rater_a"], row["rater_b"]) if part)
        rows.append(
            (
                f"{row['rubric']} {who} {row['at']}".strip(),
                f"{row['estimate']:.2f}",
                *(f"±{half / size**0.5:.2f}" for size in SIZES),
                "-" if more is None else str(more),
            )
        )
    if not rows:
        console().print(f"The pilot has no interval of {arguments.statistic} to plan from.")
        return
    columns = ["", "estimate", "pilot's size", "twice", "four times"]
    more = f"more for ±{arguments.half_width:g}"
    print_table([*columns, more], rows, title=f"Half the 95% interval of {arguments.statistic}")
    console().print("Intervals narrow with the root of the number of pairs, if the estimate stays.")


def _wanted(analysis: Analysis, statistic: str) -> list[ResultRow]:
    results = analysis.results
    found: list[ResultRow] = []
    for rubric in dict.fromkeys(results["rubric"]):
        own = results[(results["rubric"] == rubric) & (results["rater_a"] == "humans")]
        for name in _ROWS[statistic]:
            rows = own[(own["statistic"] == name) & own["subset"].isin(["all", "all|binary"])]
            rows = rows[rows["low"].notna()]
            if not rows.empty:
                found += rows.to_dict("records")
                break
    return found
