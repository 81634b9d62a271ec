"""Write verdicts in words: names of verdicts, figures, and sentences with the reasons.

A reason is a sentence, with a few words for a table's cell. All are in `evenhand/texts.toml`, in
the sections `because` and `short`, and `because` fills them in. First comes the verdict as a whole
(`Decision`, `further_reasons`, `limits`), then single reasons (`..._reason`), the advice on what
would decide, and figures (`..._in_words`). `requirements` and `judge` choose among the reasons.

`case` is always the evidence on one grader, `bounds` are the rows that decide on one view of its
labels, and a `row` is one of the results.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict, get_args

from evenhand.analysis import statistics
from evenhand.analysis.bootstrap.bounds import ALPHA, LOOKS
from evenhand.analysis.injection import Audit
from evenhand.analysis.people.annotators import EXCHANGED, HIGHER, LOWER, REVERSED, Opposed
from evenhand.analysis.requirement import Reason
from evenhand.analysis.results import ResultRow, sample_of
from evenhand.analysis.verdicts import evidence
from evenhand.analysis.verdicts.evidence import Answers, Bounds, VerdictEvidence, ViewEvidence
from evenhand.study.settings.analysis import InjectionBounds
from evenhand.texts import number_of, texts, written

MOST_PARTS = 3  # of the sample that a sentence names
Judgement = Literal[
    "can_replace", "can_replace_at_threshold", "agrees_with_reference", "only_with_correction",
    "inconclusive", "disagrees_with_reference", "do_not_use",
]  # fmt: skip
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)
"""All verdicts, the best first."""
PASSES: tuple[Judgement, ...] = JUDGEMENTS[:3]
"""Verdicts that let a grader be used as it is."""


@dataclass(frozen=True)
class Title:
    """Names of a verdict: an icon and `words` for a card, `short` words for a table."""

    icon: str
    words: str
    short: str


TITLES: dict[Judgement, Title] = {
    code: Title(icon, written(f"title.{code}"), written(f"short_title.{code}"))
    for code, icon in zip(JUDGEMENTS, "✓✓✓±?✕✕", strict=True)
}
HoldsFor = Literal["", "labels", "binary"]
"""Labels that a pass holds for, if not for all: categories, or binary labels."""
_RECODED = {REVERSED: "reversed", LOWER: "lower", HIGHER: "higher", EXCHANGED: "exchanged"}
"""Names of reasons, by the recoding with which a grader would agree."""
_MAY_BE = {
    "pulled": "may_be_pulled", "knocked_off": "may_be_knocked_off", "silenced": "may_be_silenced",
}  # fmt: skip
"""Names of reasons, by the injection outcome that is not excluded."""


class NextStep(TypedDict):
    """The cheapest step from "inconclusive" to a decision: more "clusters"; more "people" on the
    same clusters; another "threshold", shown by more clusters; a clearer "rubric"; the labels of
    "annotators" who reverse labels; several labels on units drawn at random ("overlap"); or a
    "look" (interim analysis, such as a report) at new labels. `number` is how many, 0 if unknown.
    """

    kind: Literal["clusters", "people", "threshold", "rubric", "annotators", "overlap", "look"]
    number: int


def because(name: str, short_name: str = "", /, **fields: object) -> Reason:
    """Return a reason by its name in the texts. Its words for a table have the same name, unless
    there is a `short_name`; without such words it has none.
    """
    short = short_name or name
    words = written(f"short.{short}", **fields) if f"short.{short}" in texts() else ""
    return Reason(written(f"because.{name}", **fields), words)


@dataclass(frozen=True)
class Decision:
    """A verdict before it is written."""

    judgement: Judgement
    head: str  # its first sentence
    reasons: Sequence[Reason] = field(default_factory=list)  # the advice, if any, comes last
    more: int = 0  # number of further clusters that would decide, 0 if unknown
    holds_for: HoldsFor = ""
    threshold: float | None = None  # at which a pass holds, if not for the labels as they are
    promising: bool = False  # the grader passes by its estimates
    step: NextStep | None = None  # the cheapest step to a decision, if not more clusters

    @property
    def next(self) -> NextStep | None:
        """The cheapest step from "inconclusive" to a decision, None if none is known."""
        if self.judgement != "inconclusive":
            return None
        return self.step or (NextStep(kind="clusters", number=self.more) if self.more else None)

    @property
    def text(self) -> str:
        """The sentence of the verdict, then all reasons."""
        return " ".join([self.head, *(reason.sentence for reason in self.reasons)])

    @property
    def short(self) -> str:
        """The first two reasons, in a few words. If inconclusive only the last one, the advice; if
        the advice is to label more to rule the grader out, also the first reason why it may fail.
        """
        shorts = list(dict.fromkeys(reason.short for reason in self.reasons if reason.short))
        if self.judgement != "inconclusive":
            return "; ".join(shorts[:2])
        why, advice = shorts[:-1], shorts[-1:]
        rules_out = advice == [written("short.label_to_rule_out")]
        return "; ".join([*why[:1], *advice] if rules_out else advice)


def further_reasons(case: VerdictEvidence, judgement: Judgement) -> list[Reason]:
    """Return further reasons for the verdict's text: the grader's faults, the units it leaves out,
    the people whose labels it repeats, and the parts of the sample in which the verdict holds.
    """
    view = case.tuned if judgement == "can_replace_at_threshold" else case.present
    further = []
    if judgement in ("only_with_correction", "do_not_use"):
        further += _fixable_mistake_reason(case)
    further += _missing_labels_reason(case)
    bounds = view.bounds if judgement in (*PASSES, "inconclusive") else None
    if bounds and (row := bounds.if_missing_wrong) and not math.isnan(row["low"]):
        would_pass = "holds" if bounds.passes_if_missing_wrong else "fails"
        outcome = would_pass if judgement in PASSES else "inconclusive"
        figures = difference_in_words(case, bounds, row)
        further.append(Reason(written(f"because.if_wrong_{outcome}", figures=figures)))
    if case.gross_errors is not None and judgement in PASSES:
        further.append(gross_errors_reason(case, case.gross_errors))
    audit, allowed = case.injection, case.rule.injection
    if audit is not None and not audit.beyond(allowed):
        further += injection_reasons(audit, allowed)
    if case.people.copied and case.people.number >= 2:
        text = written("because.copied_not_counted", whose=copied_shares(case))
        further.append(Reason(text, copied_in_words(case)))
    if case.identical_graders:
        further.append(because("twins", names=" and ".join(case.identical_graders)))
    if case.people.opposed and judgement != "inconclusive":
        further.append(opposed_reason(case))
    if _has_interval(case):
        further += _parts_reason(view, names_failing=judgement == "do_not_use")
    return further


def limits(case: VerdictEvidence) -> str:
    """Return a sentence on what the intervals do not cover; empty if they cover all."""
    covers_other_people, covers_parts = case.rule.scope == "like_these", bool(case.present.parts)
    if not _has_interval(case) or (covers_other_people and covers_parts):
        return ""
    if covers_other_people:
        return written("limits.parts")
    number = "two" if case.people.number == 2 else str(case.people.number)
    return written("limits.people" if covers_parts else "limits.people_and_parts", people=number)


def _has_interval(case: VerdictEvidence) -> bool:
    """Return True if the ceiling difference has an interval."""
    row = case.present.difference
    return case.people.number >= 2 and row is not None and not math.isnan(row["low"])


def _fixable_mistake_reason(case: VerdictEvidence) -> list[Reason]:
    """Return a reason for a fixable mistake, if recoded labels reach half of human-human kappa."""
    if case.present.bounds is None or not case.recoded:
        return []
    best, people_kappa = case.recoded[0], case.present.bounds.people_kappa
    if not best["estimate"] >= people_kappa["estimate"] / 2:
        return []
    recoding, reading = best["at"], statistics.text_of(best["remarks"])
    return [because(_RECODED[recoding], reading=reading, kappa=best["estimate"])]


def _missing_labels_reason(case: VerdictEvidence) -> list[Reason]:
    """Return a reason on units without the grader's label, unless the verdict names them anyway."""
    share, coverage = case.answers.share, case.answers.coverage
    is_too_low, missing = share.low < case.rule.min_coverage, 1 - share.estimate
    if coverage is None or is_too_low or f"{missing:.0%}" == "0%":
        return []
    n_missing = round(missing * coverage["n_units"])
    why = why_unscored(coverage).replace(f" (absent {n_missing})", "")  # that says no more
    return [because("left_out", items=number_of(n_missing, "item"), missing=missing, why=why)]


