"""`plan`: how many pairs, raters and overlaps a wanted precision takes, with or without a pilot."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.setting_options import add_analysis_options, analyse_asked, given_settings
from evenhand.cli.terminal import console, print_table

if TYPE_CHECKING:
    from evenhand.analysis import Scenario

__all__ = ["add_verbs"]

SIZES = (50, 100, 250, 500, 1000)
STATISTICS = ("kappa", "alpha", "ac1", "rate", "threshold")
MOST_RATERS = 6


def add_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    plan = verbs.add_parser("plan", help="how many pairs and raters a wanted precision takes")
    plan.add_argument(
        "source", type=Path, nargs="?", metavar="DIR|RATINGS", help="a pilot, if there is one"
    )
    plan.add_argument("--statistic", choices=STATISTICS, default="kappa", help="(kappa)")
    plan.add_argument(
        "--half-width", type=float, default=0.1, metavar="W", help="half a 95%% interval (0.1)"
    )
    plan.add_argument(
        "--agreement", type=float, default=0.85, metavar="P", help="of two people (0.85)"
    )
    plan.add_argument(
        "--prevalence", type=float, default=0.5, metavar="P", help="share of affirmatives (0.5)"
    )
    plan.add_argument("--raters", type=int, default=3, metavar="N", help="people per unit (3)")
    plan.add_argument(
        "--overlap", type=float, default=1.0, metavar="P", help="units that all label (1.0)"
    )
    plan.add_argument("--subjects", type=int, default=1, metavar="N", help="answers per pair (1)")
    plan.add_argument(
        "--likeness", type=float, default=1.0, metavar="R", help="of a pair's answers, 0 to 1 (1)"
    )
    plan.add_argument(
        "--power", type=float, default=0.8, metavar="P", help="wanted chance to pass (0.8)"
    )
    plan.set_defaults(run=_plan, declare=add_analysis_options)


def _plan(arguments: argparse.Namespace) -> None:
    scenario = _scenario(arguments)
    if arguments.source is not None:
        from evenhand.cli.pilot import describe_pilot

        analysis, _ = analyse_asked(arguments.source, arguments, why=True)
        describe_pilot(analysis, arguments)
        return
    _print_widths(scenario, arguments)
    _print_needed(scenario, arguments)
    _print_chance(scenario, arguments)


def _scenario(arguments: argparse.Namespace) -> Scenario:
    from evenhand.analysis import Scenario
    from evenhand.errors import InputError

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
        console().print(f"For {wanted} no number of pairs below 100,000 is enough.")
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
        f"A grader exactly as good as a person is shown to be at most {_margin(arguments):g} kappa "
        f"worse, with a chance of {arguments.power:.0%},"
    )
    if found is None:
        console().print(f"{what} by no number of pairs that could be labelled.")
        return
    pairs = -(-found // max(_units_per_pair(arguments) * scenario.overlap, 1e-9))
    console().print(f"{what} from about {pairs:.0f} pairs.")
