"""Plans: the number of pairs and people that a verdict or a wanted precision takes.

Without a pilot it goes by what is assumed of the raters (`plan_ahead`). With one - a study that has
begun, or a file - it shows how many pairs and people decide, why people disagree there, and what
more would bring (`plan_from`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from evenhand.analysis import Analysis, d_study, half_width, units_needed
from evenhand.analysis import planning as scenarios
from evenhand.analysis.bootstrap.bounds import level_of_look
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.planning import Chances, ScaleScenario, Scenario
from evenhand.analysis.requirement import clusters_for_width
from evenhand.analysis.subjects.scores import LabelSpread
from evenhand.analysis.verdicts.evidence import pilots
from evenhand.errors import InputError
from evenhand.reporting.panel import Line, Shown
from evenhand.study.settings.analysis import (
    MOST_OF_PEOPLE,
    AnalysisSettings,
    DecisionSettings,
    Scope,
    with_changes,
)
from evenhand.study.settings.study_toml import MOST_RATERS
from evenhand.texts import written

Record = dict[str, object]
SIZES = (50, 100, 200, 400, 800, 1600)
"""Pairs, where there is no pilot."""
PEOPLE = (3, 4, 5, 6, 7, 8)
"""Numbers of people to plan for, in a verdict that holds for others like them."""
GROWTH = (1.0, 2.0, 4.0)
"""Sizes of samples, as multiples of the pilot."""
MORE_PEOPLE = (0, 1, 2, 4, 8, 16)
"""Numbers of people to add to the pilot's."""
MOST_PER_UNIT = 6
"""Annotators per unit that dependability is shown for."""
STATISTICS = {
    "kappa": ("weighted_kappa_linear", "cohen_kappa"),
    "alpha": ("krippendorff_alpha_ordinal", "krippendorff_alpha_nominal"),
    "rate": ("prevalence",),
    "threshold": ("threshold",),
    "mean": ("mean_ppi", "rate_ppi"),
    "difference": ("mean_difference_ppi", "rate_difference_ppi"),
}
"""Statistics that may be wanted, and the rows in which a pilot may have them, in order."""
CORRECTED = ("mean", "difference")
"""Those of labels that a grader gave and annotators correct."""
GRADED = (1.0, 2.0, 4.0, 10.0, math.inf)
"""Numbers of graded items, as multiples of the labels that are enough without a grader."""
_USUAL = 2
"""Which of them the plan's sentence names."""
Columns = tuple[list[str], list[list[str]]]
"""Heads and rows of a table that is shown."""