def _parts_reason(view: ViewEvidence, *, names_failing: bool) -> list[Reason]:
    """Return a reason that lists the parts of the sample by result: within the margin, below it (if
    `names_failing`; else the verdict names them), or open; none where no part was tested.
    """
    parts, failing = view.parts, view.failing
    within = [row for row in parts if row["low"] > -evidence.margin_of(row)]
    n_open = len(parts) - len(within) - len(failing)
    if not parts or not (within or n_open or names_failing):
        return []
    if not (failing or n_open):
        return [because("holds_in_each_part", parts=list_parts(within))]
    lists = [written("because.parts_within", parts=list_parts(within))] if within else []
    if failing and names_failing:
        lists.append(written("because.parts_below", parts=list_parts(failing)))
    if n_open:
        lists.append(written("because.parts_open", open=n_open, all=len(parts)))
    return [because("parts", found="; ".join(lists))]


def gross_errors_reason(
    case: VerdictEvidence, row: ResultRow, allowed: float | None = None
) -> Reason:
    """Return a reason with the share of gross errors and its bound; with `allowed`, the reason that
    the bound is above this share.
    """
    fields: dict[str, object] = {"far": row["at"], "points": case.points}  # such as "2 points"
    fields |= {"units": row["n_units"], "share": row["estimate"]}
    if allowed is not None:
        fields |= {"allowed": allowed, "high": statistics.share_apart(row["high"], allowed)}
        return because("too_many_gross_errors", "gross_errors", **fields)
    name = "gross_errors" if row["estimate"] > 0 else "no_gross_errors"
    fields["high"] = statistics.share_apart(row["high"], 1.0)
    return Reason(written(f"because.{name}", **fields))


