"""`plan`: how many pairs, raters and overlaps a wanted precision takes.

Without a pilot it goes by what is assumed of the raters. With one - a study that has begun, or a
file - it says why people disagree there, and what more people or more pairs would bring.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evenhand.cli.setting_options import given_settings
from evenhand.cli.sources import add_source, analysis_of
from evenhand.cli.terminal import console, print_table
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.analysis import Analysis, Scenario
    from evenhand.analysis.planning.g_study import VarianceComponents
    from evenhand.analysis.results import ResultRow

SIZES = (50, 100, 250, 500, 1000)
"""Pairs, where there is no pilot."""
GROWTH = (1.0, 2.0, 4.0)
"""Samples so many times the pilot."""
MOST_RATERS = 6
STATISTICS = {
    "kappa": ("weighted_kappa_quadratic", "cohen_kappa"),
    "alpha": ("krippendorff_alpha_ordinal", "krippendorff_alpha_nominal"),
    "ac1": ("gwet_ac1",),
    "rate": ("prevalence",),
    "threshold": ("threshold",),
}
"""What may be wanted, and the rows in which a pilot has it, the first that is there."""
ASSUMED = (
    "--agreement",
    "--prevalence",
    "--raters",
    "--overlap",
    "--subjects",
    "--likeness",
    "--power",
)
_UNUSED = (
    "--sides",
    "--slice",
    "--group",
    "--variant",
    "--rater-slice",
    "--sensitivity-cluster",
    "--epsilon",
    "--ensemble",
    "--leaning",
    "--family",
    "--confidence-cut",
    "--confidence-target",
    "--min-coverage",
    "--min-stability",
    "--min-information",
    "--bias-bound",
)
"""Options of files that say nothing of people's agreement, nor of how many pairs decide."""


def _options(plan: Parser) -> None:
    plan.add_argument("--statistic", choices=STATISTICS, default="kappa", help="(kappa)")
    plan.add_argument(
        "--half-width", type=float, default=0.1, metavar="W", help="half a 95%% interval (0.1)"
    )
    assumed = plan.add_argument_group("without a pilot")
    assumed.add_argument(
        "--agreement", type=float, default=0.85, metavar="P", help="of two people (0.85)"
    )
    assumed.add_argument(
        "--prevalence", type=float, default=0.5, metavar="P", help="share of affirmatives (0.5)"
    )
    assumed.add_argument("--raters", type=int, default=3, metavar="N", help="people per unit (3)")
    assumed.add_argument(
        "--overlap", type=float, default=1.0, metavar="P", help="units that all label (1.0)"
    )
    assumed.add_argument(
        "--subjects", type=int, default=1, metavar="N", help="answers per pair (1)"
    )
    assumed.add_argument(
        "--likeness", type=float, default=1.0, metavar="R", help="of a pair's answers, 0 to 1 (1)"
    )
    assumed.add_argument(
        "--power", type=float, default=0.8, metavar="P", help="wanted chance to pass (0.8)"
    )
    add_source(plan, "a pilot, if there is one", without=_UNUSED, nargs="?")


def _plan(arguments: argparse.Namespace) -> None:
    scenario = _scenario(arguments)
    if arguments.source is not None:
        refuse(arguments, ASSUMED, "is assumed where there is no pilot; leave it out")
        _describe_pilot(analysis_of(arguments, why=True), arguments)
        return
    elsewhere = set(arguments.given) - {*ASSUMED, "--statistic", "--half-width", "--margin"}
    refuse(arguments, elsewhere, "is about a pilot's labels; name the pilot")
    _print_widths(scenario, arguments)
    _print_needed(scenario, arguments)
    _print_chance(scenario, arguments)


def _scenario(arguments: argparse.Namespace) -> Scenario:
    from evenhand.analysis import Scenario

    limits = {
        "--half-width": (arguments.half_width, 0.0, 1.0),
        "--agreement": (arguments.agreement, 0.5, 1.0),
        "--prevalence": (arguments.prevalence, 0.0, 1.0),
        "--power": (arguments.power, 0.0, 1.0),
    }
    for option, (value, low, high) in limits.items():
        if not low < value < high:
            raise InputError(f"{option} is {value:g}; it must lie between {low:g} and {high:g}")
    if arguments.raters < 2 or arguments.subjects < 1:
        raise InputError("--raters must be 2 or more and --subjects 1 or more")
    if not 0 < arguments.overlap <= 1 or not 0 <= arguments.likeness <= 1:
        raise InputError("--overlap and --likeness are shares, from 0 to 1")
    scenario = Scenario(
        arguments.agreement, arguments.prevalence, arguments.raters, arguments.overlap
    )
    if not scenario.is_possible:
        raise InputError(
            f"two raters cannot agree on {arguments.agreement:.0%} of units by erring alike where "
            f"{arguments.prevalence:.0%} are affirmative; raise --agreement or bring --prevalence "
            "nearer to a half"
        )
    return scenario


