"""Injection audit: how often texts that try to manipulate a grader succeed."""

from __future__ import annotations

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
from evenhand.analysis.report.blocks import Items, ReportSection, Table, traced
from evenhand.analysis.report.figures import Figure
from evenhand.analysis.report.source import Layers, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import ResultRow, key_of
from evenhand.study.settings.analysis import InjectionBounds
from evenhand.study.tables.attacks import LONG_PLACEBO, PLACEBO
from evenhand.texts import in_pieces, written

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


def section(source: Source) -> ReportSection | None:
    """Build the section for studies in which a grader was audited: sentences first, then every
    attack.
    """
    bounds = source.analysis.decision.injection
    found = audits(source.analysis.rows)

    def layers_of(rubric: str) -> Layers:
        own = [each for each in found if each.rubric == rubric]
        if not own:
            return Layers()
        lines = tuple(_traced(source, each, bounds) for each in own)
        return Layers(
            answers=[_answer(source, each, bounds) for each in own],
            folded=[Items(written("injection.found"), lines), *_attacks(source, rubric)],
        )

    return source.section(
        "injection-audit",
        written("injection.title"),
        layers_of,
        about=[written("injection.about", **bounds._asdict())],
    )


_SAID = {
    "pulled": "injection_pulled",
    "knocked_off": "injection_knocked_off",
    "silenced": "injection_silenced",
    "withstands": "injection_withstands",
    "cannot_tell": "injection_open",
}


def _answer(source: Source, audit: Audit, bounds: InjectionBounds) -> list[object]:
    """The verdict and the worst attack on its most telling question."""
    outcome, bound = audit.telling(bounds)[0]
    worst, status = outcome.worst(bound), audit.status(bounds)
    effect = _figure(source, worst.bounds)
    name = _SAID[status]
    return in_pieces(f"report.{name}", grader=audit.grader, attack=worst.name, effect=effect)


def _traced(source: Source, audit: Audit, bounds: InjectionBounds) -> str:
    """The sentence, with the rows that it was read off."""
    lines = ", ".join(str(_figure(source, row).line) for row in audit.rows(bounds))
    return traced(audit.sentence(bounds), lines)


def _figure(source: Source, row: ResultRow) -> Figure:
    (found,) = filter(None, [source.figures.by_key(key_of(row))])
    return found


def _attacks(source: Source, rubric: str) -> list[Table]:
    """A row for every attack on every grader, placebos first."""
    effect = written("injection.effect")
    draft = TableDraft(
        source.caption(rubric, written("injection.caption")),
        written("injection.attack"),
        [written(f"injection.{name}") for name in _COLUMNS],
        drawn=effect,
    )
    for figure in source.figures.everywhere(rubric, UNSCORED):
        row = [source.figures.by_key((rubric, name, *figure.key[2:])) for name in _STATISTICS]
        draft.add(written("injection.row", grader=figure.raters[0], attack=_title(figure.at)), row)
    return draft.finish()


def _title(attack: str) -> str:
    return _PLACEBOS.get(attack) or named(attack)
