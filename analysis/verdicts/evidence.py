"""The evidence on graders: each compared with people, bounded at the verdict's level.

A verdict is a test: may the grader lie further below people than the margin? Its error rate is that
of the bounds here, taken at the null (see `analysis.bootstrap.bounds`), at a level that leaves room
for every look at the study (`analysis.bootstrap.bounds`) and for all graders of the rubric at
once. The intervals elsewhere in the results are each for one figure at one look.

Bounds are for these people and pairs like these; from three people on also for people like these,
where what people add to the variance is the jackknife's, each person left out in turn.

`add_deciding_rows` compares, and keeps what it wrote as `Bounds`; `evidence_on` adds to these what
other parts of the analysis found out about a grader. Verdicts know nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from evenhand.analysis.agreement.coefficients import kappa_on_scale
from evenhand.analysis.agreement.pairs import deciding_kappa
from evenhand.analysis.bias.audit import Finding, flagged
from evenhand.analysis.bootstrap.bounds import (
    ALPHA,
    level_of_look,
    reach,
    reach_over_people,
    simultaneous_level,
    standard_error,
)
from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Deciding, Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.injection import Audit, audits
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL, LabelMatrix, UnitColumn
from evenhand.analysis.people import annotators
from evenhand.analysis.people.annotators import BY_LABELS, Opposed
from evenhand.analysis.people.comparison import CEILING
from evenhand.analysis.people.disagreements import COVERAGE
from evenhand.analysis.people.slices import SIDE_KAPPA
from evenhand.analysis.requirement import ClusterCounts, Pilot, surer_level
from evenhand.analysis.results import BASELINES, ResultRow, ResultRows, key_of
from evenhand.analysis.statistics import Note, Remark, says
from evenhand.analysis.thresholds.tuning import CEILING_HELD_OUT, IN_FORCE, KAPPA_HELD_OUT
from evenhand.analysis.types import Array
from evenhand.analysis.verdicts.comparison import (
    HELD_OUT,
    TUNED_FOR,
    UNTUNED,
    Comparator,
    Comparison,
    Reading,
    if_wrong,
    readings_of,
)
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.texts import written

NON_INFERIORITY = "non_inferiority"
NON_INFERIORITY_PEOPLE = "non_inferiority_people"
IF_WRONG = "non_inferiority_unscored_as_disagreement"
PART = "part_non_inferiority"
ABOVE_BASELINE = "kappa_above_baseline"
PEOPLE_KAPPA = "people_kappa"
MINORITY = "rarer_clusters"
EFFECTIVE = "clusters_worth"
CHANCE = "chance_within_margin"
NEEDED = "clusters_to_pass"
STATISTICS = (
    *(NON_INFERIORITY, NON_INFERIORITY_PEOPLE, IF_WRONG, PART, ABOVE_BASELINE, PEOPLE_KAPPA),
    *(MINORITY, EFFECTIVE, CHANCE, NEEDED),
)
"""All that `add_deciding_rows` adds."""
AT_THRESHOLD = "can_replace_at_threshold"
RECOMMENDED = "threshold_recommended"
STABILITY, REWORDED = "stability_fleiss_kappa", "rubric"


@dataclass(frozen=True)
class Bounds:
    """Rows with the bounds on a grader compared with people, as `add_deciding_rows` wrote them: the
    difference for these people and for people like these, kappa above the better baseline, people's
    own kappa, the number of clusters with a label of another category than the commonest, the
    effective number of all clusters, the chance that the grader is within the margin, the number of
    clusters that would show it, and the deciding difference if every missing answer were wrong,
    None where none is missing.
    """

    difference: ResultRow
    like_these: ResultRow | None
    above_baseline: ResultRow
    people: ResultRow
    minority_clusters: ResultRow
    effective_clusters: ResultRow
    chance: ResultRow
    clusters_to_pass: ResultRow | None
    if_wrong: ResultRow | None = None

    @property
    def rows(self) -> tuple[ResultRow | None, ...]:
        """All rows of the bounds, as evidence."""
        return tuple(vars(self).values())

    def sample(self, difference: ResultRow) -> ClusterCounts:
        """The sample on which a difference was found."""
        return ClusterCounts(
            difference["n_clusters"],
            self.effective_clusters["estimate"],
            self.minority_clusters["estimate"],
        )

    @property
    def survives(self) -> bool:
        """Return True if the grader would be within the margin with every missing answer wrong."""
        return self.if_wrong is None or self.if_wrong["low"] > -margin_of(self.if_wrong)

    @property
    def margin(self) -> float:
        """Largest amount by which the grader's kappa may lie below people's."""
        return margin_of(self.difference)

    @property
    def level(self) -> Deciding:
        """The level of the bounds at this look, and at the next."""
        return self.difference["deciding"] or Deciding()

    @property
    def has_no_level(self) -> bool:
        """Return True if nothing of the error allowed is left for this look, or it is none."""
        return says(self.difference["remarks"], "no_level")


@dataclass(frozen=True)
class View:
    """A grader compared with people on one view of its labels: the figures of the table, `bounds`
    that decide, biases found, and the parts of the sample that were tested.
    """

    difference: ResultRow | None = None
    kappa: ResultRow | None = None
    bounds: Bounds | None = None
    biases: tuple[Finding, ...] = ()
    parts: tuple[ResultRow, ...] = ()

    @property
    def failing(self) -> list[ResultRow]:
        """The parts in which the grader is clearly below people."""
        return [row for row in self.parts if row["high"] < -margin_of(row)]


@dataclass(frozen=True)
class Tuned(View):
    """Verdicts at thresholds that were tuned on other clusters. `advised` is the threshold that
    tuning advises, its first remark the kind of advice; `in_force` the tuned one in use, at which
    verdicts are compared with people if `is_compared`.
    """

    advised: ResultRow | None = None
    in_force: ResultRow | None = None
    is_compared: bool = False

    @property
    def threshold(self) -> ResultRow | None:
        """The tuned threshold in use, or else the advised one."""
        return self.in_force or self.advised

    def advises(self, *kinds: str) -> bool:
        """Return True if tuning advises one of these kinds: tuned, default, not_identifiable."""
        if self.in_force is not None:
            return "tuned" in kinds
        return self.advised is not None and any(
            says(self.advised["remarks"], kind) for kind in kinds
        )


@dataclass(frozen=True)
class People:
    """The people that a grader is compared with: how many, those whose labels it repeats, with the
    share of units on which it does and the rows that show it, and the kappa among people below
    which no grader can be judged: on a scale the weighted kappa that shows as much as the floor for
    two categories (`analysis.agreement.coefficients.kappa_on_scale`); of many unordered categories
    as much less as the chance agreement that people's shares imply, the sum of their squares, is
    below a half. `meet`: some unit has labels of two of them. `opposed` label the other way round.
    `sides` has kappa within and then across the sides of each column by which they differ.
    """

    number: int
    copied: tuple[tuple[str, float], ...] = ()
    copied_rows: tuple[ResultRow | None, ...] = ()
    least_kappa: float = 0.0
    meet: bool = True
    opposed: tuple[Opposed, ...] = ()
    sides: tuple[ResultRow, ...] = ()


@dataclass(frozen=True)
class Answers:
    """Share of the units assigned to a grader that it answered, and its agreement with people on
    these (`scored`).
    """

    coverage: ResultRow | None = None
    scored: ResultRow | None = None

    @property
    def share(self) -> tuple[float, float, float]:
        """The share that the grader answered, with its bounds; 0 where none was assigned."""
        row = self.coverage
        if row is None:
            return 0.0, 0.0, 0.0
        if math.isnan(row["low"]):
            return row["estimate"], row["estimate"], row["estimate"]
        return row["estimate"], row["low"], row["high"]


@dataclass(frozen=True)
class VerdictEvidence:
    """The evidence on one grader. `noun` is what a cluster is called.

    `present` are its labels as they are, `tuned` its verdicts at other thresholds; `binary` is the
    difference on binary labels, where the categories decide, and `is_binary` means that these
    verdicts decide for a rubric with more categories. `wording_unstable` is its stability across
    wordings of the rubric, where that is clearly too low; `injection` the audit of texts that try
    to manipulate it. `identical_graders` have the same labels. Signs of a plain mistake are its
    kappas after recoding its labels (`recoded`, the largest first). `selective` is its
    agreement on units with few labels and with more, where it depended on labels which units got
    more. `gross` is the share of its labels that are gross errors, where labels have an order, in
    `points` of the scale.
    """

    rubric: str
    grader: str
    rule: DecisionSettings
    noun: str
    people: People
    answers: Answers
    present: View
    tuned: Tuned
    binary: ResultRow | None = None
    is_binary: bool = False
    baselines: tuple[ResultRow, ...] = ()
    wording_unstable: ResultRow | None = None
    injection: Audit | None = None
    identical_graders: tuple[str, ...] = ()
    recoded: tuple[ResultRow, ...] = ()
    selective: tuple[ResultRow, ResultRow] | None = None
    gross: ResultRow | None = None
    points: str = "points"

    @property
    def fields(self) -> dict[str, str]:
        """Fields that fill the verdict's sentence."""
        people = written("whom.like_these" if self.rule.scope == "like_these" else "whom.these")
        place = f" on {self.rubric}" if self.rubric else ""
        return {"grader": self.grader, "whom": people, "place": place}

    @property
    def best_baseline_kappa(self) -> float:
        """The better baseline's kappa."""
        return max((row["estimate"] for row in self.baselines), default=math.nan)

    @property
    def is_unfit(self) -> bool:
        """Return True if there are too few people for the scope of the rule."""
        return self.people.number < (3 if self.rule.scope == "like_these" else 2)

    def deciding(self, bounds: Bounds) -> ResultRow:
        """The deciding difference by the rule's scope: for these people, or people like these."""
        wider = bounds.like_these if self.rule.scope == "like_these" else None
        return wider or bounds.difference

    @property
    def keys(self) -> list[list[str]]:
        """The keys of the rows that the verdict rests on."""
        now, tuned, answers = self.present, self.tuned, self.answers
        return keys_of(
            *(now.difference, now.kappa),
            *(now.bounds.rows if now.bounds else ()),
            *(self.binary, answers.coverage, answers.scored),
            *(tuned.bounds.rows if tuned.bounds else ()),
            *(tuned.difference, tuned.kappa, tuned.advised, tuned.in_force),
            *self.baselines,
            *(pair.row for pair in now.biases),
            *(self.injection.rows(self.rule.injection) if self.injection else ()),
            self.wording_unstable,
            *(*now.parts, *tuned.parts),
            *(*self.recoded, *(self.selective or ())),
            *(self.gross, *self.people.copied_rows),
            *(row for pair in self.people.opposed for row in (pair.given, pair.recoded)),
            *self.people.sides,
        )


