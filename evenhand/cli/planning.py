"""`plan`: the number of pairs and people that a verdict or a wanted precision takes.

Without a pilot it goes by what is assumed of the raters. With one - a study that has begun, or a
file - it shows how many pairs and people decide, why people disagree there, and what more would
bring.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.cli.options import add_source, analysis_of, given_settings
from evenhand.cli.terminal import console, print_table, working
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis import Analysis, Scenario
    from evenhand.analysis.planning.g_study import VarianceComponents
    from evenhand.analysis.planning.pass_chance import Chances
    from evenhand.analysis.results import ResultRow
    from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, Scope

SIZES = (50, 100, 200, 400, 800, 1600)
"""Pairs, where there is no pilot."""
PEOPLE = (3, 4, 5, 6, 7, 8)
"""Numbers of people to plan for, in a verdict that holds for others like them."""
ASSUMED = (
    "--agreement",
    "--prevalence",
    "--raters",
    "--overlap",
    "--subjects",
    "--likeness",
    "--strictness",
    "--power",
)
RULE = (
    "--margin",
    "--looks",
    "--margin-share",
    "--min-people-kappa",
    "--min-rarer",
    "--min-clusters",
)
"""Requirements on a grader, with a pilot or without."""
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
    "--max-injection",
    "--max-knocked-off",
    "--max-silenced",
    "--drift-margin",
)
"""Options of files that say nothing of people's agreement, nor of how many pairs decide."""
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