@dataclass(frozen=True)
class Wanted:
    """A statistic, and half the width that its 95% CI is to have. Raises InputError for another."""

    statistic: str = "kappa"
    half_width: float = 0.1

    def __post_init__(self) -> None:
        most = math.inf if self.statistic in CORRECTED else 1.0
        _check_between("half_width", self.half_width, 0.0, most)


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """Assumptions about the raters where there is no pilot, and the `power` that is wanted.

    Two annotators agree on a share `agreement` of the units (0.85), of which a share `prevalence`
    is affirmative (0.5). On a `scale`, such as "1-5", the labels of two annotators have a
    `correlation` (0.7) and a `mean` (the scale's middle) instead. `raters` label each unit, or one
    of them those outside the `overlap`. A pair has answers of `subjects`, whose labels resemble one
    another by the correlation `likeness`. `strictness` is the standard deviation of annotators'
    cut-offs, where what they cut has one of 1.
    """

    agreement: float | None = None
    prevalence: float | None = None
    scale: str = ""
    correlation: float | None = None
    mean: float | Sequence[float | str] | None = None
    raters: int = 3
    overlap: float = 1.0
    subjects: int = 1
    likeness: float = 1.0
    strictness: float | None = None
    power: float = 0.8

    def scenario(self) -> Scenario | ScaleScenario:
        """The raters of a simulation. Raises InputError where a number is out of range, or where
        there can be no such raters.
        """
        _check_between("power", self.power, 0.0)
        if not 2 <= self.raters <= MOST_RATERS or self.subjects < 1:
            raise InputError(f"--raters must be 2 to {MOST_RATERS:,} and --subjects 1 or more")
        if not 0 < self.overlap <= 1 or not 0 <= self.likeness <= 1:
            raise InputError("--overlap and --likeness are shares, from 0 to 1")
        unused, because = ["correlation", "mean"], "is about labels on a scale; name it by --scale"
        if self.scale:
            unused = ["agreement", "prevalence"]
            because = "is about yes/no labels; with --scale give --correlation and --mean"
        for name in unused:
            if getattr(self, name) is not None:
                raise InputError(f"--{name} {because}")
        scenario = self._on_scale() if self.scale else self._yes_or_no()
        strictness = self.strictness
        if strictness is None:
            strictness = scenarios.default_strictness(scenario.likeness)
        scenario = replace(scenario, strictness=strictness)
        if strictness < 0 or not scenario.is_possible_so_strict:
            agree = "correlate so highly"
            if isinstance(scenario, Scenario):
                agree = f"agree on {scenario.agreement:.0%} of items"
            raise InputError(
                f"--strictness is {strictness:g}; it must be 0 or more, and low enough for "
                f"annotators to {agree}"
            )
        return scenario

    def _yes_or_no(self) -> Scenario:
        agreement = 0.85 if self.agreement is None else self.agreement
        prevalence = 0.5 if self.prevalence is None else self.prevalence
        _check_between("agreement", agreement, 0.5)
        _check_between("prevalence", prevalence, 0.0)
        scenario = Scenario(agreement, prevalence, self.raters, self.overlap)
        if not scenario.is_possible:
            raise InputError(
                f"two equally good annotators cannot agree on only {agreement:.0%} of items "
                f"where {prevalence:.0%} are affirmative; raise --agreement or bring "
                "--prevalence closer to 0.5"
            )
        return scenario

    def _on_scale(self) -> ScaleScenario:
        ends = re.fullmatch(r"(-?\d+)-(-?\d+)", self.scale)
        low, high = (int(end) for end in ends.groups()) if ends else (0, 0)
        if high - low < 2:
            raise InputError(
                f"--scale is {self.scale!r}; it must be the lowest and the highest of three "
                "or more whole numbers, as in 1-5 (for yes/no labels leave it out)"
            )
        correlation = 0.7 if self.correlation is None else self.correlation
        mean, _ = self._mean_and_sd
        mean = (low + high) / 2 if mean is None else mean
        _check_between("correlation", correlation, 0.0)
        _check_between("mean", mean, low, high)
        return ScaleScenario(low, high, correlation, mean, self.raters, self.overlap)

    @property
    def _mean_and_sd(self) -> tuple[float | None, float | None]:
        """The labels' mean and standard deviation, None where not given."""
        given = self.mean if isinstance(self.mean, Sequence) else [self.mean]
        try:
            mean, sd, *more = (*(None if x is None else float(x) for x in given), None)
        except ValueError:
            mean, sd, *more = None, -1.0
        if (sd is not None and not sd > 0) or any(number is not None for number in more):
            raise InputError("--mean is a mean, or a mean and a positive standard deviation: 3,0.9")
        return mean, sd

    def corrected(self, statistic: str) -> LabelSpread:
        """What a corrected mean or difference rests on. Raises InputError as `scenario` does."""
        correlation = 0.7 if self.correlation is None else self.correlation
        _check_between("correlation", correlation, -1e-9)
        _, sd = self._mean_and_sd
        if sd is None and self.scale:
            sd = replace(self._on_scale(), correlation=0.7).sd
        elif sd is None:
            prevalence = 0.5 if self.prevalence is None else self.prevalence
            _check_between("prevalence", prevalence, 0.0)
            sd = math.sqrt(prevalence * (1.0 - prevalence))
        if statistic == "difference":
            sd *= math.sqrt(2.0 * (1.0 - self.alike))
        return LabelSpread(sd, correlation)

    @property
    def alike(self) -> float:
        """The correlation of two subjects' labels of one prompt, of which 1 says nothing."""
        if not 0 <= self.likeness <= 1:
            raise InputError("--likeness is a share, from 0 to 1")
        return self.likeness if self.likeness < 1 else 0.0

    @property
    def units_per_pair(self) -> float:
        """The number of independent units that a pair with its subjects' answers is worth."""
        return self.subjects / scenarios.design_effect(self.subjects, self.likeness)


