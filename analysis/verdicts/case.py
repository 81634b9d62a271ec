"""The evidence for a verdict on one grader: its rows, the rule, and the noun for a cluster."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from evenhand.analysis.agreement.coefficients import kappa_on_scale
from evenhand.analysis.bias import Finding, flagged
from evenhand.analysis.bootstrap.intervals import Deciding
from evenhand.analysis.injection import Audit, audit_of
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL, LabelMatrix
from evenhand.analysis.notes import Code, says
from evenhand.analysis.people import reversed_scales
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.people.disagreements import COVERAGE, UNSCORED_AS_DISAGREEMENT
from evenhand.analysis.people.reversed_scales import Opposed
from evenhand.analysis.people.selection import BY_LABELS
from evenhand.analysis.requirement import ClusterCounts
from evenhand.analysis.results import BASELINES, ResultRow, ResultRows, key_of
from evenhand.analysis.thresholds.rows import CEILING_HELD_OUT, IN_FORCE, KAPPA_HELD_OUT
from evenhand.analysis.verdicts import evidence
from evenhand.analysis.verdicts.comparison import HELD_OUT, TUNED_FOR
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.texts import written

AT_THRESHOLD = "may_stand_in_at_threshold"
RECOMMENDED = "threshold_recommended"
STABILITY, REWORDED = "stability_fleiss_kappa", "rubric"
_BOUNDS = {
    "difference": evidence.NON_INFERIORITY,
    "like_these": evidence.NON_INFERIORITY_PEOPLE,
    "above": evidence.ABOVE_BASELINE,
    "people": evidence.PEOPLE_KAPPA,
    "rarer": evidence.RARER,
    "worth": evidence.WORTH,
    "chance": evidence.CHANCE,
    "to_pass": evidence.NEEDED,
    "if_wrong": evidence.IF_WRONG,
}
"""Statistics of the rows of `Bounds`, by field."""
_OPTIONAL = ("like_these", "to_pass", "if_wrong")


@dataclass(frozen=True)
class Bounds:
    """Bounds on a grader compared with people, as verdicts use them (`analysis.verdicts.evidence`):
    the difference for these people and for people like these, kappa above the better baseline,
    people's own kappa, the number of clusters with a label of another category than the commonest,
    the effective number of all clusters, the chance that the grader is within the margin, the
    number of clusters that would show it, and the deciding difference if every missing answer were
    wrong, None where none is missing.
    """

    difference: ResultRow
    like_these: ResultRow | None
    above: ResultRow
    people: ResultRow
    rarer: ResultRow
    worth: ResultRow
    chance: ResultRow
    to_pass: ResultRow | None
    if_wrong: ResultRow | None = None

    @classmethod
    def of(cls, rows: ResultRows, grader: str, subset: str, at: str = "") -> Bounds | None:
        """The bounds of a grader on one label view; None where it was not compared."""
        found = {
            field: rows.get(statistic, "humans", grader, subset, at)
            for field, statistic in _BOUNDS.items()
        }
        if any(row is None for field, row in found.items() if field not in _OPTIONAL):
            return None
        return cls(**found)  # type: ignore[arg-type]

    @property
    def rows(self) -> tuple[ResultRow | None, ...]:
        """All rows of the bounds, as evidence."""
        return tuple(vars(self).values())

    def sample(self, difference: ResultRow) -> ClusterCounts:
        """The sample on which a difference was found."""
        return ClusterCounts(
            difference["n_clusters"], self.worth["estimate"], self.rarer["estimate"]
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

    def advises(self, *kinds: Code) -> bool:
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
    below a half. `meet`: some unit
    has labels of two of them. `opposed` label the other way round.
    """

    number: int
    copied: tuple[tuple[str, float], ...] = ()
    copied_rows: tuple[ResultRow | None, ...] = ()
    least_kappa: float = 0.0
    meet: bool = True
    opposed: tuple[Opposed, ...] = ()


@dataclass(frozen=True)
class Answers:
    """How many of the units assigned to a grader it answered, and its agreement with people on
    these (`scored`) and where a missing answer counts as a disagreement (`everywhere`).
    """

    coverage: ResultRow | None = None
    scored: ResultRow | None = None
    everywhere: ResultRow | None = None

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
class Mistakes:
    """Signs of a plain mistake in the labels: kappas after recoding them (`recoded`, the largest
    first), and the shares of the category that the grader gives most often, in its labels and in
    people's (`commonest`).
    """

    recoded: tuple[ResultRow, ...] = ()
    commonest: tuple[ResultRow, ResultRow] | None = None

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        """All rows, as evidence."""
        return (*self.recoded, *(self.commonest or ()))