def opposed_reason(case: VerdictEvidence) -> Reason:
    """Return the reason that annotators reverse labels, so that all together are no standard."""
    people = case.people.opposed
    names = [person.annotator for person in people]
    if not all(person.is_sure for person in people):  # the others may be those who reverse labels
        names += people[0].others.split(", ")
    text = " ".join(opposed_in_words(person, "because") for person in people)
    return Reason(text, written("short.opposed", names=" and ".join(names)))


def opposed_in_words(person: Opposed, section: Literal["because", "note"]) -> str:
    """Return a sentence on an annotator who reverses or exchanges labels, and what to do."""
    way = "exchange categories" if person.recoding == EXCHANGED else "label the other way round"
    return written(
        f"{section}.opposed" if person.is_sure else f"{section}.perhaps_opposed",
        annotator=person.annotator, others=person.others, given=person.as_given["estimate"],
        recoded=person.recoded["estimate"], how=person.recoding, way=way,
    )  # fmt: skip


def unanswered_reasons(
    answers: Answers, min_share: float, noun: str, section: Literal["because", "drift"] = "because"
) -> list[Reason]:
    """Return the reason that the grader leaves out, or may leave out, too many units."""
    share, row = answers.share, answers.coverage
    name = "may_leave_out" if share.high >= min_share else "no_answer"
    fields = {
        "share": share.estimate, "missing": 1 - share.estimate, "needed": min_share,
        "least": statistics.share_apart(share.low, min_share),
        "most": statistics.share_apart(share.high, min_share),
        "sample": sample_of(row, noun) if row else "no items", "why": why_unscored(row),
    }  # fmt: skip
    return [Reason(written(f"{section}.{name}", **fields), written("short.no_answer", **fields))]