def margin_of(row: ResultRow) -> float:
    """The margin that a comparison's bound is compared with; NaN where it could not be made."""
    return row["deciding"].margin if row["deciding"] else math.nan


def part_of(row: ResultRow) -> str:
    """The name of the part that a row is about."""
    return row["subset"].removesuffix(BINARY)


def keys_of(*rows: ResultRow | None) -> list[list[str]]:
    """Return the keys of rows (`RESULTS_KEY`), each once."""
    return [list(key) for key in dict.fromkeys(key_of(row) for row in rows if row is not None)]


def evidence_on(
    rows: ResultRows, labels: LabelMatrix, grader: str, rule: DecisionSettings, noun: str
) -> VerdictEvidence:
    """Collect the evidence on a grader: on the categories, else on the binary label. What it was
    compared on is what `add_deciding_rows` kept; all other rows are found here, and here alone.
    """
    kappa, subset = labels.scale.deciding_kappa, "all"
    categories = rows.get(CEILING, "humans", grader)
    binary = rows.get(CEILING, "humans", grader, BINARY_ALL)
    if binary and (categories is None or categories["n_units"] == 0):
        kappa, subset, categories, binary = "cohen_kappa", BINARY_ALL, binary, None

    def row(statistic: str, at: str = "", subset: str = subset) -> ResultRow | None:
        return rows.get(statistic, "humans", grader, subset, at)

    def wherever(statistic: str, subset: str) -> list[ResultRow]:
        key = (statistic, grader, subset)
        every = rows.rows.values()
        return [e for e in every if (e["statistic"], e["rater_b"], e["subset"]) == key]

    wordings = rows.get(STABILITY, grader, "", "all", REWORDED)
    by_labels = (
        [row for row in wherever(BY_LABELS, view) if row["at"][0].isdigit()]
        for view in ("all", BINARY_ALL)
    )
    chance, level, least = rows.chance.get(""), labels.scale.level, rule.min_people_kappa
    if subset != BINARY_ALL and level != "nominal":
        least = kappa_on_scale(least, labels.scale.ordered)
    elif subset != BINARY_ALL and chance is not None:
        least *= min(2.0 * float((chance.shares**2).sum()), 1.0)
    recoded = (row(annotators.RECODED, kind) for kind in annotators.RECODINGS)
    column = labels.raters.index(grader)
    copies = {copy.duplicate_of: copy.share for copy in labels.copies if copy.rater == column}
    in_force = rows.get(IN_FORCE, "", grader, BINARY_ALL)
    names, at = (CEILING_HELD_OUT, KAPPA_HELD_OUT), TUNED_FOR
    if in_force is not None:
        names, at = (CEILING, "cohen_kappa"), ""
    retuned = rows.compared.get((grader, BINARY_ALL, HELD_OUT), View())
    return VerdictEvidence(
        rubric=labels.scale.name,
        grader=grader,
        rule=rule,
        noun=noun,
        people=People(
            number=len(set(labels.humans) - set(copies)),
            copied=tuple(
                (labels.raters[of], share) for of, share in copies.items() if of in labels.humans
            ),
            copied_rows=tuple(
                rows.get("observed_agreement", labels.raters[of], grader) for of in copies
            ),
            least_kappa=least,
            meet=bool((labels.scored[:, labels.humans].sum(axis=1) >= 2).any()),
            opposed=tuple(annotators.opposed_in(rows)),
            sides=tuple(e for e in rows.rows.values() if e["statistic"] == SIDE_KAPPA),
        ),
        answers=Answers(rows.get(COVERAGE, "", grader), row("observed_agreement")),
        present=replace(
            rows.compared.get((grader, subset, ""), View()),
            difference=categories,
            kappa=row(kappa),
            biases=tuple(flagged(rows, grader, rule.bias_bound)),
        ),
        tuned=Tuned(
            difference=row(names[0], at, BINARY_ALL),
            kappa=row(names[1], at, BINARY_ALL),
            bounds=retuned.bounds,
            biases=tuple(flagged(rows, grader, rule.bias_bound, held_out=True)),
            parts=retuned.parts,
            advised=row(RECOMMENDED, TUNED_FOR, BINARY_ALL),
            in_force=in_force,
            is_compared=in_force is not None and subset == BINARY_ALL,
        ),
        binary=binary,
        is_binary=subset == BINARY_ALL and len(labels.scale.categories) > 2,
        baselines=tuple(
            given for name in BASELINES if (given := rows.get(kappa, "humans", name, subset))
        ),
        wording_unstable=wordings if wordings and wordings["high"] < rule.min_stability else None,
        injection=next((a for a in audits(rows.rows.values()) if a.grader == grader), None),
        identical_graders=tuple(labels.raters[of] for of in copies if of in labels.models),
        recoded=tuple(sorted(filter(None, recoded), key=lambda row: -row["estimate"])),
        selective=next(((label[0], label[1]) for label in by_labels if len(label) == 2), None),
        gross=next(iter(wherever(annotators.GROSS, "all")), None),
        points="points" if labels.scale.has_numbers else "steps of the scale",
    )