def _options(plan: Parser) -> None:
    plan.add_argument("--statistic", choices=STATISTICS, default="kappa", help="(kappa)")
    plan.add_argument(
        "--half-width", type=float, default=0.1, metavar="W", help="half-width of the 95%% CI (0.1)"
    )
    assumed = plan.add_argument_group("without a pilot")
    assumed.add_argument(
        "--agreement", type=float, default=0.85, metavar="P", help="of two annotators (0.85)"
    )
    assumed.add_argument(
        "--prevalence", type=float, default=0.5, metavar="P", help="share of affirmatives (0.5)"
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
    scenario = _scenario(arguments)
    if arguments.source is not None:
        refuse(arguments, ASSUMED, "is an assumption for planning without a pilot; leave it out")
        describe_pilot(analysis_of(arguments, why=True), arguments.statistic, arguments.half_width)
        return
    elsewhere = set(arguments.given) - {*ASSUMED, *RULE, "--statistic", "--half-width"}
    refuse(arguments, elsewhere, "is about the labels of a pilot; name its folder or file")
    settings, rule = _settings(arguments)
    chances = _chances(scenario, arguments, settings.margin, rule)
    _print_needed_to_pass(scenario, arguments, chances, rule)
    _print_needed(scenario, arguments)
    _print_sizes(scenario, arguments, chances)
    _print_assumed(scenario, arguments, settings.margin, rule)


def _scenario(arguments: argparse.Namespace) -> Scenario:
    from evenhand.analysis import Scenario
    from evenhand.analysis.planning.scenarios import usual_strictness
    from evenhand.study.settings.annotation import MOST_RATERS

    limits = {
        "--half-width": (arguments.half_width, 0.0, 1.0),
        "--agreement": (arguments.agreement, 0.5, 1.0),
        "--prevalence": (arguments.prevalence, 0.0, 1.0),
        "--power": (arguments.power, 0.0, 1.0),
    }
    for option, (value, low, high) in limits.items():
        if not low < value < high:
            raise InputError(f"{option} is {value:g}; it must lie between {low:g} and {high:g}")
    if not 2 <= arguments.raters <= MOST_RATERS or arguments.subjects < 1:
        raise InputError(f"--raters must be 2 to {MOST_RATERS:,} and --subjects 1 or more")
    if not 0 < arguments.overlap <= 1 or not 0 <= arguments.likeness <= 1:
        raise InputError("--overlap and --likeness are shares, from 0 to 1")
    scenario = Scenario(
        arguments.agreement, arguments.prevalence, arguments.raters, arguments.overlap
    )
    if not scenario.is_possible:
        raise InputError(
            f"two equally good annotators cannot agree on only {arguments.agreement:.0%} of units "
            f"where {arguments.prevalence:.0%} are affirmative; raise --agreement or bring "
            "--prevalence closer to 0.5"
        )
    strictness = arguments.strictness
    if strictness is None:
        strictness = usual_strictness(arguments.agreement, arguments.prevalence)
    scenario = replace(scenario, strictness=strictness)
    if strictness < 0 or not scenario.is_possible_so_strict:
        raise InputError(
            f"--strictness is {strictness:g}; it must be 0 or more, and low enough for annotators "
            f"to agree on {arguments.agreement:.0%} of units"
        )
    return scenario


def _settings(arguments: argparse.Namespace) -> tuple[AnalysisSettings, DecisionSettings]:
    """The margin and the rule that a grader is to meet."""
    from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, with_changes

    return with_changes(AnalysisSettings(), DecisionSettings(), given_settings(arguments))


def _units_per_pair(arguments: argparse.Namespace) -> float:
    """Return the number of independent units that a pair with its subjects' answers is worth."""
    from evenhand.analysis.planning.scenarios import design_effect

    subjects: int = arguments.subjects
    return subjects / design_effect(subjects, arguments.likeness)


def _chances(
    scenario: Scenario, arguments: argparse.Namespace, margin: float, rule: DecisionSettings
) -> list[Chances]:
    """Return the probability that a grader as good as a person passes, for each of SIZES."""
    from evenhand.analysis.planning.pass_chance import pass_chances

    worth = _units_per_pair(arguments) * scenario.overlap
    people = sorted({scenario.humans, *PEOPLE})
    with working("simulating"):
        return [
            pass_chances(max(round(n * worth), 2), scenario, people, margin=margin, rule=rule)
            for n in SIZES
        ]


def _print_needed_to_pass(
    scenario: Scenario,
    arguments: argparse.Namespace,
    chances: Sequence[Chances],
    rule: DecisionSettings,
) -> None:
    """Print the plan's conclusion: the number of pairs and people needed."""
    from evenhand.analysis.planning.pass_chance import size_for

    if scenario.kappa < rule.min_people_kappa:
        least = rule.min_people_kappa
        console().print(written("plan.cannot_pass", kappa=scenario.kappa, least=least))
        return

    def pairs_for(scope: Scope, people: int) -> int | None:
        return size_for(arguments.power, SIZES, [each[scope][people] for each in chances])

    humans, power, most = scenario.humans, arguments.power, SIZES[-1]
    these = pairs_for("these", humans)
    like = [(k * pairs, k, pairs) for k in PEOPLE if (pairs := pairs_for("like_these", k))]
    said = written("plan.these_none", people=humans, power=power, most=most)
    wider = written("plan.like_these_none", people=PEOPLE[-1], most=most)
    if these:
        said = written("plan.these", pairs=_rounded(these), people=humans, power=power)
    if like:
        _, people, pairs = min(like)
        wider = written("plan.like_these", people=people, pairs=_rounded(pairs))
    console().print(f"{said} {wider}")


def _rounded(pairs: int) -> int:
    """Two figures, as simulated chances allow no more."""
    step: int = 10 ** max(len(str(pairs)) - 2, 0)
    return -(-pairs // step) * step


def _print_sizes(
    scenario: Scenario, arguments: argparse.Namespace, chances: Sequence[Chances]
) -> None:
    from evenhand.analysis import half_width

    name, worth = arguments.statistic, _units_per_pair(arguments)
    rows = [
        (
            str(pairs),
            f"±{half_width(name, max(round(pairs * worth), 2), scenario):.2f}",
            f"{each['these'][scenario.humans]:.0%}",
            *(f"{each['like_these'][k]:.0%}" for k in PEOPLE),
        )
        for pairs, each in zip(SIZES, chances, strict=True)
    ]
    like = [f"like {k}" for k in PEOPLE]
    print_table(
        ["pairs", name, f"these {scenario.humans}", *like],
        rows,
        title=written("plan.sizes", statistic=name),
    )


def _print_assumed(
    scenario: Scenario, arguments: argparse.Namespace, margin: float, rule: DecisionSettings
) -> None:
    from evenhand.analysis.bootstrap.looks import level_of_look

    assumed = written(
        "plan.assumed",
        agreement=scenario.agreement,
        prevalence=scenario.prevalence,
        spread=scenario.spread_of_shares,
        strictness=scenario.strictness,
        overlap=scenario.overlap,
        worth=_units_per_pair(arguments),
    )
    meets = written(
        "plan.rule",
        margin=f"{rule.margin_share:.0%}" if rule.margin_share else f"{margin:g}",
        level=level_of_look(1, rule.looks),
        least=rule.min_people_kappa,
    )
    console().print(f"{assumed} {meets} {written('plan.simulated')}")


def _print_needed(scenario: Scenario, arguments: argparse.Namespace) -> None:
    import math

    from evenhand.analysis import units_needed

    found = units_needed(arguments.statistic, arguments.half_width, scenario)
    wanted = {"statistic": arguments.statistic, "width": arguments.half_width}
    if found is None:
        console().print(written("plan.too_many", **wanted))
        return
    pairs = math.ceil(found / _units_per_pair(arguments))
    units = pairs * arguments.subjects
    shared = math.ceil(units * scenario.overlap)
    labels = shared * scenario.humans + (units - shared)
    wanted |= {"pairs": pairs, "units": units, "labels": labels, "people": scenario.humans}
    if shared < units:
        console().print(written("plan.needed_overlap", shared=shared, **wanted))
    else:
        console().print(written("plan.needed", **wanted))


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


VERBS = (
    Verb("plan", "how many pairs and annotators a verdict or an interval needs", _options, _plan),
)
