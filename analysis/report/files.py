"""The report as a whole: its sections in reading order, each figure and table with a name; the
files that it is written to, each whole or not at all; and the cell of a notebook.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.analysis.bias.audit import BOUND
from evenhand.analysis.distributions import MIN_PEOPLE
from evenhand.analysis.report import blocks, charts
from evenhand.analysis.report.blocks import (
    SYNTHETIC,
    Answer,
    Chart,
    Paragraph,
    Part,
    ReportSection,
    Table,
)
from evenhand.analysis.report.sections import (
    certainty,
    graders,
    methods,
    published,
    raters,
    subjects,
)
from evenhand.analysis.report.source import Figure, ReportContext, RubricFigures, Source
from evenhand.analysis.results import RESULTS_COLUMNS
from evenhand.analysis.statistics import join_notes, text_of
from evenhand.analysis.verdicts.judge import limits_of, recommendations
from evenhand.study.tables.files import atomic_write, new_folder
from evenhand.texts import KEPT, texts, visible, written

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

    from evenhand.analysis.all_rubrics import Analysis


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
    "overall-agreement": Topic("overall", subjects.overall_part),
    "preference": Topic("preference", subjects.preference_part),
    "direction": Topic("direction", subjects.direction_part),
    "thresholds": Topic("thresholds", certainty.threshold_layers),
    "corrected-rates": Topic("rates", subjects.rate_part, finished=subjects.with_every_rubric),
    "bias-audit": Topic("bias_section", graders.bias_layers, lambda source: {"bound": BOUND}),
    "injection-audit": Topic(
        "injection",
        graders.injection_layers,
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
    "disagreements": Topic("disagreement", raters.disagreement_layers, finished=raters.with_page),
}
"""Sections by their anchor, in reading order."""

METHODS = "methods"
"""The paragraph to paste."""
_LONGEST = 110


def sections_of(source: Source) -> list[ReportSection]:
    """List the sections that have something to show; the first says which are left out, and why."""
    known = texts()
    made = {name: section_of(source, name) for name in TOPICS}
    before = graders.verdicts_section(source), published.section(source)
    first, *others = filter(None, (*before, *made.values(), methods.section(source)))
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


def section_of(source: Source, anchor: str) -> ReportSection | None:
    """Build the section of a topic by its anchor; None where it has no content. An answer that is
    the same on all rubrics is given once.
    """
    room, layers_of, fields, finished = TOPICS[anchor]
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
    if len(answers) > 1 and len({answer.pieces for answer in answers}) == 1:
        answers = [Answer(answers[0].pieces)]
    about = [written(f"{room}.about", **fields(source))] if f"{room}.about" in known else []
    explained = tuple(dict.fromkeys(chain(about, *(part.about for part in parts))))
    appendix = tuple(
        Part(folded=part.appendix, title=later, rubric=part.rubric)
        for part in parts
        if part.appendix and (later := written("naming.about", whom=title, what=part.rubric))
    )
    made = ReportSection(anchor, title, (), tuple(answers), shown, explained, appendix)
    return finished(source, made)


def _name(sections: Sequence[ReportSection]) -> None:
    """Name every figure and table by its caption; a second one of a caption has a number."""
    # Other anchors on the page.
    taken = {"main", "overview", "appendix", METHODS} | {part.id for part in sections}
    taken |= {f"{part.id}-title" for part in sections}
    for block in (block for section in sections for block in section.every_block()):
        for item in (block, *block.data) if isinstance(block, Chart) else (block,):
            if isinstance(item, Chart | Table):
                stem = plain_name(item.caption)
                numbered = (f"{stem}-{n}" if n > 1 else stem for n in count(1))
                item.name = next(name for name in numbered if name not in taken)
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


# Files

SCHEMA = 1
PUBLISHED = "published.csv"
"""Published figures beside the study's own, for a study that declares some."""
_TEMPLATES = Path(__file__).parent / "templates"
_SCALE = 2
"""Pixels of a PNG for each of the figure: sharp in print."""
_MARKDOWN = re.compile(r"[\\`*_\[\]|~#]|(?<=:)//|^[-+=](?![\d.])|(?<=^\d)[.)](?=\s|$)")
_MARKUP = {"<": "&lt;", ">": "&gt;"}
_ENTITY = re.compile(r"&(?=#?\w+;)")


def prepare_report() -> None:
    """Read the templates and load the drawing library at an idle time: it takes half a second."""
    _html().get_template("report.html.j2")
    _markdown().get_template("report.md.j2")
    if charts.can_draw():
        charts.inline_svg(charts.chart_spec([], {"mark": "point"}), "")