def add_deciding_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    resamples: Resamples,
    margin: float,
    rule: DecisionSettings,
    look: int = 1,
    parts: Sequence[UnitColumn] = (),
    error: float = ALPHA,
) -> None:
    """Add the rows that verdicts rest on for every grader, and at = "held_out" for thresholds tuned
    on other clusters: `non_inferiority`, the ceiling difference; `non_inferiority_people`, the same
    for people like these; `non_inferiority_unscored_as_disagreement`, the one that decides if every
    missing answer were wrong, where some are missing; `kappa_above_baseline`; `people_kappa`;
    `chance_within_margin`; `clusters_worth`, the effective number of clusters, `clusters_to_pass`,
    and `rarer_clusters`, that of clusters with a label of a rarer category. And `non_inferiority`
    once more in each part of the sample that `parts` tell apart. What decides on each view of a
    grader's labels is kept in `rows.compared`.

    `low` and `high` are one-sided bounds, each at the level of the verdict, so that a wrong pass
    has at most the `error`, over all graders and looks. Of the `resamples` of the clusters only
    the clusters themselves are taken.
    """
    if not labels.humans:
        return
    # Clusters without a person's label tell nothing about people, and are not counted.
    labelled = np.flatnonzero((labels.codes[:, list(labels.humans)] >= 0).any(axis=1))
    left_out = resamples.left_out(labels.clusters[labelled])
    comparator = Comparator(left_out, margin, rule.margin_share)
    readings, comparisons = list(readings_of(labels)), []
    for reading in readings:
        kappas = (
            rows.get(deciding_kappa(reading.coded), "humans", name, reading.coded.subset)
            for name in BASELINES
        )
        better = max((row["estimate"] for row in kappas if row is not None), default=math.nan)
        compared = comparator.compared(reading, better)
        if compared is not None and not math.isnan(compared.baseline_difference):
            comparisons.append(compared)
    if not comparisons:
        return
    once = [view.difference_influence for view in comparisons if view.reading.counts_once]
    level, bounds = shared_level(once, len(comparisons), rule, look, error), {}
    for comparison in comparisons:
        if comparison.reading.at != UNTUNED:
            # The one that decides if every missing answer were wrong, through the same bound.
            wrong = if_wrong(labels, comparison.reading, left_out.mass.astype(float))
            worst = comparator.compared(wrong, comparison.best_baseline_kappa) if wrong else None
            bounds[comparison.reading.view] = _add_bounds(rows, comparison, level, worst, rule)
    judged = [view for view in readings if view.at != UNTUNED]
    tested = add_part_rows(rows, judged, comparator, parts, level.alpha, rule.min_rarer)
    rows.compared |= {
        view: View(bounds=bounds.get(view), parts=of_view) for view, of_view in tested.items()
    }


