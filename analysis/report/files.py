"""Put the report together and write its files.

`sections_of` makes the sections in reading order and names each figure and table. `write_report`
and `write_figures` write each file whole or not at all; `render_notebook` renders a cell.
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

from markupsafe import Markup

from evenhand.analysis.bias.audit import BOUND
from evenhand.analysis.report import blocks, charts
from evenhand.analysis.report.blocks import SYNTHETIC, Chart, Part, ReportSection, Table
from evenhand.analysis.report.sections import certainty, graders, methods, raters, subjects
from evenhand.analysis.report.sections import published as published_figures
from evenhand.analysis.report.source import Figure, ReportContext, RubricFigures, Source
from evenhand.analysis.results import RESULTS_COLUMNS
from evenhand.analysis.statistics import join_notes, text_of
from evenhand.analysis.verdicts.judge import limits_of, recommendations
from evenhand.lazy import jinja2
from evenhand.study.tables.files import atomic_write, new_folder
from evenhand.texts import ESCAPED, texts, visible, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis


class Topic(NamedTuple):
    """Declaration of a section: `make_part` makes its part on one rubric.

    `prefix` is that of the section's keys in texts.toml: `PREFIX.title` is the title,
    `PREFIX.about` explains how to read the section, and `PREFIX.none`, if there is one, why it is
    left out. `fields` returns the fields of `PREFIX.about`; `finish` adds content on all rubrics.
    """

    prefix: str
    make_part: Callable[[RubricFigures], Part]
    fields: Callable[[Source], Mapping[str, object]] = lambda source: {}
    finish: Callable[[Source, ReportSection], ReportSection] = lambda source, section: section


TOPICS = {
    "human-ceiling": Topic("ceiling", graders.ceiling_part),
    "per-sample-agreement": Topic("pairs", raters.pair_part),
    "overall-agreement": Topic("overall", subjects.overall_part),
    "preference": Topic("preference", subjects.preference_part),
    "direction": Topic("direction", subjects.direction_part),
    "thresholds": Topic("thresholds", certainty.threshold_part),
    "corrected-rates": Topic("rates", subjects.rate_part, finish=subjects.with_every_rubric),
    "bias-audit": Topic("bias_section", graders.bias_part, lambda source: {"bound": BOUND}),
    "injection-audit": Topic(
        "injection",
        graders.injection_part,
        lambda source: source.analysis.decision.injection._asdict(),
    ),
    "clear-and-unclear": Topic("clarity", certainty.clarity_part),
    "confidence-filter": Topic("confidence", certainty.confidence_part),
    "stability": Topic("stability", certainty.stability_part),
    "another-wording": Topic("rewording", certainty.rewording_part),
    "groups": Topic("groups", raters.group_part),
    "raters": Topic("raters", raters.label_part),
    "disagreements": Topic("disagreement", raters.disagreement_part, finish=raters.with_page),
}
"""Sections by their anchor, in reading order."""

METHODS = "methods"  # anchor and file name of the paragraph to paste
_MAX_NAME = 110  # letters of a figure's or a table's name


def sections_of(source: Source) -> list[ReportSection]:
    """List the sections that have content; the first states which are left out, and why."""
    by_topic = {anchor: section_of(source, anchor) for anchor in TOPICS}  # None without content
    leading = graders.verdicts_section(source), published_figures.section(source)
    candidates = (*leading, *by_topic.values(), methods.section(source))
    sections = [section for section in candidates if section]
    prefixes = [TOPICS[anchor].prefix for anchor, section in by_topic.items() if section is None]
    if reasons := [written(f"{prefix}.none") for prefix in prefixes if f"{prefix}.none" in texts()]:
        omissions = blocks.Paragraph(written("report.left_out", reasons=" ".join(reasons)))
        sections[0] = replace(sections[0], blocks=(*sections[0].blocks, omissions))
    if appendix := tuple(part for section in sections for part in section.appendix):
        sections = [replace(section, appendix=()) for section in sections]
        answers = (blocks.Answer((written("report.appendix"),)),)
        sections.append(ReportSection("appendix", written("page.appendix"), (), answers, appendix))
    _set_names(sections)
    return sections


def section_of(source: Source, anchor: str) -> ReportSection | None:
    """Make the section of a topic by its anchor; None where it has no content. An answer that is
    the same for all rubrics is given once.
    """
    topic, prefix = TOPICS[anchor], TOPICS[anchor].prefix
    title = written(f"{prefix}.title")
    all_parts = [replace(topic.make_part(rubric), rubric=rubric.title) for rubric in source.rubrics]
    answers = []
    for part in all_parts:
        for pieces in filter(None, part.answers):  # figures and texts that make up a sentence
            cells = (piece.cell if isinstance(piece, Figure) else str(piece) for piece in pieces)
            answers.append(blocks.Answer(tuple(cells), part.rubric))
    parts = tuple(part for part in all_parts if part.blocks)
    if not (answers or parts):
        return None
    if len(answers) > 1 and len({answer.pieces for answer in answers}) == 1:
        answers = [blocks.Answer(answers[0].pieces)]
    has_about = f"{prefix}.about" in texts()
    about = [written(f"{prefix}.about", **topic.fields(source))] if has_about else []
    all_about = tuple(dict.fromkeys(chain(about, *(part.about for part in all_parts))))
    appendix = []
    for part in all_parts:
        part_title = written("naming.about", whom=title, what=part.rubric)
        if part.appendix:
            appendix.append(Part(folded=part.appendix, title=part_title, rubric=part.rubric))
    section = ReportSection(anchor, title, (), tuple(answers), parts, all_about, tuple(appendix))
    return topic.finish(source, section)


def _set_names(sections: Sequence[ReportSection]) -> None:
    """Set the name of every figure and table from its caption, with a number if it is taken."""
    # Anchors on the page that no figure or table may take.
    anchors = {"main", "overview", "appendix", METHODS} | {section.id for section in sections}
    anchors |= {f"{section.id}-title" for section in sections}
    for block in chain.from_iterable(section.every_block() for section in sections):
        for item in (block, *block.data) if isinstance(block, Chart) else (block,):
            if isinstance(item, Chart | Table):
                stem = plain_name(item.caption)
                candidates = (f"{stem}-{n}" if n > 1 else stem for n in count(1))
                item.name = next(name for name in candidates if name not in anchors)
                anchors.add(item.name)


def plain_name(text: str) -> str:
    """Turn a text into a file name that any system accepts.

    >>> plain_name("Refusal: Cohen κ of every two raters (synthetic)")
    'refusal-cohen-k-of-every-two-raters-synthetic'
    >>> plain_name("評価"), plain_name("../Größe")
    ('figure', 'grosse')
    """
    latin = text.replace("κ", "k").replace("α", "alpha").replace("π", "pi").replace("ß", "ss")
    ascii_text = unicodedata.normalize("NFKD", latin).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-")[:_MAX_NAME].strip("-") or "figure"


# Files

SCHEMA = 1  # version of the fields of report.json
PUBLISHED = "published.csv"
"""File with published figures and the study's own, for a study that declares some."""
_TEMPLATES = Path(__file__).parent / "templates"
_PNG_SCALE = 2  # pixels of a PNG per pixel of the figure, so that it is sharp in print
# Signs of markup; the // of a URL; "-" and the like at a line's start, not in "-0.5"; "." in "1. ".
_MARKDOWN = re.compile(r"[\\`*_\[\]|~#]|(?<=:)//|^[-+=](?![\d.])|(?<=^\d)[.)](?=\s|$)")
_HTML = {"<": "&lt;", ">": "&gt;"}
_ENTITY = re.compile(r"&(?=#?\w+;)")  # the & of "&lt;" in a text