def _check_between(name: str, value: float, low: float, high: float = 1.0) -> None:
    if not low < value < high:
        option = f"--{name.replace('_', '-')}"
        raise InputError(f"{option} is {value:g}; it must lie between {low:g} and {high:g}")


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """Sentences and tables of a plan; `tables` has the tables as data, by name.

    Without a pilot there is `sizes`: for numbers of pairs the half-width of the 95% CI of the
    statistic, and the chance to pass with these annotators (`these`) and for annotators like so
    many (`like_3` and so on); for a corrected mean or difference the items to be labelled, by how
    many are graded, which `corrected` has with a pilot. With a pilot there are `deciding`, the
    pairs that decide on each grader; `components`, why people disagree; `dependability`, by
    annotators per unit; and `intervals`, the statistic and its half-width at multiples of the
    pilot's size.
    """

    parts: Sequence[Line]
    tables: Mapping[str, pd.DataFrame]
    notes: Sequence[str] = ()
    """Notes on how the pilot's labels were read."""

    @property
    def lines(self) -> Sequence[Line]:
        """Sentences and tables, the conclusion first."""
        return self.parts


# ---- without a pilot ----------------------------------------------------------------------------


def plan_ahead(
    assumed: Assumptions, wanted: Wanted, settings: Mapping[str, Any] | None = None
) -> Plan:
    """Plan by what is assumed: for the interval that is `wanted`, and for a grader as good as a
    person to pass. `settings` are those of the rule that it is to meet.

    Raises InputError where a number is out of range.
    """
    statistic = wanted.statistic
    if statistic in CORRECTED:
        return _plan_corrected(assumed, wanted)
    if isinstance(assumed.mean, Sequence) and len(assumed.mean) > 1:
        raise InputError("--mean has a standard deviation only for --statistic mean or difference")
    scenario, worth = assumed.scenario(), assumed.units_per_pair
    if assumed.scale and statistic != "kappa":
        raise InputError(f"--statistic is {statistic}; with --scale it must be kappa")
    analysis, rule = with_changes(AnalysisSettings(), DecisionSettings(), settings or {})
    # The probability that a grader as good as a person passes, for each of SIZES.
    numbers = [max(round(n * worth * scenario.overlap), 2) for n in SIZES]
    people, margin = sorted({scenario.humans, *PEOPLE}), analysis.margin
    chances = [
        scenarios.pass_chances(n, scenario, people, margin=margin, rule=rule) for n in numbers
    ]
    widths = [half_width(statistic, max(round(n * worth), 2), scenario) for n in SIZES]
    sizes = pd.DataFrame({"pairs": SIZES, "half_width": widths})
    sizes["these"] = [estimate["these"][scenario.humans] for estimate in chances]
    for k in PEOPLE:
        sizes[f"like_{k}"] = [estimate["like_these"][k] for estimate in chances]
    shown = [
        [str(pairs), f"±{width:.2f}", *(f"{chance:.0%}" for chance in passing)]
        for pairs, width, *passing in sizes.itertuples(index=False)
    ]
    like = [f"like {k}" for k in PEOPLE]
    # Without so many units not even a grader without an error passes.
    least_margin = min(
        rule.margin_share * scenario.kappa if rule.margin_share else margin,
        MOST_OF_PEOPLE * scenario.kappa,
    )
    errorless = scenario.errorless_units(least_margin, level_of_look(1, rule.looks))
    lines: list[Line] = [
        _needed_to_pass(scenario, assumed.power, chances, rule),
        written("plan.errorless", pairs=_rounded(math.ceil(errorless / worth / scenario.overlap))),
        _needed(scenario, assumed, wanted),
        (
            written("plan.sizes", statistic=statistic),
            ["pairs", statistic, f"these {scenario.humans}", *like],
            shown,
        ),
        _assumed(scenario, worth, analysis.margin, rule),
    ]
    return Plan(lines, {"sizes": sizes})