def write_report(
    analysis: Analysis, context: ReportContext, out: Path, *, full: bool = False
) -> None:
    """Write report.html, report.md, report.json and results.csv into a folder, made if need be;
    disagreements.html where the texts of units that graders and people differ on are known, and
    published.csv where the study declares published figures.
    Of a `full` page everything is unfolded, on the screen and on paper.

    A synthetic study is marked in all: `study.synthetic` in the JSON, and the word at the end
    of each row's note in the JSON and the CSV, whose columns are fixed.
    """
    rows = _rows(analysis, synthetic=context.synthetic)
    source = Source(analysis, context)
    sections = sections_of(source)
    every = (block for section in sections for block in section.every_block())
    new_folder(out)
    with ThreadPoolExecutor(1) as drawing:  # Vega draws without Python's lock, while texts are made
        drawn = {
            each.name: drawing.submit(_draw, each) for each in every if isinstance(each, Chart)
        }
        text = _markdown().get_template("report.md.j2")
        contents = {
            "results.csv": _csv(rows, RESULTS_COLUMNS),
            "report.json": _json(source, sections, rows),
            "report.md": text.render(context=context, sections=sections),
        }
        if context.beside and context.beside.published.figure:
            quoted = published.published_rows(source, context.beside)
            contents[PUBLISHED] = _csv(quoted, list(quoted[0]))
        if raters.has_page(analysis.disagreements, context):
            page = raters.page_of(analysis.disagreements, context)
            contents[raters.PAGE] = _page("disagreements", ["disagreements.js"], context, page=page)
        rubrics = dict.fromkeys(part.rubric for section in sections for part in section.parts)
        contents["report.html"] = _page(
            "report", ["downloads.js", "reading.js"], context, sections=sections,
            rubrics=list(filter(None, rubrics)), full=full, unfolded=" open" if full else "",
            draw=lambda chart: drawn[chart.name].result(),
        )  # fmt: skip
    for name, content in contents.items():
        atomic_write(out / name, content.encode(errors=KEPT))


def _rows(analysis: Analysis, *, synthetic: bool) -> list[dict[str, Any]]:
    """The results as plain rows; None where a number is undefined."""
    rows, ids = [], analysis.ids
    for row in analysis.rows:
        marks = join_notes(row["remarks"], "synthetic" if synthetic else "")
        plain = {name: _plain(value) for name, value in row.items() if name in RESULTS_COLUMNS}
        key = {name: ids.get(row[name], row[name]) for name in ("rubric", "rater_a", "rater_b")}
        if row["statistic"].startswith("rewording_"):
            key["at"] = ids.get(row["at"], row["at"])
        rows.append(plain | key | {"note": text_of(marks)})
    return rows


def _csv(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> str:
    return blocks.csv_text([columns, *(map(_plain, row.values()) for row in rows)])


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(source: Source, sections: list[ReportSection], rows: list[dict[str, Any]]) -> str:
    analysis, context, ids = source.analysis, source.context, source.analysis.ids

    def id_of(name: str) -> str:
        return ids.get(name, name)

    def keys(of: Sequence[Sequence[str]]) -> list[list[str]]:
        return [[*map(id_of, key[:1]), key[1], *map(id_of, key[2:4]), *key[4:]] for key in of]

    thresholds: dict[str, dict[str, float]] = {}
    origins: dict[str, dict[str, str]] = {}
    for threshold in analysis.thresholds:
        rubric, grader = id_of(threshold.rubric), id_of(threshold.grader)
        thresholds.setdefault(rubric, {})[grader] = threshold.threshold
        origins.setdefault(rubric, {})[grader] = threshold.origin
    study = {
        "name": context.name, "synthetic": context.synthetic, "facts": dict(context.facts),
        "notes": [*context.notes, *analysis.notes],
        "recommendations": {
            id_of(advice.rubric): advice.sentence for advice in recommendations(source.ranking)
        },
        "rubric_titles": {id_of(name): title for name, title in context.rubric_titles.items()},
        "thresholds": thresholds, "threshold_origins": origins,
    }  # fmt: skip
    shown = (block for section in sections for block in section.every_block())
    done, *results = next(b for b in shown if isinstance(b, blocks.Quotable)).texts
    verdicts = [
        {
            **verdict, "rubric": id_of(verdict["rubric"]), "grader": id_of(verdict["grader"]),
            "kappas": keys(verdict["kappas"]), "evidence": keys(verdict["evidence"]),
        }
        for verdict in analysis.verdicts
    ]  # fmt: skip
    content = {
        "schema": SCHEMA, "study": study, "methods": done, "results_text": " ".join(results),
        "names": {id_: name for name, id_ in ids.items()}, "verdicts": verdicts, "results": rows,
    }  # fmt: skip
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _page(name: str, scripts: Sequence[str], context: ReportContext, **content: object) -> str:
    """Render a page, which may use its own style sheet and script and nothing else."""
    from markupsafe import Markup

    given = {"colours": charts.ROLES, "synthetic": context.synthetic}
    script = Markup("\n".join(rendered(template, **given) for template in scripts))  # noqa: S704 - our own
    style, digest = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (rendered(f"{name}.css"), script)
    )
    about = {"context": context, "style_digest": style, "script_digest": digest}
    return rendered(f"{name}.html.j2", script=script, **about, **content)