def write_report(
    analysis: Analysis, context: ReportContext, out: Path, *, full: bool = False
) -> None:
    """Write report.html, report.md, report.json and results.csv into a folder, which is made if
    needed; disagreements.html if texts of units with disagreements are known; and published.csv if
    the study declares published figures. On a `full` page nothing is folded.

    A synthetic study is marked in all files: by `study.synthetic` in the JSON, and by "synthetic"
    at the end of each row's note in the JSON and the CSV, whose columns are fixed.
    """
    rows = _rows(analysis, synthetic=context.synthetic)
    source = Source(analysis, context)
    sections = sections_of(source)
    all_blocks = (block for section in sections for block in section.every_block())
    new_folder(out)
    with ThreadPoolExecutor(1) as drawing:  # Vega draws without Python's lock, while texts are made
        all_charts = (block for block in all_blocks if isinstance(block, Chart))
        drawings = {chart.name: drawing.submit(_draw, chart) for chart in all_charts}
        markdown_template = _markdown().get_template("report.md.j2")
        contents = {
            "results.csv": _csv(rows, RESULTS_COLUMNS),
            "report.json": _json(source, sections, rows),
            "report.md": markdown_template.render(context=context, sections=sections),
        }
        if context.replication and context.replication.published.figure:
            published_rows = published_figures.published_rows(source, context.replication)
            contents[PUBLISHED] = _csv(published_rows, list(published_rows[0]))
        if raters.has_page(analysis.disagreements, context):
            page = raters.page_of(analysis.disagreements, context)
            contents[raters.PAGE] = _page("disagreements", ["disagreements.js"], context, page=page)
        rubrics = dict.fromkeys(part.rubric for section in sections for part in section.parts)
        contents["report.html"] = _page(
            "report", ["downloads.js", "reading.js"], context, sections=sections,
            rubrics=list(filter(None, rubrics)), full=full, unfolded=" open" if full else "",
            draw=lambda chart: drawings[chart.name].result(),
        )  # fmt: skip
    for name, content in contents.items():
        atomic_write(out / name, content.encode(errors=ESCAPED))