def _plan_corrected(assumed: Assumptions, wanted: Wanted) -> Plan:
    """Plan for a corrected mean or difference by its standard deviation and correlation."""
    statistic, given = wanted.statistic, assumed.corrected(wanted.statistic)
    if not 1 <= assumed.raters <= MOST_RATERS:
        raise InputError(f"--raters must be 1 to {MOST_RATERS:,}")
    sizes, table = _labelled_for(given, wanted)
    about = {"sd": given.sd, "correlation": given.correlation, "width": wanted.half_width}
    graded, labelled = sizes[["graded", "labelled"]].iloc[_USUAL].astype(int)
    alone, least = (int(sizes["labelled"].iloc[at]) for at in (0, -1))
    about |= {"graded": graded, "labelled": labelled, "alone": alone, "least": least}
    needed = written(f"plan.corrected_{statistic}", likeness=assumed.alike, **about)
    title = written("plan.corrected_sizes", statistic=statistic, width=wanted.half_width)
    basis = written("plan.corrected_assumed", raters=assumed.raters, **about)
    return Plan([needed, (title, *table), basis], {"sizes": sizes})


def _labelled_for(given: LabelSpread, wanted: Wanted) -> tuple[pd.DataFrame, Columns]:
    """The labelled items that the wanted half-width takes, by how many are graded, the first as
    many as are enough without a grader; and the same to be shown.
    """
    alone = replace(given, correlation=0.0).labels_for(wanted.half_width, math.inf) or 2
    graded = [alone * times for times in GRADED]
    sizes = pd.DataFrame({"graded": graded})
    sizes["labelled"] = [given.labels_for(wanted.half_width, number) or alone for number in graded]
    shown = [
        ["any number" if math.isinf(number) else f"{number:,.0f}", f"{n:,}", f"{1 - n / alone:.0%}"]
        for number, n in zip(graded, sizes["labelled"], strict=True)
    ]
    return sizes, (["graded", "labelled", "labels saved"], shown)


def _needed_to_pass(
    scenario: Scenario | ScaleScenario,
    power: float,
    chances: Sequence[Chances],
    rule: DecisionSettings,
) -> str:
    """The plan's conclusion: the number of pairs and people needed."""
    least = scenario.least_kappa(rule.min_people_kappa)
    if scenario.kappa < least:
        return written("plan.cannot_pass", kappa=scenario.kappa, least=least)

    def pairs_for(scope: Scope, people: int) -> int | None:
        return scenarios.size_for(power, SIZES, [chance[scope][people] for chance in chances])

    humans, most = scenario.humans, SIZES[-1]
    like = [(k * pairs, k, pairs) for k in PEOPLE if (pairs := pairs_for("like_these", k))]
    if pairs := pairs_for("these", humans):
        these = written("plan.these", pairs=_rounded(pairs), people=humans, power=power)
    else:
        these = written("plan.these_none", people=humans, power=power, most=most)
    if not like:
        return f"{these} {written('plan.like_these_none', people=PEOPLE[-1], most=most)}"
    _, people, pairs = min(like)
    return f"{these} {written('plan.like_these', people=people, pairs=_rounded(pairs))}"