def shared_level(
    influences: Sequence[Array], comparisons: int, rule: DecisionSettings, look: int, error: float
) -> Deciding:
    """Return the level that this look may spend, shared by all `comparisons` of a rubric, of which
    these are the clusters' influences (clusters,).
    """
    alpha, after = (level_of_look(number, rule.looks, error) for number in (look, look + 1))
    if not alpha:
        return Deciding(0.0, look, comparisons, 0.0)
    defined = [number for number in influences if not np.isnan(number).any()]
    together = simultaneous_level(np.column_stack(defined), alpha) if defined else alpha
    return Deciding(together, look, comparisons, together * after / alpha)


def _add_bounds(
    rows: ResultRows,
    compared: Comparison,
    level: Deciding,
    worst: Comparison | None,
    rule: DecisionSettings,
) -> Bounds:
    """Add the rows of one comparison, and return them. `worst` is the same with every missing
    answer wrong.
    """

    def add(statistic: str, interval: Interval, held: Deciding, note: Note = "") -> ResultRow:
        counts, key = compared.counts, compared.reading.key
        return rows.added(statistic, interval.held(held), counts, **key, note=note)

    difference = compared.below_people.bounded(compared.difference, level.alpha)
    people = _bounded_over_people(compared, difference, level.alpha)
    at_margin = replace(level, margin=compared.margin)
    both = compared.people_variance + standard_error(compared.difference_influence) ** 2
    share = compared.people_variance / both if both > 0 else 0.0
    over_people = replace(level, people=compared.people, from_people=share, bar=-compared.margin)
    pooled = Remark("pooled_pairs") if compared.pooled else ""
    constant = Remark("constant_rater") if compared.constant else ""
    apart = compared.baseline_difference
    above = compared.above_baseline.bounded(apart, level.alpha)
    if compared.constant:  # itself one of the baselines, whatever another cluster brings
        above = Interval(apart, apart, apart)
    # The total number of clusters that would show at the next look that the grader is within the
    # margin, in 80% of studies if the estimates stay; unless it is shown already.
    factor = math.inf
    if difference.low <= -compared.margin < difference.estimate and level.next_alpha > 0:
        factor = compared.below_people.growth(compared.null, surer_level(level.next_alpha))
    to_pass = Interval.point(math.ceil(factor * compared.counts[1])) if factor < math.inf else None
    kappa = _bounded_kappa(compared, level.alpha, rows.heaviest)
    kappa = replace(kappa, high=min(kappa.high, 1.0))
    bounds = Bounds(
        difference=add(
            NON_INFERIORITY, difference, replace(at_margin, margin_share=compared.share), pooled
        ),
        like_these=add(NON_INFERIORITY_PEOPLE, people, over_people) if people else None,
        above_baseline=add(ABOVE_BASELINE, above, replace(level, bar=0.0), constant),
        people=add(PEOPLE_KAPPA, kappa, level, pooled),
        chance=add(CHANCE, Interval.point(compared.chance_within), at_margin),
        clusters_to_pass=add(NEEDED, to_pass, level) if to_pass else None,
        effective_clusters=add(EFFECTIVE, Interval.point(compared.sample.effective), level),
        minority_clusters=add(MINORITY, Interval.point(compared.sample.minority), level),
    )
    if worst is None:
        return bounds
    difference = worst.below_people.bounded(worst.difference, level.alpha)
    if rule.scope == "like_these":
        difference = _bounded_over_people(worst, difference, level.alpha) or difference
    held = difference.held(replace(level, margin=worst.margin, margin_share=worst.share))
    return replace(bounds, if_wrong=rows.added(IF_WRONG, held, worst.counts, **worst.reading.key))


