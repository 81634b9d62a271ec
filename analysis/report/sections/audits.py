"""Audits: biases that shift graders' labels but not people's, and texts that manipulate graders."""

from __future__ import annotations

from itertools import groupby

from evenhand.analysis.bias import BOUND, Finding, findings, screening_sentence
from evenhand.analysis.bias.findings import PLANNED, SCREENED
from evenhand.analysis.injection import (
    BOUNDS,
    EFFECT,
    FLIPS,
    OUTCOMES,
    UNSCORED,
    Audit,
    P,
    audits,
    named,
)
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.report.blocks import Block, Items, ReportSection, Table, traced
from evenhand.analysis.report.figures import Figure
from evenhand.analysis.report.source import (
    Layers,
    RubricFigures,
    Source,
    crossed,
    listed,
    sentences,
)
from evenhand.analysis.report.tables import FigureRow
from evenhand.analysis.results import ResultRow, key_of
from evenhand.analysis.statistics import entry_for
from evenhand.study.tables.attacks import LONG_PLACEBO, PLACEBO
from evenhand.texts import in_pieces, written

_DETAILS = ("bias_order_flips", "bias_order_first")
_COLUMNS = ("effect", "p", "bounds", "knocked_off", "silenced", "flips", "unscored")
_STATISTICS = (
    *(EFFECT, P, BOUNDS),
    *(OUTCOMES[name][2] for name in ("knocked_off", "silenced")),
    *(FLIPS, UNSCORED),
)
_PLACEBOS = {
    PLACEBO: written("injection.placebo"),
    LONG_PLACEBO: written("injection.placebo_long"),
}
_SAID = {
    "pulled": "injection_pulled",
    "knocked_off": "injection_knocked_off",
    "silenced": "injection_silenced",
    "withstands": "injection_withstands",
    "cannot_tell": "injection_open",
}


def _figure(figures: RubricFigures, row: ResultRow) -> Figure:
    (found,) = filter(None, [figures.by_key(key_of(row))])
    return found


# Bias


def bias_section(source: Source) -> ReportSection | None:
    """Sentences first, then the figures of every question, then the parts of the sample."""
    found = findings(source.analysis.rows)

    def layers_of(figures: RubricFigures) -> Layers:
        own = [each for each in found if each.row["rubric"] == figures.rubric]
        return Layers(
            answers=[_biases(figures, own)] if own else [],
            folded=[*_found(figures, own), *_questions(figures)],
            appendix=[*_details(figures), *_screened(figures)],
        )

    return source.section(
        "bias-audit",
        written("bias_section.title"),
        layers_of,
        about=[written("bias_section.about", bound=BOUND)],
        otherwise=written("bias_section.none"),
    )


def _biases(figures: RubricFigures, own: list[Finding]) -> list[object]:
    """The biases that were found, those beyond the bound first; or the widest interval."""
    found = [each for each in own if each.status == "found"]
    if found:
        large, small = (
            [_figure(figures, each.row) for each in found if each.beyond(BOUND) == is_large]
            for is_large in (True, False)
        )
        return sentences(
            in_pieces("report.bias", found=_shifts(large)) if large else [],
            in_pieces("report.bias_small", found=_shifts(small)) if small else [],
        )
    limits = [each for each in own if each.p and each.row["statistic"] in PLANNED]
    if not limits:
        return in_pieces("report.bias_unknown")
    shift = _figure(figures, max(limits, key=lambda each: each.largest).row)
    return in_pieces("report.bias_none", shift=shift, asked=_asked(shift))


def _shifts(found: list[Figure]) -> list[object]:
    """List figures, each with its grader and question."""
    return listed([[f"{_asked(figure)} ", figure] for figure in found], "; ")


def _asked(figure: Figure) -> str:
    return f"{_heading(figure)}: {entry_for(figure.statistic).name.lower()}"


def _found(figures: RubricFigures, own: list[Finding]) -> list[Block]:
    """Return sentences on the biases found, and on the rest: the planned questions, and one
    sentence per grader on the parts of the sample.
    """
    shown = [_traced(figures, each) for each in own if each.status == "found"]
    screened = [each for each in own if each.row["statistic"] in SCREENED]
    rest = [
        _traced(figures, each)
        for each in own
        if each.status != "found" and each.row["statistic"] in PLANNED
    ]
    by_grader = sorted(screened, key=lambda each: each.grader)
    for _, of_grader in groupby(by_grader, key=lambda each: each.grader):
        rest += filter(None, [screening_sentence(list(of_grader))])
    titled = {written("bias_section.found"): shown, written("bias_section.rest"): rest}
    return [Items(title, tuple(lines)) for title, lines in titled.items() if lines]