@dataclass(frozen=True)
class Case:
    """The evidence on one grader. `noun` is what a cluster is called.

    `present` are its labels as they are, `tuned` its verdicts at other thresholds; `binary` is the
    difference on binary verdicts, where the categories decide, and `is_binary` means that these
    verdicts decide for a rubric with more categories. `moving` is its stability across wordings of
    the rubric, where that is clearly too low; `injection` the audit of texts that try to manipulate
    it. `twins` are graders with the same labels. `selective` is its agreement on units with few
    labels and with more, where it depended on labels which units got more. `gross` is the share of
    its labels that are gross errors, where labels have an order, in `points` of the scale.
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
    moving: ResultRow | None = None
    injection: Audit | None = None
    twins: tuple[str, ...] = ()
    mistakes: Mistakes = Mistakes()
    selective: tuple[ResultRow, ResultRow] | None = None
    gross: ResultRow | None = None
    points: str = "points"

    @property
    def fields(self) -> dict[str, str]:
        """Fields that fill the verdict's sentence."""
        whom = written("whom.like_these" if self.rule.scope == "like_these" else "whom.these")
        place = f" on {self.rubric}" if self.rubric else ""
        return {"grader": self.grader, "whom": whom, "place": place}

    @property
    def to_beat(self) -> float:
        """The better baseline's kappa."""
        return max((row["estimate"] for row in self.baselines), default=math.nan)

    @property
    def shares_nothing(self) -> bool:
        """Return True if both people and the grader gave labels, but never on the same unit."""
        row = self.present.difference
        return self.people.number > 0 and self.answers.share[0] > 0 and not (row and row["n_units"])

    def deciding(self, bounds: Bounds) -> ResultRow:
        """The deciding difference by the rule's scope: for these people, or people like these."""
        wider = bounds.like_these if self.rule.scope == "like_these" else None
        return wider or bounds.difference

    @property
    def evidence(self) -> list[list[str]]:
        """The keys of the rows that the verdict rests on."""
        now, tuned, answers = self.present, self.tuned, self.answers
        rows = (
            now.difference,
            now.kappa,
            *(now.bounds.rows if now.bounds else ()),
            self.binary,
            answers.coverage,
            answers.scored,
            answers.everywhere,
            *(tuned.bounds.rows if tuned.bounds else ()),
            tuned.difference,
            tuned.kappa,
            tuned.advised,
            tuned.in_force,
            *self.baselines,
            *(each.row for each in now.biases),
            *(self.injection.rows(self.rule.injection) if self.injection else ()),
            self.moving,
            *now.parts,
            *tuned.parts,
            *self.mistakes.rows,
            *(self.selective or ()),
            self.gross,
            *self.people.copied_rows,
            *(row for each in self.people.opposed for row in (each.given, each.recoded)),
        )
        return keys_of(row for row in rows if row is not None)


def margin_of(row: ResultRow) -> float:
    """The margin that a comparison's bound is compared with; NaN where it could not be made."""
    return row["deciding"].margin if row["deciding"] else math.nan


def keys_of(rows: Iterable[ResultRow]) -> list[list[str]]:
    """Return the keys of rows (`RESULTS_KEY`), each once."""
    return [list(key) for key in dict.fromkeys(key_of(row) for row in rows)]


