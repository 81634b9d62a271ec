"""Plan the number of pairs and annotators that a verdict or a precision takes.

Without a pilot, `plan_ahead` plans from assumptions about the raters (`Assumptions`). With one - a
study that has begun, or a file - `plan_from` shows the pairs and annotators that would decide, the
components of annotators' disagreement, and the precision with more data. Both return a `Plan`. A
verdict has one of two scopes: these annotators ("these") or any like them ("like_these").
"""

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
from evenhand.analysis.subjects.corrected_rates import LabelSpread
from evenhand.errors import InputError
from evenhand.reporting.panel import Line, Printable
from evenhand.study.settings.analysis import (
    MAX_MARGIN_SHARE,
    AnalysisSettings,
    DecisionSettings,
    Scope,
    with_changes,
)
from evenhand.study.settings.study_toml import MOST_RATERS
from evenhand.texts import written

AnyScenario = Scenario | ScaleScenario
Record = dict[str, object]  # a row of a table of a plan as data
SIZES = (50, 100, 200, 400, 800, 1600)  # numbers of pairs to plan for without a pilot
PEOPLE = (3, 4, 5, 6, 7, 8)  # annotators to plan for, for a verdict about annotators like them
GROWTH = (1.0, 2.0, 4.0)  # sizes of samples, as multiples of the pilot
MORE_PEOPLE = (0, 1, 2, 4, 8, 16)  # numbers of annotators to add to the pilot's
MOST_PER_UNIT = 6  # the most annotators per unit for which dependability is shown
STATISTICS = {
    "kappa": ("weighted_kappa_linear", "cohen_kappa"),
    "alpha": ("krippendorff_alpha_ordinal", "krippendorff_alpha_nominal"),
    "rate": ("prevalence",),
    "threshold": ("threshold",),
    "mean": ("mean_ppi", "rate_ppi"),
    "difference": ("mean_difference_ppi", "rate_difference_ppi"),
}
"""Statistics to plan for, with those of a pilot's rows that estimate them: the first there is."""
CORRECTED = ("mean", "difference")  # statistics of a grader's labels, corrected by annotators'
GRADED = (1.0, 2.0, 4.0, 10.0, math.inf)
"""Numbers of graded items, as multiples of the labels that are enough without a grader."""
_IN_SENTENCE = GRADED.index(4.0)  # the number of which the plan's sentence speaks
TextTable = tuple[list[str], list[list[str]]]  # the headings and the rows of a table in a plan
AGREEMENT, PREVALENCE, CORRELATION = 0.85, 0.5, 0.7  # assumed where `Assumptions` have None