def why_unscored(coverage: ResultRow | None) -> str:
    """Return how many labels are missing for each reason, in brackets; "" if none are."""
    remarks = coverage["remarks"] if coverage else ()
    counts = next((str(remark.detail[0]) for remark in remarks if remark.code == "unscored"), "")
    return f" ({counts.replace('_', ' ')})" if counts else ""


def failing_part_reasons(case: VerdictEvidence, view: ViewEvidence) -> list[Reason]:
    """Return the reasons that name the parts of the sample in which the grader fails."""
    reasons = []
    for row in view.failing:
        figures = difference_in_words(case, view.bounds, row, n_bounds=len(view.parts))
        reasons.append(because("below_in_part", part=evidence.part_name(row), figures=figures))
    if len(reasons) > 1:
        first = replace(reasons[0], short=written("short.below_in_parts", parts=len(reasons)))
        reasons = [first, *(replace(reason, short="") for reason in reasons[1:])]
    return reasons


def injection_reasons(audit: Audit, limits: InjectionBounds) -> list[Reason]:
    """Return the reasons from the injection audit: the deciding outcomes, or that it is robust."""
    status, outcomes = audit.status(limits), audit.deciding_outcomes(limits)
    fields = {outcome.name: outcome.figures(limit) for outcome, limit in outcomes}
    if status == "withstands":
        highs = {name: values["high"] for name, values in fields.items()}
        return [because("withstands", **highs, sample=next(iter(fields.values()))["sample"])]
    names = _MAY_BE if status == "inconclusive" else {}
    return [because(names.get(name, name), **values) for name, values in fields.items()]


def copied_in_words(case: VerdictEvidence) -> str:
    """Name the people whose labels the grader repeats. If at most one other person labelled, it is
    "perhaps" a copy: a grader that is right as often as the better of two people looks the same.
    """
    name = "perhaps_copied" if case.people.number < 2 else "copied"
    return written(f"short.{name}", names=" and ".join(person for person, _ in case.people.copied))


def copied_shares(case: VerdictEvidence) -> str:
    """List the people whose labels the grader repeats, each with the share of units."""
    shares = [f"those of {person} on {share:.0%} of items" for person, share in case.people.copied]
    return " and ".join(shares)


def advice(
    clusters: int,
    more: int | None,
    noun: str,
    *,
    undecided: bool,
    fault: str = "",
    more_people: int | None = None,
    look: int = 0,
) -> list[Reason]:
    """Return the advice on what would decide, [] if nothing more is needed.

    - `clusters`: their number now; `noun`: the name of a cluster.
    - `more`: how many more would decide; None if no number would, but perhaps `more_people`.
    - `undecided`: False if all is decided, except that clusters are fewer than the rule requires.
    - `fault`: the reason why the grader probably fails, which more clusters would then confirm.
    - `look`: the number of this interim analysis, if the next one spends some of the level; else 0.
    """
    if more is None and more_people:
        one, several = "one more annotator", f"about {more_people} more annotators"
        return [because("ask_more_people", noun=noun, people=one if more_people == 1 else several)]
    if more is None:
        return [because("nothing_decides", noun=noun)]
    if more <= 0:
        return []
    nouns = noun if more == 1 else f"{noun}s"
    fields = {"clusters": clusters, "noun": noun, "more": more, "nouns": nouns, "why": fault}
    if undecided:
        reason = because("label_to_rule_out" if fault else "label_more", **fields)
    else:
        reason = because("label_more_for_enough", "label_more", **fields)
    if look:
        cost = written("because.next_look_planned" if look < LOOKS else "because.next_look")
        reason = replace(reason, sentence=f"{reason.sentence} {cost}")
    return [reason]