def case_of(
    rows: ResultRows, labels: LabelMatrix, grader: str, rule: DecisionSettings, noun: str
) -> Case:
    """Collect the evidence on a grader: on the categories, else on the binary verdict."""
    kappa, subset = labels.scale.deciding_kappa, "all"
    categories = rows.get(CEILING, "humans", grader, "all")
    binary = rows.get(CEILING, "humans", grader, BINARY_ALL)
    if binary and (categories is None or categories["n_units"] == 0):
        kappa, subset, categories, binary = "cohen_kappa", BINARY_ALL, binary, None
    baselines = (rows.get(kappa, "humans", name, subset) for name in BASELINES)
    scored, everywhere = (
        rows.get(name, "humans", grader, subset)
        for name in ("observed_agreement", UNSCORED_AS_DISAGREEMENT)
    )
    if scored is None or everywhere is None:
        scored = everywhere = None
    moving = rows.get(STABILITY, grader, "", "all", REWORDED)
    by_labels = (tuple(_wherever(rows, BY_LABELS, grader, view)) for view in ("all", BINARY_ALL))
    chance, level, least = rows.chance.get(""), labels.scale.level, rule.min_people_kappa
    if subset != BINARY_ALL and level != "nominal":
        least = kappa_on_scale(least, labels.scale.ordered)
    elif subset != BINARY_ALL and chance is not None:
        least *= min(2.0 * float((chance.shares**2).sum()), 1.0)
    # The category that the grader gives most often, among its labels and among people's; binary
    # verdicts have rates that show it already.
    shares = [
        (given, of_people)
        for at in labels.scale.categories
        if (given := rows.get("prevalence", grader, "", subset, at))
        and (of_people := rows.get("prevalence", "humans", "", subset, at))
    ]
    recoded = (
        rows.get(reversed_scales.RECODED, "humans", grader, subset, kind)
        for kind in reversed_scales.RECODINGS
    )
    largest_first = sorted(filter(None, recoded), key=lambda row: -row["estimate"])
    own = labels.raters.index(grader)
    copies = {each.of: each.share for each in labels.copies if each.who == own}
    return Case(
        rubric=labels.scale.name,
        grader=grader,
        rule=rule,
        noun=noun,
        people=People(
            number=len(set(labels.humans) - set(copies)),
            copied=tuple((labels.raters[of], copies[of]) for of in copies if of in labels.humans),
            copied_rows=tuple(
                rows.get("observed_agreement", labels.raters[of], grader, "all") for of in copies
            ),
            least_kappa=least,
            meet=bool((labels.scored[:, labels.humans].sum(axis=1) >= 2).any()),
            opposed=tuple(reversed_scales.opposed_in(rows)),
        ),
        answers=Answers(rows.get(COVERAGE, "", grader), scored, everywhere),
        present=View(
            difference=categories,
            kappa=rows.get(kappa, "humans", grader, subset),
            bounds=Bounds.of(rows, grader, subset),
            biases=tuple(flagged(rows, grader, rule.bias_bound)),
            parts=_parts(rows, grader, subset),
        ),
        tuned=_tuned(rows, grader, rule, is_compared=subset == BINARY_ALL),
        binary=binary,
        is_binary=subset == BINARY_ALL and len(labels.scale.categories) > 2,
        baselines=tuple(row for row in baselines if row is not None),
        moving=moving if moving is not None and moving["high"] < rule.min_stability else None,
        injection=audit_of(rows.rows.values(), grader),
        twins=tuple(labels.raters[of] for of in copies if of in labels.models),
        mistakes=Mistakes(
            tuple(largest_first),
            max(shares, key=lambda each: each[0]["estimate"], default=None),
        ),
        selective=next(((each[0], each[1]) for each in by_labels if len(each) == 2), None),
        gross=next(iter(_wherever(rows, reversed_scales.GROSS, grader, "all")), None),
        points="points" if labels.scale.has_numbers else "steps of the scale",
    )


def _wherever(rows: ResultRows, statistic: str, grader: str, subset: str) -> list[ResultRow]:
    """Return the rows of a statistic of a grader, whatever their `at`."""
    of = (statistic, grader, subset)
    every = rows.rows.values()
    return [row for row in every if (row["statistic"], row["rater_b"], row["subset"]) == of]


def _parts(rows: ResultRows, grader: str, subset: str, at: str = "") -> tuple[ResultRow, ...]:
    """The grader's rows for each part of the sample, on the same label view as the whole."""
    is_binary = subset == BINARY_ALL
    return tuple(
        row
        for row in rows.rows.values()
        if (row["statistic"], row["rater_b"], row["at"]) == (evidence.PART, grader, at)
        and row["subset"].endswith(BINARY) == is_binary
    )


def _tuned(rows: ResultRows, grader: str, rule: DecisionSettings, *, is_compared: bool) -> Tuned:
    in_force = rows.get(IN_FORCE, "", grader, BINARY_ALL)
    names, at = (CEILING_HELD_OUT, KAPPA_HELD_OUT), TUNED_FOR
    if in_force is not None:
        names, at = (CEILING, "cohen_kappa"), ""
    difference, kappa = (rows.get(name, "humans", grader, BINARY_ALL, at) for name in names)
    return Tuned(
        difference=difference,
        kappa=kappa,
        bounds=Bounds.of(rows, grader, BINARY_ALL, HELD_OUT),
        biases=tuple(flagged(rows, grader, rule.bias_bound, held_out=True)),
        parts=_parts(rows, grader, BINARY_ALL, HELD_OUT),
        advised=rows.get(RECOMMENDED, "humans", grader, BINARY_ALL, TUNED_FOR),
        in_force=in_force,
        is_compared=in_force is not None and is_compared,
    )
