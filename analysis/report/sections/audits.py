"""Audits: biases that shift graders' labels but not people's, and texts that manipulate graders."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from evenhand.analysis.bias import BOUND, Finding, findings, screening_sentence
from evenhand.analysis.bias.findings import PLANNED, SCREENED
from evenhand.analysis.injection import UNSCORED, audits, named
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.report.blocks import Items, Part, items, traced
from evenhand.analysis.report.figures import Figure, Key, grouped, lines_of
from evenhand.analysis.report.source import (
    Column,
    RubricFigures,
    TableRow,
    distinct,
    listed,
    rows_of,
    sentences,
)
from evenhand.analysis.statistics import entry_for
from evenhand.study.tables.ratings import LONG_PLACEBO, PLACEBO
from evenhand.texts import in_pieces, written

_DETAILS = ("bias_order_flips", "bias_order_first")
_PLACEBOS = {PLACEBO: written("injection.placebo"), LONG_PLACEBO: written("injection.placebo_long")}
_SAID = {
    "pulled": "injection_pulled",
    "knocked_off": "injection_knocked_off",
    "silenced": "injection_silenced",
    "withstands": "injection_withstands",
    "cannot_tell": "injection_open",
}


# Bias


def bias_layers(figures: RubricFigures) -> Part:
    """Sentences first, then the figures of every question, then the parts of the sample."""
    own = findings([row for row in figures.analysis.rows if row["rubric"] == figures.rubric])

    def p(key: Key) -> Figure | None:
        found = figures.by_key(key._replace(statistic=f"{key.statistic}_p"))
        return found and found.without("uncorrected_p")  # which is in results.csv

    def questions(statistics: Sequence[str]) -> list[TableRow]:
        found = figures.everywhere(*statistics)
        return rows_of(found, _heading, lambda each: entry_for(each.statistic).name, by="statistic")

    shift, p_value = (written(f"bias_section.{each}") for each in ("shift", "p"))
    columns: list[tuple[str, Column]] = [(shift, {}), (p_value, p)]
    screened = figures.everywhere(*SCREENED)
    by_part = distinct(screened, "subset", lambda each: each.removesuffix(BINARY))
    graders = dict.fromkeys(figure.grader for figure in screened)
    of_graders = [(grader, {"rater_b": grader}) for grader in graders]
    return Part(
        answers=[_biases(figures, own)] if own else [],
        folded=[
            *_found(figures, own),
            *figures.table("bias_section.caption", questions(PLANNED), columns),
        ],
        appendix=[
            *figures.table("bias_section.details", questions(_DETAILS)),
            *figures.table("bias_section.parts", by_part, of_graders),
        ],
    )


def _biases(figures: RubricFigures, own: list[Finding]) -> list[object]:
    """The biases that were found, those beyond the bound first; or the widest interval."""
    found = grouped((e for e in own if e.status == "found"), lambda each: each.beyond(BOUND))
    if found:
        large, small = (
            [figures.of_row(each.row) for each in found.get(is_large, ())]
            for is_large in (True, False)
        )
        return sentences(
            in_pieces("report.bias", found=_shifts(large)) if large else [],
            in_pieces("report.bias_small", found=_shifts(small)) if small else [],
        )
    limits = [each for each in own if each.p and each.row["statistic"] in PLANNED]
    if not limits:
        return in_pieces("report.bias_unknown")
    shift = figures.of_row(max(limits, key=lambda each: each.largest).row)
    return in_pieces("report.bias_none", shift=shift, asked=_asked(shift))


def _shifts(found: list[Figure]) -> list[object]:
    """List figures, each with its grader and question."""
    return listed([[f"{_asked(figure)} ", figure] for figure in found], "; ")


def _asked(figure: Figure) -> str:
    return f"{_heading(figure)}: {entry_for(figure.statistic).name.lower()}"


def _found(figures: RubricFigures, own: list[Finding]) -> list[Items]:
    """Return sentences on the biases found, and on the rest: the planned questions, and one
    sentence per grader on the parts of the sample.
    """
    shown = [_traced(figures, each) for each in own if each.status == "found"]
    others = (each for each in own if each.status != "found" and each.row["statistic"] in PLANNED)
    screened = (each for each in own if each.row["statistic"] in SCREENED)
    by_grader = grouped(sorted(screened, key=attrgetter("grader")), attrgetter("grader"))
    rest = [_traced(figures, each) for each in others]
    rest += filter(None, map(screening_sentence, by_grader.values()))
    found = items(written("bias_section.found"), shown)
    return [*found, *items(written("bias_section.rest"), rest)]


def _traced(figures: RubricFigures, finding: Finding) -> str:
    """The sentence, marked where it lies beyond the bound, with the rows that it was read off."""
    lines = lines_of(map(figures.of_row, finding.rows))
    said = finding.sentence
    if finding.beyond(BOUND):
        said = written("bias_section.beyond", sentence=said, bound=BOUND)
    return traced(said, lines)


def _heading(figure: Figure) -> str:
    """Name the grader of a row, the part of the sample and the sides."""
    grader = figure.grader or figure.rater
    first, second = figure.sides
    sides = written("direction.sides", first=first, second=second) if second else first
    about = ["" if figure.part == "all" else figure.part, sides]
    return ", ".join([grader, *filter(None, about)])


# Prompt injection


def injection_layers(figures: RubricFigures) -> Part:
    """Sentences on every grader that was audited, then every attack, placebos first."""
    bounds = figures.analysis.decision.injection
    own = [each for each in audits(figures.analysis.rows) if each.rubric == figures.rubric]
    if not own:
        return Part()

    def attack(figure: Figure) -> str:
        kind = _PLACEBOS.get(figure.at) or named(figure.at)
        return written("injection.row", grader=figure.rater, attack=kind)

    answers, lines = [], []
    for audit in own:
        # The verdict and the worst attack on its most telling question.
        outcome, bound = audit.telling(bounds)[0]
        worst, answer = outcome.worst(bound), _SAID[audit.status(bounds)]
        about = {"attack": worst.name, "effect": figures.of_row(worst.bounds)}
        answers.append(in_pieces(f"report.{answer}", grader=audit.grader, **about))
        rows = lines_of(map(figures.of_row, audit.rows(bounds)))
        lines.append(traced(audit.sentence(bounds), rows))
    attacks = figures.table("injection.caption", rows_of(figures.everywhere(UNSCORED), attack))
    return Part(answers=answers, folded=[*items(written("bias_section.found"), lines), *attacks])