def _rows(analysis: Analysis, *, synthetic: bool) -> list[dict[str, Any]]:
    """Return results as rows for files: ids, not display names, and None for undefined numbers."""
    rows, ids = [], analysis.ids
    for row in analysis.rows:
        note = text_of(join_notes(row["remarks"], "synthetic" if synthetic else ""))
        values = {name: _finite(value) for name, value in row.items() if name in RESULTS_COLUMNS}
        key = {name: ids.get(row[name], row[name]) for name in ("rubric", "rater_a", "rater_b")}
        if row["statistic"].startswith("rewording_"):  # `at` is a wording, named like a rubric
            key["at"] = ids.get(row["at"], row["at"])
        rows.append(values | key | {"note": note})
    return rows


def _csv(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> str:
    """Write the columns of rows as CSV, without numbers that are not finite."""
    return blocks.csv_text([columns, *([_finite(row[name]) for name in columns] for row in rows)])


def _finite(value: object) -> object:
    """Return a value, None for a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(source: Source, sections: list[ReportSection], rows: list[dict[str, Any]]) -> str:
    """Return report.json: the study, the paragraphs to paste, the verdicts and the results."""
    analysis, context, ids = source.analysis, source.context, source.analysis.ids

    def id_of(name: str) -> str:
        return ids.get(name, name)

    def with_ids(keys: Sequence[Sequence[str]]) -> list[list[str]]:
        """Replace rubric and raters in keys of rows (`RESULTS_KEY`) by their ids."""
        return [
            [id_of(rubric), statistic, id_of(rater_a), id_of(rater_b), *others]
            for rubric, statistic, rater_a, rater_b, *others in keys
        ]

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
    all_blocks = (block for section in sections for block in section.every_block())
    quotable = next(block for block in all_blocks if isinstance(block, blocks.Quotable))
    methods_text, *results_texts = quotable.texts
    verdicts = [
        {
            **verdict, "rubric": id_of(verdict["rubric"]), "grader": id_of(verdict["grader"]),
            "kappas": with_ids(verdict["kappas"]), "evidence": with_ids(verdict["evidence"]),
        }
        for verdict in analysis.verdicts
    ]  # fmt: skip
    content = {
        "schema": SCHEMA, "study": study, "methods": methods_text,
        "results_text": " ".join(results_texts),
        "names": {id_: name for name, id_ in ids.items()}, "verdicts": verdicts, "results": rows,
    }  # fmt: skip
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _page(name: str, scripts: Sequence[str], context: ReportContext, **content: object) -> str:
    """Render a page, which may load its own style sheet and scripts only, by their hashes."""
    fields = {"colours": charts.ROLES, "synthetic": context.synthetic}
    script = Markup("\n".join(render(template, **fields) for template in scripts))  # noqa: S704 - our own
    # Hashes for the page's Content-Security-Policy, which allows nothing else.
    style_digest, script_digest = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (render(f"{name}.css"), script)
    )
    digests = {"style_digest": style_digest, "script_digest": script_digest}
    return render(f"{name}.html.j2", script=script, context=context, **digests, **content)


@cache
def _html() -> jinja2.Environment:
    """Return the environment for HTML, which escapes all text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        # Markup of our own is no plain `str`, and stays as it is.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )  # fmt: skip
    environment.globals.update(draw=_draw, can_draw=charts.can_draw, written=written)
    return environment


def _draw(chart: Chart) -> Markup:
    """Draw a chart as safe markup; without a drawing library, describe it."""
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
    """Escape a text for Markdown, as one line without table cells, links, markup or headings.

    >>> print(markdown("a|b <b>*x*</b>"))
    a\\|b &lt;b&gt;\\*x\\*&lt;/b&gt;
    """
    line = _ENTITY.sub("&amp;", " ".join(visible(text).split()))
    line = "".join(_HTML.get(letter, letter) for letter in line)
    return _MARKDOWN.sub(lambda match: "\\" + match.group(), line)


def render(template: str, **content: object) -> str:
    """Render a template of the report with content; every text in it is escaped."""
    return _html().get_template(template).render(**content)


def write_figures(analysis: Analysis, context: ReportContext, out: Path) -> int:
    """Write every figure as SVG and PNG, every table as CSV and LaTeX, and the methods paragraph
    with its references, into a folder, which is made if needed; return the number of files.

    Each file is named after its anchor in report.html. A figure has the light colours, its caption
    and its note. Each file is marked if the study is synthetic.
    """
    new_folder(out)
    sections = sections_of(Source(analysis, context))
    all_blocks = chain.from_iterable(section.every_block() for section in sections)
    files = [file for block in all_blocks for file in _files_of(block, synthetic=context.synthetic)]
    for name, content in files:  # once all are made
        atomic_write(out / name, content)
    return len(files)


def _files_of(block: blocks.Block, *, synthetic: bool) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of a block's files."""
    if isinstance(block, Chart):
        import vl_convert

        svg = charts.vega_svg(charts.standalone_spec(block, SYNTHETIC if synthetic else ""))
        yield f"{block.name}.svg", svg.encode()
        yield f"{block.name}.png", vl_convert.svg_to_png(svg, scale=_PNG_SCALE)
    for table in block.data if isinstance(block, Chart | Table) else ():
        yield f"{table.name}.csv", blocks.csv_of(table, synthetic=synthetic).encode(errors=ESCAPED)
        yield f"{table.name}.tex", tex_of(table, synthetic=synthetic).encode()
    if isinstance(block, blocks.Quotable):
        yield f"{METHODS}.md", visible("\n\n".join(block.texts) + "\n").encode()
        yield f"{METHODS}.tex", visible(f"{block.tex}\n").encode()
        yield "references.bib", block.bibtex.encode()


def tex_of(table: Table, *, synthetic: bool) -> str:
    r"""Write a table as LaTeX for \usepackage{booktabs}, with caption, rules and footnotes."""
    mark = SYNTHETIC if synthetic else ""
    return _latex().get_template("table.tex.j2").render(table=table, mark=mark)


def render_notebook(analysis: Analysis, context: ReportContext) -> str:
    """Render a notebook's cell as HTML: the verdicts with their notes, the tables of agreement, and
    one figure of graders compared with people. It has its own colours, and loads no script or file.
    """
    source = Source(analysis, context)
    chart = next(chain.from_iterable(map(graders.forest, source.rubrics)), None)  # the first one
    return render(
        "notebook.html.j2", name=context.name,
        answers=[recommendation.sentence for recommendation in recommendations(source.ranking)],
        notes=(*limits_of(analysis.verdicts), *source.notes),
        cards=graders.verdict_cards(source), several=len(source.rubrics) > 1,
        tables=graders.render_table_text(analysis, context),
        chart=replace(chart, caption=source.marked(chart.caption)) if chart else None,
    )  # fmt: skip


def render_lines(lines: Iterable[str | graders.TextTable]) -> str:
    """Render sentences and tables as HTML, in the colours of `render_notebook`."""
    return render("lines.html.j2", lines=list(lines))