@dataclass(frozen=True)
class Target:
    """A statistic and the half-width of its 95% CI to reach. Raises InputError out of range."""

    statistic: str = "kappa"
    half_width: float = 0.1

    def __post_init__(self) -> None:
        upper_limit = math.inf if self.statistic in CORRECTED else 1.0
        _check_between("half_width", self.half_width, 0.0, upper_limit)


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """Assumptions about the raters without a pilot, and the `power` to reach.

    Two annotators agree on a share `agreement` of the units (rated items), of which a share
    `prevalence` is affirmative. On a `scale`, such as "1-5", the labels of two annotators have a
    `correlation` and a `mean` (by default the scale's middle) instead. For a corrected mean or
    difference `correlation` is that of the grader's labels with annotators', and `mean` may be two
    numbers, the mean and the standard deviation of annotators' labels.

    `raters` label each unit of a share `overlap`, and one of them each other unit. A pair has an
    answer of each of `subjects`, whose labels have the correlation `likeness`. `strictness` is the
    standard deviation of annotators' cut-offs on a latent variable with standard deviation 1.
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

    def scenario(self) -> AnyScenario:
        """Return the raters to simulate. Raises InputError if there can be no such raters."""
        _check_between("power", self.power, 0.0)
        if not 2 <= self.raters <= MOST_RATERS or self.subjects < 1:
            raise InputError(f"--raters must be 2 to {MOST_RATERS:,} and --subjects 1 or more")
        if not 0 < self.overlap <= 1 or not 0 <= self.likeness <= 1:
            raise InputError("--overlap and --likeness are shares, from 0 to 1")
        unused, reason = ["correlation", "mean"], "is about labels on a scale; name it by --scale"
        if self.scale:
            unused = ["agreement", "prevalence"]
            reason = "is about yes/no labels; with --scale give --correlation and --mean"
        for name in unused:
            if getattr(self, name) is not None:
                raise InputError(f"--{name} {reason}")
        scenario = self._scale_scenario() if self.scale else self._binary_scenario()
        strictness = self.strictness
        if strictness is None:
            strictness = scenarios.default_strictness(scenario.likeness)  # annotators' likeness
        scenario = replace(scenario, strictness=strictness)
        if strictness < 0 or not scenario.is_strictness_possible:
            assumed_agreement = "correlate so highly"
            if isinstance(scenario, Scenario):
                assumed_agreement = f"agree on {scenario.agreement:.0%} of items"
            raise InputError(
                f"--strictness is {strictness:g}; it must be 0 or more, and low enough for "
                f"annotators to {assumed_agreement}"
            )
        return scenario

    def _binary_scenario(self) -> Scenario:
        """Return the raters of yes/no labels, without their strictness."""
        agreement = _checked("agreement", self.agreement, AGREEMENT, 0.5)
        prevalence = _checked("prevalence", self.prevalence, PREVALENCE, 0.0)
        scenario = Scenario(agreement, prevalence, self.raters, self.overlap)
        if not scenario.is_possible:
            raise InputError(
                f"two equally good annotators cannot agree on only {agreement:.0%} of items "
                f"where {prevalence:.0%} are affirmative; raise --agreement or bring "
                "--prevalence closer to 0.5"
            )
        return scenario

    def _scale_scenario(self) -> ScaleScenario:
        """Return the raters of labels on the scale, without their strictness."""
        match = re.fullmatch(r"(-?\d+)-(-?\d+)", self.scale)
        low, high = map(int, match.groups()) if match else (0, 0)
        if high - low < 2:
            raise InputError(
                f"--scale is {self.scale!r}; it must be the lowest and the highest of three "
                "or more whole numbers, as in 1-5 (for yes/no labels leave it out)"
            )
        mean, sd = self._mean_and_sd
        mean = (low + high) / 2 if mean is None else mean
        correlation = _checked("correlation", self.correlation, CORRELATION, 0.0)
        _check_between("mean", mean, low, high)
        if sd is not None and sd > (high - low) / math.sqrt(2):  # that of two labels at the ends
            raise InputError(f"--mean has a standard deviation too large for --scale {self.scale}")
        return ScaleScenario(low, high, correlation, mean, self.raters, self.overlap)

    @property
    def _mean_and_sd(self) -> tuple[float | None, float | None]:
        """The labels' mean and standard deviation, each None if not given. Raises InputError if
        `mean` is something else.
        """
        fault = "--mean is a mean, or a mean and a positive standard deviation: 3,0.9"
        values = self.mean if isinstance(self.mean, Sequence) else [self.mean]
        try:
            numbers = [None if value is None else float(value) for value in values]
        except ValueError:
            raise InputError(fault) from None
        if len(numbers) not in (1, 2):
            raise InputError(fault)
        sd = numbers[1] if len(numbers) == 2 else None
        if sd is not None and not sd > 0:  # NaN, too
            raise InputError(fault)
        return numbers[0], sd

    def label_spread(self, statistic: str) -> LabelSpread:
        """Return annotators' standard deviation, and the correlation of the grader's labels with
        theirs, for a correction of this statistic; errors as `scenario`.
        """
        # The limit is excluded, and 0 is allowed: a grader may know nothing.
        correlation = _checked("correlation", self.correlation, CORRELATION, low=-1e-9)
        _, sd = self._mean_and_sd
        if self.scale:
            # `correlation` is the grader's; a scenario would take it for that of two annotators.
            scenario = replace(self, correlation=None)._scale_scenario()
            sd = scenario.sd if sd is None else sd
        elif sd is None:
            prevalence = _checked("prevalence", self.prevalence, PREVALENCE, 0.0)
            sd = math.sqrt(prevalence * (1.0 - prevalence))
        if statistic == "difference":
            sd *= math.sqrt(2.0 * (1.0 - self.subject_correlation))
        return LabelSpread(sd=sd, correlation=correlation)

    @property
    def subject_correlation(self) -> float:
        """The correlation of two subjects' labels on one prompt: `likeness`; 0 for its default 1,
        which assumes nothing about subjects but is the cautious way to count a pair: as one unit.
        """
        if not 0 <= self.likeness <= 1:
            raise InputError("--likeness is a share, from 0 to 1")
        return self.likeness if self.likeness < 1 else 0.0

    @property
    def units_per_pair(self) -> float:
        """The effective number of independent units in a pair with its subjects' answers."""
        return self.subjects / scenarios.design_effect(self.subjects, self.likeness)


