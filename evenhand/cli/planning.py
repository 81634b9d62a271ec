"""`plan`: the number of pairs and people that a verdict or a wanted precision takes."""

from __future__ import annotations

import argparse
from dataclasses import fields

from evenhand.cli.options import add_source, analysis_of, given_settings
from evenhand.cli.terminal import print_lines, working
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.reporting.planning import STATISTICS

ASSUMED = (
    "--agreement",
    "--prevalence",
    "--scale",
    "--correlation",
    "--mean",
    "--raters",
    "--overlap",
    "--subjects",
    "--likeness",
    "--strictness",
    "--power",
)
RULE = ("--margin", "--set")
"""Requirements on a grader, with a pilot or without."""
_UNUSED = (
    *("slices", "groups", "variants", "rater_slices", "sensitivity_cluster"),
    *("epsilon", "leanings", "families", "confidence_cut", "confidence_target"),
    *("min_coverage", "min_stability", "min_information", "bias_bound"),
    *("max_injection", "max_knocked_off", "max_silenced", "drift_margin", "overlap"),
)
"""What says nothing of people's agreement, nor of how many pairs decide."""


def _options(plan: Parser) -> None:
    plan.add_argument("--statistic", choices=STATISTICS, default="kappa", help="(kappa)")
    plan.add_argument(
        "--half-width", type=float, default=0.1, metavar="W", help="half-width of the 95%% CI (0.1)"
    )
    assumed = plan.add_argument_group("without a pilot")
    assumed.add_argument(
        "--agreement", type=float, metavar="P", help="of two annotators, on yes/no labels (0.85)"
    )
    assumed.add_argument(
        "--prevalence", type=float, metavar="P", help="share of affirmatives (0.5)"
    )
    assumed.add_argument(
        "--scale", default="", metavar="LOW-HIGH", help="of labels that are not yes/no: 1-5, 0-100"
    )
    assumed.add_argument(
        "--correlation",
        type=float,
        metavar="R",
        help="on a scale, of two annotators' labels; about their ICC or quadratic kappa (0.7)",
    )
    assumed.add_argument(
        "--mean", type=float, metavar="M", help="on a scale, of the labels (its middle)"
    )
    assumed.add_argument(
        "--raters", type=int, default=3, metavar="N", help="annotators per unit (3)"
    )
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
        "--strictness",
        type=float,
        metavar="SD",
        help="standard deviation of annotators' cut-offs, where what they cut has one of 1 (0.25, "
        "lower above 88%% agreement)",
    )
    assumed.add_argument(
        "--power", type=float, default=0.8, metavar="P", help="chance to pass that is wanted (0.8)"
    )
    add_source(plan, "a pilot, if there is one", without=_UNUSED, nargs="?")


def _plan(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.planning import Assumptions, Wanted, plan_ahead, plan_from

    wanted = Wanted(arguments.statistic, arguments.half_width)
    assumed = Assumptions(
        **{each.name: getattr(arguments, each.name) for each in fields(Assumptions)}
    )
    if arguments.source is not None:
        refuse(arguments, ASSUMED, "is an assumption for planning without a pilot; leave it out")
        print_lines(plan_from(analysis_of(arguments, why=True), wanted).lines)
        return
    elsewhere = set(arguments.given) - {*ASSUMED, *RULE, "--statistic", "--half-width"}
    refuse(arguments, elsewhere, "is about the labels of a pilot; name its folder or file")
    settings = given_settings(arguments)
    with working("simulating"):
        found = plan_ahead(assumed, wanted, settings)
    print_lines(found.lines)


VERBS = (
    Verb("plan", "how many pairs and annotators a verdict or an interval needs", _options, _plan),
)