def _bounded_kappa(compared: Comparison, alpha: float, heaviest: float) -> Interval:
    """Return people's kappa with both one-sided bounds; where nothing varies, as far away from it
    as unseen clusters could move it.

    As many clusters may disagree as would stay unseen in such a sample with a chance of `alpha`
    (Clopper & Pearson 1934, for none of n). They may all be of the kind that counts `heaviest`,
    being the least likely to be picked.
    """
    estimate, contributions = compared.people_kappa, compared.people_influence
    if math.isnan(estimate):
        return Interval.undefined("too_few_raters")
    if not alpha:
        return Interval(estimate, math.nan, math.nan, (Remark("no_level"),))
    if not np.ptp(contributions) > 0:
        unseen = 1.0 - alpha ** (heaviest / max(compared.counts[1], 1))
        silent = float(min(unseen / max(1.0 - compared.chance, 1e-9), 2.0))
        varies_not = (Remark("nothing_varies"),)
        return Interval(estimate, estimate - silent, estimate + silent, varies_not)
    below, above = reach(contributions, alpha), reach(-contributions, alpha)
    return Interval(estimate, estimate - below, estimate + above)


def _bounded_over_people(compared: Comparison, these: Interval, alpha: float) -> Interval | None:
    """The difference for people like these; None with fewer than three people."""
    if math.isnan(compared.people_variance) or not alpha or math.isnan(these.low):
        return None
    reached = np.array([these.estimate - these.low, these.high - these.estimate])
    of_people = compared.people_variance, compared.people
    below, above = reach_over_people(reached, *of_people, compared.sample.effective, alpha).tolist()
    return Interval(compared.difference, compared.difference - below, compared.difference + above)


