"""The report as a whole, in reading order, each figure and table with a name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import TYPE_CHECKING, NamedTuple

from evenhand.analysis.bias import BOUND
from evenhand.analysis.distributions import MIN_PEOPLE
from evenhand.analysis.report.blocks import Answer, Chart, Paragraph, Part, ReportSection, Table
from evenhand.analysis.report.figures import Figure
from evenhand.analysis.report.sections import (
    audits,
    certainty,
    disagreements,
    graders,
    methods,
    published,
    raters,
    subjects,
    thresholds,
)
from evenhand.analysis.report.source import ReportContext, RubricFigures, Source
from evenhand.texts import texts, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

Section = ReportSection | None


class Topic(NamedTuple):
    """A section on every rubric: the room of its texts, and what holds its content on a rubric.

    Its title is `ROOM.title`, how to read it `ROOM.about`, and why it was left out `ROOM.none`,
    where readers would look for it. `fields` are what `ROOM.about` asks for; what is on all rubrics
    is added when it is `finished`.
    """

    room: str
    layers: Callable[[RubricFigures], Part]
    fields: Callable[[Source], Mapping[str, object]] = lambda source: {}
    finished: Callable[[Source, ReportSection], ReportSection] = lambda source, section: section


TOPICS = {
    "human-ceiling": Topic("ceiling", graders.layers),
    "per-sample-agreement": Topic("pairs", raters.pair_layers),
    "overall-agreement": Topic("overall", subjects.overall_layers),
    "preference": Topic("preference", subjects.preference_layers),
    "direction": Topic("direction", subjects.direction_layers),
    "thresholds": Topic("thresholds", thresholds.layers),
    "corrected-rates": Topic("rates", subjects.rate_layers, finished=subjects.with_every_rubric),
    "bias-audit": Topic("bias_section", audits.bias_layers, lambda source: {"bound": BOUND}),
    "injection-audit": Topic(
        "injection",
        audits.injection_layers,
        lambda source: source.analysis.decision.injection._asdict(),
    ),
    "clear-and-unclear": Topic("clarity", certainty.clarity_layers),
    "distributions": Topic(
        "distributions", certainty.distribution_layers, lambda source: {"least": MIN_PEOPLE}
    ),
    "confidence-filter": Topic("confidence", certainty.confidence_layers),
    "stability": Topic("stability", certainty.stability_layers),
    "another-wording": Topic("rewording", certainty.rewording_layers),
    "groups": Topic("groups", raters.group_layers),
    "raters": Topic("raters", raters.layers),
    "disagreements": Topic("disagreement", disagreements.layers, finished=disagreements.with_page),
}
"""Sections by their anchor, in reading order."""
SECTIONS: tuple[str | Callable[[Source], Section], ...] = (
    graders.verdicts_section,
    published.section,
    *TOPICS,
    methods.section,
)
"""The sections in reading order, those of a topic by their anchor."""
METHODS = "methods"
"""The paragraph to paste."""
_LONGEST = 110


def sections_of(analysis: Analysis, context: ReportContext) -> list[ReportSection]:
    """List the sections that have something to show; the first says which are left out, and why."""
    source = Source.of(analysis, context)
    made = {section: section_of(source, section) for section in SECTIONS}
    first, *others = filter(None, made.values())
    known = texts()
    rooms = [topic.room for name, topic in TOPICS.items() if made[name] is None]
    if reasons := [written(f"{room}.none") for room in rooms if f"{room}.none" in known]:
        left_out = Paragraph(written("report.left_out", reasons=" ".join(reasons)))
        first = replace(first, blocks=(*first.blocks, left_out))
    sections = [first, *others]
    if appendix := tuple(part for section in sections for part in section.appendix):
        sections = [replace(section, appendix=()) for section in sections]
        answers = (Answer((written("report.appendix"),)),)
        sections.append(ReportSection("appendix", written("page.appendix"), (), answers, appendix))
    _name(sections)
    return sections


def section_of(source: Source, section: str | Callable[[Source], Section]) -> Section:
    """Build a section: a topic by its anchor, or what is written by a function of its own.

    An answer that is the same on all rubrics is given once. A topic without content has no section.
    """
    if not isinstance(section, str):
        return section(source)
    room, layers_of, fields, finished = TOPICS[section]
    known, title = texts(), written(f"{room}.title")
    parts = [replace(layers_of(figures), rubric=figures.title) for figures in source.rubrics]
    answers = [
        Answer(tuple(p.cell if isinstance(p, Figure) else str(p) for p in pieces), part.rubric)
        for part in parts
        for pieces in part.answers
        if pieces
    ]
    shown = tuple(part for part in parts if part.blocks)
    if not (answers or shown):
        return None
    if len(answers) > 1 and len({each.pieces for each in answers}) == 1:
        answers = [Answer(answers[0].pieces)]
    about = [written(f"{room}.about", **fields(source))] if f"{room}.about" in known else []
    explained = tuple(dict.fromkeys(chain(about, *(part.about for part in parts))))
    appendix = tuple(
        Part(folded=part.appendix, title=later, rubric=part.rubric)
        for part in parts
        if part.appendix and (later := written("naming.about", whom=title, what=part.rubric))
    )
    made = ReportSection(section, title, (), tuple(answers), shown, explained, appendix)
    return finished(source, made)


def _name(sections: Sequence[ReportSection]) -> None:
    """Name every figure and table by its caption, each name once: a second one of the same caption
    has a number.
    """
    # Other anchors on the page.
    taken = {"main", "overview", "appendix", METHODS} | {each.id for each in sections}
    taken |= {f"{each.id}-title" for each in sections}
    named: list[Chart | Table] = []
    for block in (block for section in sections for block in section.every_block()):
        if isinstance(block, Chart):
            named += [block, *block.data]
        elif isinstance(block, Table):
            named.append(block)
    for item in named:
        stem = plain_name(item.caption)
        numbered = (f"{stem}-{n}" if n > 1 else stem for n in count(1))
        item.name = next(each for each in numbered if each not in taken)
        taken.add(item.name)


def plain_name(text: str) -> str:
    """A text as a file name that any system accepts.

    >>> plain_name("Refusal: Cohen κ of every two raters (synthetic)")
    'refusal-cohen-k-of-every-two-raters-synthetic'
    >>> plain_name("評価"), plain_name("../Größe")
    ('figure', 'grosse')
    """
    latin = text.replace("κ", "k").replace("α", "alpha").replace("π", "pi").replace("ß", "ss")
    bare = unicodedata.normalize("NFKD", latin).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", bare).strip("-")[:_LONGEST].strip("-") or "figure"
