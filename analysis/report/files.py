"""Writing the files of a report, each whole or not at all, and showing it in a notebook."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.analysis.notes import join_notes, text_of
from evenhand.analysis.report.blocks import SYNTHETIC, Block, Chart, Quotable, Table
from evenhand.analysis.report.charts import (
    ROLES,
    can_draw,
    chart_spec,
    inline_svg,
    standalone_spec,
    vega_svg,
)
from evenhand.analysis.report.document import METHODS, sections_of
from evenhand.analysis.report.paper import paragraphs
from evenhand.analysis.report.sections.disagreements import PAGE, has_page, page_of
from evenhand.analysis.report.sections.graders import (
    TextTable,
    forest,
    render_table_text,
    verdict_cards,
)
from evenhand.analysis.report.sections.published import published_rows
from evenhand.analysis.report.source import ReportContext, Source
from evenhand.analysis.report.tables import csv_of, csv_text, tex
from evenhand.analysis.results import RESULTS_COLUMNS
from evenhand.analysis.verdicts.judge import limits_of
from evenhand.analysis.verdicts.ranking import rank_graders, recommendations
from evenhand.study.tables.files import atomic_write, new_folder
from evenhand.texts import written
from evenhand.visible import KEPT, visible

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

    from evenhand.analysis.all_rubrics import Analysis
    from evenhand.analysis.report.blocks import ReportSection

SCHEMA = 1
PUBLISHED = "published.csv"
"""Published figures beside the study's own, for a study that declares some."""
_TEMPLATES = Path(__file__).parent / "templates"
_SCALE = 2
"""Pixels of a PNG for each of the figure: sharp in print."""
_MARKDOWN = re.compile(r"[\\`*_\[\]|~#]|(?<=:)//|^[-+=](?![\d.])|(?<=^\d)[.)](?=\s|$)")
_MARKUP = {"<": "&lt;", ">": "&gt;"}
_ENTITY = re.compile(r"&(?=#?\w+;)")
_DRAWING = 2
"""Processes that draw: each has to wake the drawing library, which takes as long as four charts."""


def prepare_report() -> None:
    """Read the templates and load the drawing library at an idle time: it takes half a second."""
    _html().get_template("report.html.j2")
    _markdown().get_template("report.md.j2")
    if can_draw():
        inline_svg(chart_spec([], {"mark": "point"}), "")


def write_report(
    analysis: Analysis,
    context: ReportContext,
    out: Path,
    *,
    full: bool = False,
    pool: Executor | None = None,
) -> None:
    """Write report.html, report.md, report.json and results.csv into a folder, made if need be;
    disagreements.html where the texts of units that graders and people differ on are known, and
    published.csv where the study declares published figures.
    Of a `full` page everything is unfolded, on the screen and on paper. A `pool` of processes draws
    the charts while this one writes.

    A synthetic study is marked in all: `study.synthetic` in the JSON, and the word at the end
    of each row's note in the JSON and the CSV, whose columns are fixed.
    """
    rows = _rows(analysis, synthetic=context.synthetic)
    sections = sections_of(analysis, context)
    draw = _drawing(sections, pool)
    new_folder(out)
    contents = {
        "results.csv": _csv(rows, RESULTS_COLUMNS),
        "report.json": _json(analysis, context, rows),
        "report.md": _markdown()
        .get_template("report.md.j2")
        .render(context=context, sections=sections),
    }
    if context.beside:
        published = published_rows(Source.of(analysis, context), context.beside)
        contents[PUBLISHED] = _csv(published, list(published[0]))
    if has_page(analysis.disagreements, context):
        page = page_of(analysis.disagreements, context)
        contents[PAGE] = _page("disagreements", ["disagreements.js"], context, page=page)
    rubrics = dict.fromkeys(part.rubric for section in sections for part in section.parts)
    contents["report.html"] = _page(
        "report",
        ["downloads.js", "reading.js"],
        context,
        sections=sections,
        draw=draw,
        rubrics=list(filter(None, rubrics)),
        full=full,
        unfolded=" open" if full else "",
    )
    for name, content in contents.items():
        atomic_write(out / name, content.encode(errors=KEPT))