def add_part_rows(
    rows: ResultRows,
    readings: Sequence[Reading],
    comparator: Comparator,
    columns: Sequence[UnitColumn],
    alpha: float,
    min_minority: int,
) -> dict[tuple[str, str, str], tuple[ResultRow, ...]]:
    """Add and return `part_non_inferiority` of every grader in every part that units columns tell
    apart: as `non_inferiority`, with bounds that hold in all parts of a grader at once at the level
    `alpha` (Bonferroni: parts share few clusters).

    A pass on the whole may fail in a part. Only a part in which a grader is clearly below people
    counts against it: most parts are too small to show more. There are no bounds where fewer than
    `min_minority` clusters have a label of the rarer kind.
    """
    if not readings:
        return {}
    parts, clusters = [], readings[0].coded.clusters
    for name, chosen in (part for column in columns for part in column.parts()):
        inside = comparator.left_out.only(np.unique(clusters[chosen]))
        parts.append((name, chosen, Comparator(inside, comparator.margin, comparator.margin_share)))
    added = {}
    for reading in readings:
        of_view = []
        for name, chosen, of_units in parts:
            coded = reading.coded.only(chosen, reading.coded.part(name))
            people = coded.people_beside(reading.grader)
            both = coded.labelled[:, reading.grader] & coded.labelled_by_any(people)
            of_part = Reading(coded, reading.grader, reading.at)
            compared = of_units.compared(of_part, over_people=False)
            if compared is None:
                bounds = Interval.undefined("too_few_labels")
            elif (
                alpha
                and compared.sample.minority >= min_minority
                and compared.sample.effective >= MIN_CLUSTERS
            ):
                bounds = compared.below_people.around(compared.difference, alpha / len(parts))
            else:
                bounds = Interval.point(compared.difference, Remark("too_few_labels"))
            held = bounds.held(Deciding(margin=compared.margin) if compared else None)
            counts = of_units.left_out.count(coded.clusters, both)
            of_view.append(rows.added(PART, held, counts, **of_part.key))
        added[reading.view] = tuple(of_view)
    return added