def _margin(arguments: argparse.Namespace) -> float:
    from evenhand.study.settings.analysis import AnalysisSettings

    return AnalysisSettings(**given_settings(arguments)).margin


def _units_per_pair(arguments: argparse.Namespace) -> float:
    """How many independent units a pair with its subjects' answers is worth."""
    from evenhand.analysis.planning.scenarios import design_effect

    subjects: int = arguments.subjects
    return subjects / design_effect(subjects, arguments.likeness)


def _print_widths(scenario: Scenario, arguments: argparse.Namespace) -> None:
    from evenhand.analysis import half_width, pass_chance

    worth = _units_per_pair(arguments)
    rows = []
    for pairs in SIZES:
        units = max(round(pairs * worth), 2)
        widths = [half_width(name, units, scenario) for name in STATISTICS]
        shared = max(round(units * scenario.overlap), 2)
        chance = pass_chance(shared, scenario, humans=scenario.humans, margin=_margin(arguments))
        rows.append((str(pairs), *(f"±{width:.2f}" for width in widths), f"{chance:.0%}"))
    print_table(["pairs", *STATISTICS, "chance to pass"], rows, title="Half a 95% interval")
    console().print(
        f"Assumed: two people agree on {scenario.agreement:.0%} of units, "
        f"{scenario.prevalence:.0%} of verdicts are affirmative, {scenario.humans} people label "
        f"{scenario.overlap:.0%} of the units; a pair is worth {worth:.2f} "
        "independent units. kappa, ac1 and rate by formula; alpha, threshold "
        "and the chance by simulation."
    )


def _print_needed(scenario: Scenario, arguments: argparse.Namespace) -> None:
    import math

    from evenhand.analysis import units_needed

    found = units_needed(arguments.statistic, arguments.half_width, scenario)
    wanted = f"{arguments.statistic} to within {arguments.half_width:g}"
    if found is None:
        console().print(f"Estimating {wanted} would take more than 100,000 pairs.")
        return
    pairs = math.ceil(found / _units_per_pair(arguments))
    units = pairs * arguments.subjects
    shared = math.ceil(units * scenario.overlap)
    judgments = shared * scenario.humans + (units - shared)
    console().print(
        f"For {wanted}: {pairs} pairs, {units} units, {judgments} judgments ({shared} units by "
        f"{scenario.humans} people each" + (", the others by one)." if shared < units else ").")
    )


def _print_chance(scenario: Scenario, arguments: argparse.Namespace) -> None:
    from evenhand.analysis.planning.scenarios import units_to_pass

    found = units_to_pass(scenario, margin=_margin(arguments), power=arguments.power)
    what = (
        f"Showing with {arguments.power:.0%} power that a grader exactly as good as a person is at "
        f"most {_margin(arguments):g} kappa worse"
    )
    if found is None:
        console().print(f"{what} needs more pairs than could be labelled.")
        return
    pairs = -(-found // max(_units_per_pair(arguments) * scenario.overlap, 1e-9))
    console().print(f"{what} takes about {pairs:.0f} pairs.")


def _describe_pilot(analysis: Analysis, arguments: argparse.Namespace) -> None:
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
    from evenhand.analysis.labels.matrix import BINARY
    from evenhand.analysis.planning.more_clusters import clusters_for_width

    rows = []
    for row in _wanted(analysis, arguments.statistic):
        half = (row["high"] - row["low"]) / 2
        more = clusters_for_width(row["n_clusters"], row["low"], row["high"], arguments.half_width)
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
        console().print(f"The pilot gives no interval for {arguments.statistic} to plan from.")
        return
    columns = ["", "estimate", "pilot's size", "twice", "four times"]
    wanted = f"more for ±{arguments.half_width:g}"
    print_table([*columns, wanted], rows, title=f"Half the 95% interval of {arguments.statistic}")
    console().print(
        "Intervals narrow with the square root of the number of pairs, if the estimate stays."
    )


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


VERBS = (Verb("plan", "how many pairs and raters a wanted precision takes", _options, _plan),)