def _check_between(name: str, value: float, low: float, high: float = 1.0) -> None:
    """Raise InputError if the value of an option is not between the limits, or is one of them."""
    if not low < value < high:
        option = f"--{name.replace('_', '-')}"
        raise InputError(f"{option} is {value:g}; it must lie between {low:g} and {high:g}")


def _checked(name: str, value: float | None, default: float, low: float) -> float:
    """Return an option's value, or the default for None; InputError if not between `low` and 1."""
    value = default if value is None else value
    _check_between(name, value, low)
    return value


@dataclass(frozen=True, repr=False)
class Plan(Printable):
    """A plan as sentences and tables (`parts`), the conclusion first; `tables` has the tables as
    data, by name; `notes` say how the pilot's labels were read.

    Without a pilot there is `sizes`: by number of pairs, the half-width of the 95% CI of the
    statistic, and the chance to pass with these annotators (`these`) and for a verdict about
    annotators like 3 (`like_3`) and so on; for a corrected mean or difference, the number of items
    to label by the number of graded items.

    With a pilot there are `deciding`, the pairs that decide on each grader; `components`, the
    variance components of labels; `dependability`, by annotators per unit; `intervals`, the
    half-width of the statistic at multiples of the pilot's size; and `corrected`, as `sizes`.
    """

    parts: Sequence[Line]
    tables: Mapping[str, pd.DataFrame]
    notes: Sequence[str] = ()

    @property
    def lines(self) -> Sequence[Line]:
        """Sentences and tables, the conclusion first."""
        return self.parts


# ---- without a pilot ----------------------------------------------------------------------------


def plan_ahead(
    assumed: Assumptions, target: Target, settings: Mapping[str, Any] | None = None
) -> Plan:
    """Plan from assumptions: for the precision of `target`, and for a grader as good as an
    annotator to pass. `settings` of the analysis differ from the defaults. Raises InputError if a
    number is out of range.
    """
    statistic = target.statistic
    if statistic in CORRECTED:
        return _plan_corrected(assumed, target)
    if isinstance(assumed.mean, Sequence) and len(assumed.mean) > 1:
        raise InputError("--mean has a standard deviation only for --statistic mean or difference")
    scenario, units_per_pair = assumed.scenario(), assumed.units_per_pair
    if assumed.scale and statistic != "kappa":
        raise InputError(f"--statistic is {statistic}; with --scale it must be kappa")
    analysis, rule = with_changes(AnalysisSettings(), DecisionSettings(), settings or {})
    humans, margin = sorted({scenario.humans, *PEOPLE}), analysis.margin
    widths, chances = [], []  # in the order of `SIZES`; chances are by scope, then annotators
    for n_pairs in SIZES:
        n_units = n_pairs * units_per_pair  # of which at least 2 are needed
        widths.append(half_width(statistic, max(round(n_units), 2), scenario))
        n_shared = max(round(n_units * scenario.overlap), 2)  # labelled by all annotators
        chances.append(scenarios.pass_chances(n_shared, scenario, humans, margin=margin, rule=rule))
    sizes = pd.DataFrame({"pairs": SIZES, "half_width": widths})
    sizes["these"] = [by_scope["these"][scenario.humans] for by_scope in chances]
    columns = ["pairs", statistic, f"these {scenario.humans}"]
    for n_humans in PEOPLE:
        sizes[f"like_{n_humans}"] = [by_scope["like_these"][n_humans] for by_scope in chances]
        columns.append(f"like {n_humans}")
    rows = [
        [str(pairs), f"±{width:.2f}", *(f"{chance:.0%}" for chance in row_chances)]
        for pairs, width, *row_chances in sizes.itertuples(index=False)
    ]
    lines: list[Line] = [
        _verdict_sentence(scenario, assumed.power, chances, rule),
        _errorless_sentence(scenario, units_per_pair, margin, rule),
        _precision_sentence(scenario, assumed, target),
        (written("plan.sizes", statistic=statistic), columns, rows),
        _assumptions_sentence(scenario, units_per_pair, margin, rule),
    ]
    return Plan(lines, {"sizes": sizes})