# Its texts


def _rows(analysis: Analysis, *, synthetic: bool) -> list[dict[str, Any]]:
    """The results as plain rows; None where a number is undefined."""
    rows: list[dict[str, Any]] = []
    for found in analysis.rows:
        row = {name: _plain(value) for name, value in found.items() if name in RESULTS_COLUMNS}
        marks = join_notes(found["remarks"], "synthetic" if synthetic else "")
        rows.append(row | {"note": text_of(marks)})
    return rows


def _csv(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> str:
    return csv_text([columns, *(map(_plain, row.values()) for row in rows)])


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(analysis: Analysis, context: ReportContext, rows: list[dict[str, Any]]) -> str:
    ranking = rank_graders(analysis.results, analysis.verdicts)
    thresholds: dict[str, dict[str, float]] = {}
    origins: dict[str, dict[str, str]] = {}
    for each in analysis.thresholds:
        thresholds.setdefault(each.rubric, {})[each.grader] = each.threshold
        origins.setdefault(each.rubric, {})[each.grader] = each.origin
    study = {
        "name": context.name,
        "synthetic": context.synthetic,
        "facts": dict(context.facts),
        "notes": [*context.notes, *analysis.notes],
        "recommendations": {each.rubric: each.sentence for each in recommendations(ranking)},
        "rubric_titles": dict(context.rubric_titles),
        "thresholds": thresholds,
        "threshold_origins": origins,
    }
    methods, *results = paragraphs(Source.of(analysis, context)).texts
    content = {
        "schema": SCHEMA,
        "study": study,
        "methods": methods,
        "results_text": " ".join(results),
        "verdicts": analysis.verdicts,
        "results": rows,
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _page(name: str, scripts: Sequence[str], context: ReportContext, **content: object) -> str:
    """A page, which may use its own style sheet and script and nothing else: no other script, no
    image, no request.
    """
    from markupsafe import Markup

    known = {"colours": ROLES, "synthetic": context.synthetic}
    script = Markup("\n".join(rendered(each, **known) for each in scripts))  # noqa: S704 - our own
    return rendered(
        f"{name}.html.j2",
        context=context,
        style_digest=_digest(rendered(f"{name}.css")),
        script=script,
        script_digest=_digest(script),
        **content,
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _html() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Visible text, except for markup of our own.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.globals.update(draw=_draw, can_draw=can_draw, written=written)
    return environment


def _drawing(sections: list[ReportSection], pool: Executor | None) -> Callable[[Chart], Markup]:
    """Return the function that draws a page's charts; a `pool` starts on all of them at once."""
    if pool is None or not can_draw():
        return _draw
    blocks = (block for section in sections for block in section.every_block())
    charts = [block for block in blocks if isinstance(block, Chart)]
    shares = [pool.submit(_drawn, charts[first::_DRAWING]) for first in range(_DRAWING)]
    places = {id(chart): divmod(place, _DRAWING) for place, chart in enumerate(charts)}

    def draw(chart: Chart) -> Markup:
        place, share = places[id(chart)]
        return shares[share].result()[place]

    return draw


def _drawn(charts: list[Chart]) -> list[Markup]:
    return [_draw(chart) for chart in charts]


def _draw(chart: Chart) -> Markup:
    """The picture, which is safe markup (see `charts.inline_svg`); without a drawing
    library, a description of it.
    """
    from markupsafe import Markup

    if not can_draw():
        return Markup("<p>{} {}</p>").format(written("lean.no_charts"), chart.alt)
    return Markup(inline_svg(dict(chart.spec), chart.alt))  # noqa: S704


@cache
def _markdown() -> jinja2.Environment:
    """As for HTML, with every expression escaped for Markdown instead."""
    return _html().overlay(autoescape=False, finalize=lambda value: markdown(str(value)))


@cache
def _latex() -> jinja2.Environment:
    """As for HTML, with every expression in << >> and escaped for LaTeX instead."""
    return _html().overlay(
        block_start_string="<%", block_end_string="%>",
        variable_start_string="<<", variable_end_string=">>",
        autoescape=False, finalize=lambda value: tex(str(value)),
    )  # fmt: skip


def markdown(text: str) -> str:
    """Return a text from users as one line that Markdown shows literally: no table cell, link,
    markup or heading. (HTML is escaped by Jinja2.)

    >>> print(markdown("a|b <b>*x*</b>"))
    a\\|b &lt;b&gt;\\*x\\*&lt;/b&gt;
    """
    line = _ENTITY.sub("&amp;", " ".join(visible(text).split()))
    line = "".join(_MARKUP.get(letter, letter) for letter in line)
    return _MARKDOWN.sub(lambda found: "\\" + found.group(), line)


def rendered(template: str, **content: object) -> str:
    """A template of the report with content; every text in it is escaped."""
    return _html().get_template(template).render(**content)


# Figures and tables as files of their own


def write_figures(analysis: Analysis, context: ReportContext, out: Path) -> int:
    """Write every figure as SVG and PNG, every table as CSV and LaTeX, and the methods paragraph
    with its references, into a folder, made if need be; returns how many files that are.

    Each file is named after its anchor in report.html. A figure has the light colours, its caption
    and its note. Each is marked if it is synthetic.
    """
    new_folder(out)
    count = 0
    for section in sections_of(analysis, context):
        for name, content in _figures(section.every_block(), synthetic=context.synthetic):
            atomic_write(out / name, content)
            count += 1
    return count


def tex_of(table: Table, *, synthetic: bool) -> str:
    r"""A LaTeX table, for \usepackage{booktabs}: caption, rules, footnotes below."""
    mark = SYNTHETIC if synthetic else ""
    return _latex().get_template("table.tex.j2").render(table=table, mark=mark)


def _figures(blocks: Iterable[Block], *, synthetic: bool) -> Iterator[tuple[str, bytes]]:
    for block in blocks:
        if isinstance(block, Chart):
            import vl_convert

            svg = vega_svg(standalone_spec(block, SYNTHETIC if synthetic else ""))
            yield f"{block.name}.svg", svg.encode()
            yield f"{block.name}.png", vl_convert.svg_to_png(svg, scale=_SCALE)
        if isinstance(block, Chart | Table):
            for table in block.data:
                yield f"{table.name}.csv", csv_of(table, synthetic=synthetic).encode(errors=KEPT)
                yield f"{table.name}.tex", tex_of(table, synthetic=synthetic).encode()
        if isinstance(block, Quotable):
            yield f"{METHODS}.md", visible("\n\n".join(block.texts) + "\n").encode()
            yield f"{METHODS}.tex", visible(f"{block.tex}\n").encode()
            yield "references.bib", block.bibtex.encode()


# A cell of a notebook


def render_notebook(analysis: Analysis, context: ReportContext) -> str:
    """HTML: the verdicts with the notes needed to read them, the panel, and one figure of graders
    compared with people. It has its own colours for light and dark, holds no script, and loads
    nothing from elsewhere.
    """
    source = Source.of(analysis, context)
    # Of the first rubric that has one.
    first = next((chart for figures in source.rubrics for chart in forest(figures)), None)
    return rendered(
        "notebook.html.j2",
        name=context.name,
        answers=[each.sentence for each in recommendations(source.ranking)],
        notes=(*limits_of(analysis.verdicts), *source.notes),
        cards=verdict_cards(source),
        several=len(source.figures.rubrics) > 1,
        tables=render_table_text(analysis, context),
        chart=first and replace(first, caption=source.marked(first.caption)),
    )


def render_lines(lines: Iterable[str | TextTable]) -> str:
    """HTML: sentences and tables in order, in the colours of `render_notebook`."""
    return rendered("lines.html.j2", lines=list(lines))