def pilots(rows: Iterable[ResultRow]) -> list[Pilot]:
    """Return each grader compared with people, on the labels that its verdict is taken from, where
    there are bounds.
    """
    compared = [row for row in rows if row["rater_a"] == "humans" and not row["at"]]
    wider = {
        (row["rubric"], row["rater_b"]): row
        for row in compared
        if row["statistic"] == NON_INFERIORITY_PEOPLE
    }
    estimated = []
    for row in compared:
        if row["statistic"] != NON_INFERIORITY or not row["high"] > row["low"]:
            continue
        level, over_people = row["deciding"] or Deciding(), Deciding(from_people=math.nan)
        if like_these := wider.get((row["rubric"], row["rater_b"])):
            over_people = like_these["deciding"] or over_people
        reached, share = (row["high"] - row["low"]) / 2, over_people.from_people
        of_clusters = (reached / float(stdtrit(row["n_clusters"] - 1, 1.0 - level.alpha))) ** 2
        pilot = Pilot(
            rubric=row["rubric"],
            grader=row["rater_b"],
            difference=row["estimate"],
            margin=level.margin,
            of_clusters=of_clusters,
            clusters=row["n_clusters"],
            of_people=of_clusters * share / (1.0 - share),
            people=over_people.people,
            alpha=level.next_alpha,
        )
        estimated.append(pilot)
    return estimated