def _plan_corrected(assumed: Assumptions, target: Target) -> Plan:
    """Plan for a corrected mean or difference, from its standard deviation and correlation."""
    statistic, spread = target.statistic, assumed.label_spread(target.statistic)
    if not 1 <= assumed.raters <= MOST_RATERS:
        raise InputError(f"--raters must be 1 to {MOST_RATERS:,}")
    sizes, table = _labels_by_graded(spread, target)
    figures = {"sd": spread.sd, "correlation": spread.correlation}
    n_graded, n_labelled = sizes[["graded", "labelled"]].iloc[_IN_SENTENCE].astype(int)
    figures |= {"width": target.half_width, "graded": n_graded, "labelled": n_labelled}
    figures |= {"alone": int(sizes["labelled"].iloc[0]), "least": int(sizes["labelled"].iloc[-1])}
    needed = written(f"plan.corrected_{statistic}", likeness=assumed.subject_correlation, **figures)
    title = written("plan.corrected_sizes", statistic=statistic, width=target.half_width)
    basis = written("plan.corrected_assumed", raters=assumed.raters, **figures)
    return Plan([needed, (title, *table), basis], {"sizes": sizes})


def _labels_by_graded(spread: LabelSpread, target: Target) -> tuple[pd.DataFrame, TextTable]:
    """Return the number of labelled items that the target takes by the number of graded items, from
    as many as are enough without a grader, as data and as a table of text.
    """
    without_grader = replace(spread, correlation=0.0)
    n_without_grader = without_grader.labels_for(target.half_width, math.inf) or 2  # for mypy alone
    sizes: dict[str, list[float]] = {"graded": [], "labelled": []}
    rows = []
    for factor in GRADED:
        n_graded = n_without_grader * factor
        n_labelled = spread.labels_for(target.half_width, n_graded) or n_without_grader
        sizes["graded"].append(n_graded)
        sizes["labelled"].append(n_labelled)
        graded_text = "any number" if math.isinf(n_graded) else f"{n_graded:,.0f}"
        rows.append([graded_text, f"{n_labelled:,}", f"{1 - n_labelled / n_without_grader:.0%}"])
    return pd.DataFrame(sizes), (["graded", "labelled", "labels saved"], rows)


def _verdict_sentence(
    scenario: AnyScenario, power: float, chances: Sequence[Chances], rule: DecisionSettings
) -> str:
    """Return a sentence on the pairs and annotators for a verdict, from the chances by `SIZES`."""
    least_kappa = scenario.least_kappa(rule.min_people_kappa)
    if scenario.kappa < least_kappa:
        return written("plan.cannot_pass", kappa=scenario.kappa, least=least_kappa)

    def pairs_for(scope: Scope, n_people: int) -> int | None:
        return scenarios.size_for(power, SIZES, [by_scope[scope][n_people] for by_scope in chances])

    humans, largest_size = scenario.humans, SIZES[-1]
    about_these = written("plan.these_none", people=humans, power=power, most=largest_size)
    if n_pairs := pairs_for("these", humans):
        about_these = written("plan.these", pairs=_rounded(n_pairs), people=humans, power=power)
    pairs_by_people = {n_people: pairs_for("like_these", n_people) for n_people in PEOPLE}
    designs = [(n_people, pairs) for n_people, pairs in pairs_by_people.items() if pairs]
    if not designs:
        none = written("plan.like_these_none", people=PEOPLE[-1], most=largest_size)
        return f"{about_these} {none}"
    n_people, n_pairs = min(designs, key=math.prod)  # the fewest labels
    return f"{about_these} {written('plan.like_these', people=n_people, pairs=_rounded(n_pairs))}"


def _errorless_sentence(
    scenario: AnyScenario, units_per_pair: float, margin: float, rule: DecisionSettings
) -> str:
    """Return a sentence on the fewest pairs with which a grader without errors passes."""
    smallest_margin = min(margin, MAX_MARGIN_SHARE * scenario.kappa)  # as in a verdict
    if rule.margin_share:
        smallest_margin = rule.margin_share * scenario.kappa
    n_units = scenario.errorless_units(smallest_margin, level_of_look(look=1, declared=rule.looks))
    n_pairs = math.ceil(n_units / units_per_pair / scenario.overlap)
    return written("plan.errorless", pairs=_rounded(n_pairs))


def _rounded(n_pairs: int) -> int:
    """Round up to two digits: simulated chances allow no more."""
    step: int = 10 ** max(len(str(n_pairs)) - 2, 0)
    return math.ceil(n_pairs / step) * step