@cache
def _html() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        # Visible text, except for markup of our own.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )  # fmt: skip
    environment.globals.update(draw=_draw, can_draw=charts.can_draw, written=written)
    return environment


def _draw(chart: Chart) -> Markup:
    """Draw a chart as safe markup; without a drawing library, describe it."""
    from markupsafe import Markup

    if not charts.can_draw():
        return Markup("<p>{} {}</p>").format(written("lean.no_charts"), chart.alt)
    return Markup(charts.inline_svg(dict(chart.spec), chart.alt))  # noqa: S704


@cache
def _markdown() -> jinja2.Environment:
    """Return the environment for Markdown: that for HTML with another escape."""
    return _html().overlay(autoescape=False, finalize=lambda value: markdown(str(value)))


@cache
def _latex() -> jinja2.Environment:
    """Return the environment for LaTeX: as for HTML, with expressions in << >>."""
    return _html().overlay(
        block_start_string="<%", block_end_string="%>",
        variable_start_string="<<", variable_end_string=">>",
        autoescape=False, finalize=lambda value: blocks.tex(str(value)),
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


def write_figures(analysis: Analysis, context: ReportContext, out: Path) -> int:
    """Write every figure as SVG and PNG, every table as CSV and LaTeX, and the methods paragraph
    with its references, into a folder, made if need be; returns how many files that are.

    Each file is named after its anchor in report.html. A figure has the light colours, its caption
    and its note. Each is marked if it is synthetic.
    """
    new_folder(out)
    sections = sections_of(Source(analysis, context))
    every = (block for section in sections for block in section.every_block())
    contents = [file for block in every for file in _files_of(block, synthetic=context.synthetic)]
    for name, content in contents:
        atomic_write(out / name, content)
    return len(contents)


def _files_of(block: blocks.Block, *, synthetic: bool) -> Iterator[tuple[str, bytes]]:
    if isinstance(block, Chart):
        import vl_convert

        svg = charts.vega_svg(charts.standalone_spec(block, SYNTHETIC if synthetic else ""))
        yield f"{block.name}.svg", svg.encode()
        yield f"{block.name}.png", vl_convert.svg_to_png(svg, scale=_SCALE)
    for table in block.data if isinstance(block, Chart | Table) else ():
        yield f"{table.name}.csv", blocks.csv_of(table, synthetic=synthetic).encode(errors=KEPT)
        yield f"{table.name}.tex", tex_of(table, synthetic=synthetic).encode()
    if isinstance(block, blocks.Quotable):
        yield f"{METHODS}.md", visible("\n\n".join(block.texts) + "\n").encode()
        yield f"{METHODS}.tex", visible(f"{block.tex}\n").encode()
        yield "references.bib", block.bibtex.encode()


def tex_of(table: Table, *, synthetic: bool) -> str:
    r"""A LaTeX table, for \usepackage{booktabs}: caption, rules, footnotes below."""
    mark = SYNTHETIC if synthetic else ""
    return _latex().get_template("table.tex.j2").render(table=table, mark=mark)


def render_notebook(analysis: Analysis, context: ReportContext) -> str:
    """HTML: the verdicts with the notes needed to read them, the panel, and one figure of graders
    compared with people. It has its own colours for light and dark, holds no script, and loads
    nothing from elsewhere.
    """
    source = Source(analysis, context)
    first = next((chart for figures in source.rubrics for chart in graders.forest(figures)), None)
    return rendered(
        "notebook.html.j2", name=context.name,
        answers=[recommendation.sentence for recommendation in recommendations(source.ranking)],
        notes=(*limits_of(analysis.verdicts), *source.notes),
        cards=graders.verdict_cards(source), several=len(source.rubrics) > 1,
        tables=graders.render_table_text(analysis, context),
        chart=first and replace(first, caption=source.marked(first.caption)),
    )  # fmt: skip


def render_lines(lines: Iterable[str | graders.TextTable]) -> str:
    """HTML: sentences and tables in order, in the colours of `render_notebook`."""
    return rendered("lines.html.j2", lines=list(lines))