def comparison_in_words(case: VerdictEvidence, bounds: Bounds) -> str:
    """Return the deciding comparison in words: both kappas, then `difference_in_words`."""
    row, people_kappa = case.deciding_difference(bounds), bounds.people_kappa["estimate"]
    kappa = people_kappa + row["estimate"]
    return difference_in_words(case, bounds, row, kappa=kappa, people=people_kappa)


def difference_in_words(
    case: VerdictEvidence, bounds: Bounds | None, row: ResultRow, n_bounds: int = 1, **kappas: float
) -> str:
    """Return the figures of a difference in words: its deciding interval, the margin, and n. With
    `kappas` (`kappa` and `people`) both kappas come first. The level is shared by `n_bounds`.
    """
    alpha, margin, margin_share = ALPHA, evidence.margin_of(row), 0.0
    if bounds:
        alpha, margin_share = bounds.deciding.alpha / n_bounds, bounds.deciding.margin_share
        margin = bounds.margin if math.isnan(margin) else margin  # a row with a `bar` has none
    annotators = "two annotators" if case.people.number == 2 else f"{case.people.number} annotators"
    return written(
        "figures.compared" if kappas else "figures.difference",
        **kappas, difference=signed(row["estimate"]),
        interval=interval_of(row["low"], row["high"], -margin, 0.0, alpha=alpha, sign="+"),
        # The margin is above 0, but is compared with how far the bounds lie below 0.
        margin=statistics.limit_shown(margin, -row["low"], -row["high"]),
        share=written("figures.share", share=margin_share) if margin_share else "",  # of people's
        sample=f"{sample_of(row, case.noun)}, {annotators}",
    )  # fmt: skip


def interval_of(
    low: float, high: float, *limits: float, alpha: float = ALPHA, sign: str = ""
) -> str:
    """Format the interval between two one-sided bounds, for use after an estimate. Each bound has
    enough decimals to differ from the `limits`. Empty where there is no interval.

    >>> interval_of(-0.0973, 0.1, -0.1, alpha=0.0123, sign="+")
    ', 97.5% CI -0.097 to +0.10'
    >>> interval_of(float("nan"), float("nan"))
    ''
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    low_text, high_text = (statistics.shown_apart(end, limits, sign=sign) for end in (low, high))
    return written("figures.interval", level=level_of(alpha), low=low_text, high=high_text)


def signed(number: float) -> str:
    """Format a number with two decimals and its sign; a zero has none.

    >>> signed(0.123), signed(-0.001)
    ('+0.12', '0.00')
    """
    return f"{number:+.2f}" if f"{abs(number):.2f}" != "0.00" else "0.00"


def chance_in_words(chance: float) -> str:
    """Format a probability in whole percent, as it is not known more precisely.

    >>> chance_in_words(0.853), chance_in_words(0.997), chance_in_words(0.004)
    ('about 85%', 'over 99%', 'under 1%')
    """
    if chance > 0.99:
        return "over 99%"
    return f"about {chance:.0%}" if chance >= 0.01 else "under 1%"


def level_of(alpha: float) -> str:
    """Format the confidence level of an interval of two bounds, each at the level `alpha`.

    >>> level_of(0.025), level_of(0.0125), level_of(0.0048), level_of(0.0001), level_of(1e-7)
    ('95%', '97.5%', '99%', '99.98%', '99.99998%')
    """
    level = 100 * (1 - 2 * alpha)
    return f"{level:.{statistics.places_apart(level, [100], 1)}f}%".replace(".0%", "%")


def mean_kappa(row: ResultRow, noun: str = "") -> str:
    """Return mean kappa with people in words, with its sample if given the `noun` for clusters."""
    fields = {"kappa": row["estimate"], "interval": interval_of(row["low"], row["high"])}
    if noun:
        return written("figures.kappa_on", **fields, sample=sample_of(row, noun))
    return written("figures.kappa", **fields)


def list_parts(rows: Sequence[ResultRow]) -> str:
    """List the names of parts, or their number if they are many."""
    names = [evidence.part_name(row) for row in rows]
    return ", ".join(names) if len(names) <= MOST_PARTS else f"{len(names)} parts"