def _assumptions_sentence(
    scenario: AnyScenario, units_per_pair: float, margin: float, rule: DecisionSettings
) -> str:
    """Return the sentences on the assumptions, the rule and the accuracy of the chances."""
    if isinstance(scenario, ScaleScenario):
        labels = written("plan.on_scale", **{**vars(scenario), "kappa": scenario.kappa})
    else:
        labels = written("plan.yes_or_no", **vars(scenario), spread=scenario.spread_of_shares)
    kind = "declared" if rule.looks else "default"
    level = level_of_look(look=1, declared=rule.looks)
    limit = f"{margin:g} below human agreement, or a quarter of it if that is less"
    if rule.margin_share:  # which replaces the margin
        limit = f"{rule.margin_share:.0%} of human kappa below human agreement"
    return written(
        "plan.assumed",
        labels=labels,
        overlap=scenario.overlap,
        worth=units_per_pair,
        margin=limit,
        looks=written(f"plan.looks_{kind}", looks=rule.looks, level=level),
        least=scenario.least_kappa(rule.min_people_kappa),
    )


def _precision_sentence(scenario: AnyScenario, assumed: Assumptions, target: Target) -> str:
    """Return a sentence on the pairs and labels that the target takes."""
    needed = units_needed(target.statistic, target.half_width, scenario)
    figures: dict[str, Any] = {"statistic": target.statistic, "width": target.half_width}
    if needed is None:
        return written("plan.too_many", **figures)
    n_pairs = math.ceil(needed / assumed.units_per_pair)
    n_units = n_pairs * assumed.subjects
    n_shared = math.ceil(n_units * scenario.overlap)
    n_labels = n_shared * scenario.humans + (n_units - n_shared)  # one for a unit not shared
    figures |= {"pairs": n_pairs, "units": n_units, "labels": n_labels, "people": scenario.humans}
    if n_shared < n_units:
        return written("plan.needed_overlap", shared=n_shared, **figures)
    return written("plan.needed", **figures)


# ---- with a pilot -------------------------------------------------------------------------------


def plan_from(analysis: Analysis, target: Target, notes: Sequence[str] = ()) -> Plan:
    """Plan from the `analysis` of a pilot with `why=True`: the pairs that would decide on each
    grader; each rubric's variance components; the effect of more data. `notes` are on its labels.
    """
    deciding_lines, deciding = _deciding_table(analysis)
    component_lines, components, dependability = _component_tables(analysis)
    corrected_lines, corrected = _corrected_tables(analysis, target)
    interval_lines, intervals = _interval_table(analysis, target)
    tables = {"deciding": deciding, "components": components, "corrected": corrected}
    tables |= {"dependability": dependability, "intervals": intervals}
    lines = [*deciding_lines, *component_lines, *corrected_lines, *interval_lines]
    return Plan(lines, {name: pd.DataFrame(rows) for name, rows in tables.items()}, notes)


def _component_tables(analysis: Analysis) -> tuple[list[Line], list[Record], list[Record]]:
    """Return the variance components of each rubric's labels, and how well the mean of 1, 2 or more
    annotators ranks and places items (dependability): lines, and the data of both.
    """
    lines: list[Line] = []
    components: list[Record] = []
    dependability: list[Record] = []
    for rubric, variances in analysis.components.items():
        sample = {"units": variances.n_units, "people": variances.n_raters}
        text_rows: list[list[str]] = []
        sources = ("items differ", "annotators are lenient or strict", "everything else")
        values = (variances.unit, variances.rater, variances.residual)
        for name, value, share in zip(sources, values, variances.shares, strict=True):
            text_rows.append([name, f"{value:.3f}", "-" if math.isnan(share) else f"{share:.0%}"])
            components.append({"rubric": rubric, "source": name, "variance": value, "share": share})
        title = written("pilot.components", rubric=rubric or "labels", **sample)
        lines.append((title, ["source", "variance", "share"], text_rows))
        text_rows = []
        for n_raters in range(1, MOST_PER_UNIT + 1):
            design = d_study(variances, n_raters)
            text_rows.append([str(n_raters), f"{design.relative:.2f}", f"{design.absolute:.2f}"])
            record = {"raters": n_raters, "ranking": design.relative, "placing": design.absolute}
            dependability.append({"rubric": rubric, **record})
        columns = ["annotators per item", "ranking items", "placing items"]
        lines.append(("Dependability", columns, text_rows))
    return lines, components, dependability