def _rounded(pairs: int) -> int:
    """Round up to two figures: simulated chances allow no more."""
    step: int = 10 ** max(len(str(pairs)) - 2, 0)
    return -(-pairs // step) * step


def _assumed(
    scenario: Scenario | ScaleScenario, worth: float, margin: float, rule: DecisionSettings
) -> str:
    if isinstance(scenario, ScaleScenario):
        labels = written(
            "plan.on_scale",
            low=scenario.low,
            high=scenario.high,
            correlation=scenario.correlation,
            kappa=scenario.kappa,
            mean=scenario.mean,
            strictness=scenario.strictness,
        )
    else:
        labels = written(
            "plan.yes_or_no",
            agreement=scenario.agreement,
            prevalence=scenario.prevalence,
            spread=scenario.spread_of_shares,
            strictness=scenario.strictness,
        )
    assumed = written("plan.assumed", labels=labels, overlap=scenario.overlap, worth=worth)
    meets = written(
        "plan.rule",
        margin=f"{rule.margin_share:.0%}" if rule.margin_share else f"{margin:g}",
        level=level_of_look(1, rule.looks),
        least=scenario.least_kappa(rule.min_people_kappa),
    )
    return f"{assumed} {meets} {written('plan.simulated')}"


def _needed(scenario: Scenario | ScaleScenario, assumed: Assumptions, wanted: Wanted) -> str:
    needed = units_needed(wanted.statistic, wanted.half_width, scenario)
    about: dict[str, Any] = {"statistic": wanted.statistic, "width": wanted.half_width}
    if needed is None:
        return written("plan.too_many", **about)
    pairs = math.ceil(needed / assumed.units_per_pair)
    units = pairs * assumed.subjects
    shared = math.ceil(units * scenario.overlap)
    labels = shared * scenario.humans + (units - shared)
    about |= {"pairs": pairs, "units": units, "labels": labels, "people": scenario.humans}
    if shared < units:
        return written("plan.needed_overlap", shared=shared, **about)
    return written("plan.needed", **about)


# ---- with a pilot -------------------------------------------------------------------------------


def plan_from(analysis: Analysis, wanted: Wanted, notes: Sequence[str] = ()) -> Plan:
    """Plan by a pilot, analysed with `why`: what would decide; then for each rubric its variance
    components, and the effect of more data. `notes` are those on its labels.
    """
    lines, deciding = _deciding(analysis)
    components: list[Record] = []
    dependability: list[Record] = []
    for rubric, parts in analysis.components.items():
        about = {"rubric": rubric or "labels", "units": parts.n_units, "people": parts.n_raters}
        shown: list[list[str]] = []
        names = ("items differ", "annotators are lenient or strict", "everything else")
        values = (parts.unit, parts.rater, parts.residual)
        for name, value, share in zip(names, values, parts.shares, strict=True):
            shown.append([name, f"{value:.3f}", f"{share:.0%}" if share == share else "-"])
            row = {"rubric": rubric, "source": name, "variance": value, "share": share}
            components.append(row)
        columns = ["source", "variance", "share"]
        lines.append((written("pilot.components", **about), columns, shown))
        every = [d_study(parts, raters) for raters in range(1, MOST_PER_UNIT + 1)]
        shown = [[str(one.raters), f"{one.relative:.2f}", f"{one.absolute:.2f}"] for one in every]
        columns = ["annotators per item", "ranking items", "placing items"]
        lines.append(("Dependability", columns, shown))
        for one in every:
            row = {"raters": one.raters, "ranking": one.relative, "placing": one.absolute}
            dependability.append({"rubric": rubric, **row})
    width_lines, intervals = _intervals(analysis, wanted)
    labelled_for: list[Record] = []
    spreads = [
        (rubric, grader, given)
        for rubric, spread in analysis.spreads.items()
        for (what, grader), given in spread.items()
        if what == wanted.statistic and given.sd > 0
    ]
    for rubric, grader, given in spreads:
        sizes, table = _labelled_for(given, wanted)
        about = {"sd": given.sd, "correlation": given.correlation, "width": wanted.half_width}
        title = written("pilot.corrected", grader=f"{rubric} {grader}".strip(), **about)
        lines.append((title, *table))
        named: Record = {"rubric": rubric, "grader": grader, **about}
        labelled_for += [{**named, "graded": n, "labelled": k} for n, k in sizes.to_numpy()]
    tables = {"deciding": deciding, "components": components, "corrected": labelled_for}
    tables |= {"dependability": dependability, "intervals": intervals}
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    return Plan([*lines, *width_lines], frames, notes)


def _deciding(analysis: Analysis) -> tuple[list[Line], list[Record]]:
    """The number of pairs that would decide on each grader, by the number of people per pair."""
    graders = pilots(analysis.rows)
    if not graders:
        return [written("pilot.no_grader")], []
    first = max(3, *(grader.people for grader in graders))
    numbers = [first + more for more in MORE_PEOPLE]
    shown: list[list[str]] = []
    rows: list[Record] = []
    for grader in graders:
        like = {k: grader.clusters_to_decide(k) if grader.people else None for k in numbers}
        these = grader.clusters_to_decide()
        shown.append(
            [
                f"{grader.rubric} {grader.grader}".strip(),
                f"{grader.difference:+z.2f}",
                str(grader.clusters),
                _or_none(these),
                *(_or_none(clusters) if grader.people else "-" for clusters in like.values()),
            ]
        )
        rows.append(
            {
                "rubric": grader.rubric,
                "grader": grader.grader,
                "difference": grader.difference,
                "now": grader.clusters,
                "these": these,
                **{f"like_{k}": clusters for k, clusters in like.items()},
            }
        )
    columns = ["", "difference", "now", "these", *(f"like {k}" for k in numbers)]
    return [(written("pilot.to_decide"), columns, shown), written("pilot.if_it_stays")], rows


def _or_none(clusters: int | None) -> str:
    return "none" if clusters is None else str(clusters)


def _intervals(analysis: Analysis, wanted: Wanted) -> tuple[list[Line], list[Record]]:
    """The wanted statistic as the pilot has it, and how wide its interval would be with more."""
    statistic, width = wanted.statistic, wanted.half_width
    shown: list[list[str]] = []
    rows: list[Record] = []
    results = analysis.results
    results = results[(results["rater_a"] == "humans") & results["low"].notna()]
    results = results[results["subset"].isin(["all", "all|binary"])]
    estimates: list[Any] = []
    for _, of_rubric in results.groupby("rubric", sort=False):
        names = [name for name in STATISTICS[statistic] if name in set(of_rubric["statistic"])]
        estimates += of_rubric[of_rubric["statistic"].isin(names[:1])].to_dict("records")
    for row in estimates:
        half = (row["high"] - row["low"]) / 2
        more = clusters_for_width(row["n_clusters"], row["low"], row["high"], width)
        widths = {size: half / size**0.5 for size in GROWTH}
        who = " · ".join(part for part in (row["rater_a"], row["rater_b"]) if part)
        if row["subset"].endswith(BINARY):
            who = f"{who}, binary label"
        shown.append(
            [
                f"{row['rubric']} {who} {row['at']}".strip(),
                f"{row['estimate']:.2f}",
                *(f"±{each:.2f}" for each in widths.values()),
                "-" if more is None else str(more),
            ]
        )
        kept = ("rubric", "statistic", "rater_a", "rater_b", "subset", "at", "estimate")
        named: Record = {name: row[name] for name in kept}
        growth = {f"half_width_{size:g}": each for size, each in widths.items()}
        rows.append({**named, **growth, "more": more})
    if not rows:
        return [written("pilot.no_interval", statistic=statistic)], []
    columns = ["", "estimate", "pilot's size", "twice", "four times", f"more for ±{width:g}"]
    title = written("pilot.half_widths", statistic=statistic)
    return [(title, columns, shown), written("pilot.narrowing")], rows