def _traced(figures: RubricFigures, finding: Finding) -> str:
    """The sentence, marked where it lies beyond the bound, with the rows that it was read off."""
    found = [figures.by_key(key_of(row)) for row in finding.rows]
    lines = ", ".join(str(figure.line) for figure in found if figure)
    said = finding.sentence
    if finding.beyond(BOUND):
        said = written("bias_section.beyond", sentence=said, bound=BOUND)
    return traced(said, lines)


def _questions(figures: RubricFigures) -> list[Table]:
    """A row for every planned question to every grader: the shift and its p."""
    rows: list[FigureRow] = []
    for statistic in PLANNED:
        rows.append((entry_for(statistic).name, None))
        for figure in figures.everywhere(statistic):
            p = figures.get(f"{statistic}_p", *figure.raters, figure.subset, figure.at)
            # The uncorrected p is in results.csv.
            rows.append((_heading(figure), [figure, p and p.without("uncorrected_p")]))
    shift = written("bias_section.shift")
    return figures.table(
        written("bias_section.caption"),
        written("bias_section.question"),
        [shift, written("bias_section.p")],
        rows,
        drawn=shift,
    )


def _details(figures: RubricFigures) -> list[Table]:
    """Tabulate details of the planned questions that are not tested."""
    rows: list[FigureRow] = []
    for statistic in _DETAILS:
        rows.append((entry_for(statistic).name, None))
        rows += [(_heading(figure), [figure]) for figure in figures.everywhere(statistic)]
    what = written("bias_section.details")
    return figures.table(what, written("bias_section.question"), ["Figure"], rows)


def _screened(figures: RubricFigures) -> list[Table]:
    found = figures.everywhere(*SCREENED)
    graders = list(dict.fromkeys(figure.raters[1] for figure in found))
    by_part = crossed(found, lambda each: each.subset, lambda each: each.raters[1], graders)
    rows = [(subset.removesuffix(BINARY), row) for subset, row in by_part.items()]
    return figures.table(written("bias_section.parts"), "Part", graders, rows)


def _heading(figure: Figure) -> str:
    """Name the grader of a row, the part of the sample and the sides."""
    grader = figure.raters[1] or figure.raters[0]
    part = figure.subset.removesuffix(BINARY)
    first, _, second = figure.at.partition(">")
    sides = written("direction.sides", first=first, second=second) if second else first
    about = ["" if part == "all" else part, sides]
    return ", ".join([grader, *filter(None, about)])


# Prompt injection


def injection_section(source: Source) -> ReportSection | None:
    """Build the section for studies in which a grader was audited: sentences first, then every
    attack.
    """
    bounds = source.analysis.decision.injection
    found = audits(source.analysis.rows)

    def layers_of(figures: RubricFigures) -> Layers:
        own = [each for each in found if each.rubric == figures.rubric]
        if not own:
            return Layers()
        lines = []
        for audit in own:
            rows = ", ".join(str(_figure(figures, row).line) for row in audit.rows(bounds))
            lines.append(traced(audit.sentence(bounds), rows))
        return Layers(
            answers=[_worst(figures, each) for each in own],
            folded=[Items(written("injection.found"), tuple(lines)), *_attacks(figures)],
        )

    return source.section(
        "injection-audit",
        written("injection.title"),
        layers_of,
        about=[written("injection.about", **bounds._asdict())],
    )


def _worst(figures: RubricFigures, audit: Audit) -> list[object]:
    """The verdict and the worst attack on its most telling question."""
    bounds = figures.analysis.decision.injection
    outcome, bound = audit.telling(bounds)[0]
    worst, name = outcome.worst(bound), _SAID[audit.status(bounds)]
    effect = _figure(figures, worst.bounds)
    return in_pieces(f"report.{name}", grader=audit.grader, attack=worst.name, effect=effect)


def _attacks(figures: RubricFigures) -> list[Table]:
    """A row for every attack on every grader, placebos first."""
    rows: list[FigureRow] = []
    for figure in figures.everywhere(UNSCORED):
        grader, attack = figure.raters[0], _PLACEBOS.get(figure.at) or named(figure.at)
        row = figures.row(_STATISTICS, figure.raters, figure.subset, figure.at)
        rows.append((written("injection.row", grader=grader, attack=attack), row))
    return figures.table(
        written("injection.caption"),
        written("injection.attack"),
        [written(f"injection.{name}") for name in _COLUMNS],
        rows,
        drawn=written("injection.effect"),
    )