def _corrected_tables(analysis: Analysis, target: Target) -> tuple[list[Line], list[Record]]:
    """Return the labelled items that the target takes, by rubric and grader: as lines and data."""
    lines: list[Line] = []
    rows: list[Record] = []
    for rubric, spreads in analysis.spreads.items():
        for (statistic, grader), spread in spreads.items():
            if statistic != target.statistic or not spread.sd > 0:
                continue
            sizes, table = _labels_by_graded(spread, target)
            basis = {"sd": spread.sd, "correlation": spread.correlation, "width": target.half_width}
            title = written("pilot.corrected", grader=f"{rubric} {grader}".strip(), **basis)
            lines.append((title, *table))
            fields: Record = {"rubric": rubric, "grader": grader, **basis}
            for graded, labelled in sizes.to_numpy():
                rows.append({**fields, "graded": graded, "labelled": labelled})
    return lines, rows


def _deciding_table(analysis: Analysis) -> tuple[list[Line], list[Record]]:
    """Return the pairs that decide on each grader, by number of annotators: as lines and data."""
    graders = analysis.pilots
    if not graders:
        return [written("pilot.no_grader")], []
    pilot_people = max(3, *(grader.people for grader in graders))  # 3 at least for a verdict
    people_counts = [pilot_people + n_added for n_added in MORE_PEOPLE]
    text_rows: list[list[str]] = []
    rows: list[Record] = []
    for grader in graders:
        by_people: dict[int, int | None] = dict.fromkeys(people_counts)
        if grader.people:  # 0 if there are too few annotators for a verdict about others like them
            by_people = {n_people: grader.clusters_to_decide(n_people) for n_people in by_people}
        cells = ["none" if n is None else str(n) for n in (grader.these, *by_people.values())]
        if not grader.people:
            cells[1:] = ["-"] * len(by_people)
        name = f"{grader.rubric} {grader.grader}".strip()
        text_rows.append([name, f"{grader.difference:+z.2f}", str(grader.clusters), *cells])
        fields = {"rubric": grader.rubric, "grader": grader.grader, "difference": grader.difference}
        record: Record = {**fields, "now": grader.clusters, "these": grader.these}
        rows.append(record | {f"like_{n}": clusters for n, clusters in by_people.items()})
    columns = ["", "difference", "now", "these", *(f"like {count}" for count in people_counts)]
    lines: list[Line] = [(written("pilot.to_decide"), columns, text_rows)]
    lines += [grader.stopped_by for grader in graders if grader.stopped_by]
    return [*lines, written("pilot.if_it_stays")], rows


def _interval_table(analysis: Analysis, target: Target) -> tuple[list[Line], list[Record]]:
    """Return half-widths of the statistic at multiples of the pilot's size: as lines and data."""
    statistic, width = target.statistic, target.half_width
    text_rows: list[list[str]] = []
    rows: list[Record] = []
    results = analysis.results[analysis.results["subset"].isin(["all", "all|binary"])]
    results = results[(results["rater_a"] == "humans") & results["low"].notna()]
    estimate_rows: list[Any] = []
    for _, rubric_rows in results.groupby("rubric", sort=False):
        names = [name for name in STATISTICS[statistic] if name in set(rubric_rows["statistic"])]
        estimate_rows += rubric_rows[rubric_rows["statistic"].isin(names[:1])].to_dict("records")
    for row in estimate_rows:
        pilot_half_width = (row["high"] - row["low"]) / 2
        n_added = clusters_for_width(row["n_clusters"], row["low"], row["high"], width)
        half_widths = {factor: pilot_half_width / factor**0.5 for factor in GROWTH}
        raters = " · ".join(filter(None, (row["rater_a"], row["rater_b"])))
        if row["subset"].endswith(BINARY):
            raters = f"{raters}, binary label"
        text_rows.append(
            [
                f"{row['rubric']} {raters} {row['at']}".strip(),
                f"{row['estimate']:.2f}",
                *(f"±{value:.2f}" for value in half_widths.values()),
                "-" if n_added is None else str(n_added),
            ]
        )
        fields = ("rubric", "statistic", "rater_a", "rater_b", "subset", "at", "estimate")
        record: Record = {name: row[name] for name in fields}
        record |= {f"half_width_{factor:g}": value for factor, value in half_widths.items()}
        rows.append({**record, "more": n_added})
    if not rows:
        return [written("pilot.no_interval", statistic=statistic)], []
    columns = ["", "estimate", "pilot's size", "twice", "four times", f"more for ±{width:g}"]
    title = written("pilot.half_widths", statistic=statistic)
    return [(title, columns, text_rows), written("pilot.narrowing")], rows
