"""Parts that the pages of the lead (who runs the study) share: counts and figures of a study,
tables, links, charts, texts of an item, previews, uploaded files.

Figures (agreement, verdicts, quality) are made in a separate process of lower priority, so that no
annotator waits for them, and by the report's code (`evenhand.reporting.report`), so that pages and
report show the same rows. They are kept until new data come in.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import logging
import math
import shutil
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from evenhand.analysis.raters import QUALITY_COLUMNS
from evenhand.analysis.report.charts import svg_in_scheme
from evenhand.annotate_app import html_texts
from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.logins import place_of
from evenhand.errors import InputError, StoreAway
from evenhand.lazy import pd
from evenhand.reporting.report import FORESTS_FILE, QUALITY_FILE, call_on, study_figures
from evenhand.reporting.workers import StandBy, run_apart
from evenhand.rubrics.rendering import PeopleText, TextBlock
from evenhand.study import Study
from evenhand.study.lead.progress import data_version
from evenhand.study.prompts.units import has_known_answer
from evenhand.study.tables.ratings import Mark, pieces
from evenhand.study.trust import state_folder
from evenhand.texts import DASH, readable_name, written

# ---- counts -------------------------------------------------------------------------------------
#
# With 100,000 labels a table takes a second to count, and the serving process would answer no page
# meanwhile. So one further process of low priority counts, with its own connection to the store.

Counted = TypeVar("Counted")
_PROCESS = StandBy()  # the counting process; not in a cache of Streamlit's: a visitor may clear it


def counted(study: Study, count: Callable[..., Counted], *arguments: object) -> Counted:
    """Return `count(study, *arguments)` from the counting process. That process imports the module
    of `count`, which must therefore not import pages.
    """
    result: Counted = _PROCESS.ask(call_on, study.folder.resolve(), count, arguments)
    return result


def latest(study: Study, count: Callable[..., Counted], *arguments: object) -> Counted:
    """Return `count(study, *arguments)`, counted once for all viewers, and again when new data have
    come in, or in the next minute, since reservations of items expire.
    """
    name, minute = f"{count.__module__}.{count.__qualname__}", int(time.time() // 60)
    state = (str(study.folder), data_version(study), minute)
    result: Counted = _cached(study, count, name, state, arguments)
    return result


@st.cache_data(max_entries=20, show_spinner=False)
def _cached(
    _study: Study, _count: Callable[..., Any], name: str, state: object, arguments: tuple[Any, ...]
) -> Any:
    return counted(_study, _count, *arguments)  # arguments named _... are not in the cache's key


stand_by = _PROCESS.prepare  # starts the process ahead of its use, after a login

_log = logging.getLogger(__name__)

# ---- figures ------------------------------------------------------------------------------------

_COMPLAINT = "the figures could not be made; the app's log says why"
_QUALITY_TEXTS = ("rater_id", "leaning_at", "flagged", "reason", "excluded")  # columns of texts
_ESTIMATE = ("estimate", "low", "high")  # the numbers of results.csv that are read


def latest_figures(study: Study) -> LiveFigures | None:
    """Return the latest figures, or None while there are none, and request newer ones if new data
    have come in. Draws a note: when the figures were made, and how far newer ones are.
    """
    maker = _maker(study.folder.resolve())
    version = data_version(study)
    maker.request(version)
    figures, notes = maker.current, []
    is_current = figures is not None and figures.version == version
    if figures is not None:
        notes = [written("lead.current" if is_current else "lead.older", at=figures.made_at)]
    if maker.stage and not is_current:
        seconds = int(time.monotonic() - maker.since)
        notes.append(written("lead.making", stage=maker.stage, seconds=seconds))
    elif maker.last_attempt and maker.last_attempt.complaint:
        html_texts.show_complaint(maker.last_attempt.complaint)
    if notes:
        html_texts.show(html_texts.block(" ".join(notes), "note"))
    return figures


def current_figures(study: Study) -> LiveFigures | None:
    """Return the latest figures without showing anything or requesting newer ones."""
    return _maker(study.folder.resolve()).current


@dataclass(frozen=True)
class LiveFigures:
    """The figures of one state of the study, as files in a folder."""

    version: str  # of the data, as in `data_version`
    folder: Path
    complaint: str = ""  # why there are no figures, in one sentence
    made_at: str = ""  # time (UTC, to the minute) before which all labels are included

    @cached_property
    def results(self) -> pd.DataFrame:
        return self._table("results.csv", _ESTIMATE)

    @cached_property
    def report(self) -> Any:
        """report.json: the verdicts, the notes, the rubrics' titles."""
        return json.loads((self.folder / "report.json").read_text("utf-8"))

    @cached_property
    def quality(self) -> pd.DataFrame:
        numbers = [name for name in QUALITY_COLUMNS if name not in _QUALITY_TEXTS]
        return self._table(QUALITY_FILE, numbers, _QUALITY_TEXTS)

    @cached_property
    def forests(self) -> Any:
        """The report's forest plots, a list of `svg`, `alt`, `caption`, `note`."""
        return json.loads((self.folder / FORESTS_FILE).read_text("utf-8"))

    def _table(self, name: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> pd.DataFrame:
        return pd.read_csv(
            self.folder / name,
            dtype=dict.fromkeys(texts, str),
            keep_default_na=False,  # a rater may be called NA: only numbers can be missing
            na_values={column: [""] for column in numbers},
        )


_STAMP = "made.txt"  # the file with the version of saved figures, and when they were made


class FiguresMaker:
    """Makes the figures of one study on request; many threads may share it.

    `current` are the latest figures; `last_attempt` may have failed. While figures are being made,
    `stage` names the present step, and `since` is when they were begun (`time.monotonic`).
    """

    def __init__(self, study_folder: Path) -> None:
        self._study = study_folder.resolve()
        self._home = tempfile.TemporaryDirectory(prefix="evenhand-lead-")  # for this user only
        self._lock = threading.Lock()
        installed_at = Path(__file__).stat().st_mtime_ns  # another version makes other figures
        digest = hashlib.sha256(f"{installed_at} {self._study}".encode()).hexdigest()[:24]
        self._saved_folder = state_folder() / "figures" / digest
        self._previous: LiveFigures | None = None  # before `current`; a page may still read them
        self.last_attempt: LiveFigures | None = None
        self.current: LiveFigures | None = None
        with suppress(OSError):  # figures that an earlier process saved
            out = Path(shutil.copytree(self._saved_folder, Path(self._home.name) / "last"))
            version, made_at = (out / _STAMP).read_text("utf-8").splitlines()
            self.current = LiveFigures(version, out, made_at=made_at)
        self.stage = ""
        self.since = 0.0

    def request(self, version: str) -> None:
        """Request figures for this state of the study; returns at once."""
        with self._lock:
            if self.stage or (self.last_attempt and self.last_attempt.version == version):
                return
            self.stage = written("lead.stage_starting")
            self.since = time.monotonic()
        threading.Thread(target=self._make, args=(version,), daemon=True).start()

    def _make(self, version: str) -> None:
        out = Path(tempfile.mkdtemp(dir=self._home.name))
        complaint, made_at = "", datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        try:
            run_apart(study_figures, self._study, out, on_stage=partial(setattr, self, "stage"))
            self._save(out, version, made_at)
        except InputError as error:
            complaint = str(error)
        except StoreAway as error:
            _log.warning("%s: %s", _COMPLAINT, error)
            complaint, version = _COMPLAINT, ""  # no data's version, so that `request` tries again
        except Exception:
            _log.exception(_COMPLAINT)
            complaint = _COMPLAINT
        self.last_attempt = LiveFigures(version, out, complaint, made_at)
        if complaint:
            shutil.rmtree(out, ignore_errors=True)
        else:
            # A page may still read the current figures, which are replaced now, but no older ones.
            if self._previous is not None:
                shutil.rmtree(self._previous.folder, ignore_errors=True)
            self._previous, self.current = self.current, self.last_attempt
        self.stage = ""

    def _save(self, out: Path, version: str, made_at: str) -> None:
        """Save figures for the next process, which shows them until it has newer ones."""
        with suppress(OSError):
            (out / _STAMP).write_text(f"{version}\n{made_at}\n", "utf-8")
            self._saved_folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            copy = tempfile.mkdtemp(dir=self._saved_folder.parent)
            shutil.copytree(out, copy, dirs_exist_ok=True)
            shutil.rmtree(self._saved_folder, ignore_errors=True)
            Path(copy).rename(self._saved_folder)  # at once, so that nobody reads half a copy


_maker = cache(FiguresMaker)
"""The maker for the study in a folder, one for each study of this process."""

# ---- tables -------------------------------------------------------------------------------------

_words_text = Path(__file__).with_name("words.toml").read_text("utf-8")
WORDS: dict[str, dict[str, str]] = tomllib.loads(_words_text)
"""Headings, fields and choices of the lead's pages, by section and name."""
_TO_THE_MINUTE = "minute"  # in place of a number's format, for times
_FORMATS = {
    **dict.fromkeys(("seconds", "median_seconds", "idle_minutes"), ".0f"),
    **dict.fromkeys(("tokens_input", "tokens_output"), ".0f"),
    "pace": ".0%",
    **dict.fromkeys(("hours", "hours_left", "minutes"), ".1f"),
    **dict.fromkeys(("estimate", "low", "high", "owed", "cost_usd"), ".2f"),
    **dict.fromkeys(("created_at", "last_answer", "until", "end"), _TO_THE_MINUTE),
}
"""Formats of numbers and times, by column."""


def show_table(
    frame: pd.DataFrame,
    caption: str,
    columns: str | Mapping[str, str],
    *,
    headings: Mapping[str, str] | None = None,
    folded: bool = False,
    links: Mapping[str, Callable[[str], str]] | None = None,
    display_names: Mapping[str, str] | None = None,
    html_columns: Collection[str] = (),
) -> None:
    """Draw a table that screen readers can read; cells are escaped text, missing numbers a dash.

    `columns` are names of columns of `frame`, separated by spaces, or a mapping of names to
    headings. `headings` override those of words.toml. `folded` hides the table until its caption is
    clicked. `links` are, by column, functions from a cell's value to an address. `display_names`
    replace ids of raters and rubrics. Cells of `html_columns` are HTML already.
    """
    formats: Mapping[str, str] = {}
    links, title = links or {}, html.escape(caption)
    names_by_column = dict.fromkeys(("rater_id", "rubric"), display_names or {})
    if isinstance(columns, str):
        known, formats = WORDS["headings"] | dict(headings or {}), _FORMATS
        columns = {name: known.get(name) or readable_name(name) for name in columns.split()}
    is_number = {name: frame[name].dtype.kind in "iuf" for name in columns}  # integers, floats
    number_class = ' class="number"'
    head = "".join(
        f'<th scope="col"{number_class if is_number[name] else ""}>{html.escape(heading)}</th>'
        for name, heading in columns.items()
    )
    rows = []
    for row in frame.to_dict("records"):
        cells = []
        for name, heading in columns.items():
            css_class, content = "", row[name]
            if name not in html_columns:
                spec, link = formats.get(name, ""), links.get(name)
                css_class, content = _cell(row[name], spec, link, names_by_column.get(name, {}))
            attribute = f' class="{css_class}"' if css_class else ""
            cells.append(f'<td{attribute} data-heading="{html.escape(heading)}">{content}</td>')
        rows.append("".join(cells))
    with st.expander(caption) if folded else nullcontext():
        st.html(
            f'<div class="evenhand-scroll" role="region" tabindex="0" aria-label="{title}">'
            f'<table class="evenhand-table"><caption>{title}</caption>'
            f"<thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table></div>"
        )


def _cell(
    value: object, spec: str, link: Callable[[str], str] | None, names: Mapping[str, str]
) -> tuple[str, str]:
    """Return a cell's CSS class, "" for none, and its value as HTML: formatted, named, linked."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "number", DASH
    if spec == _TO_THE_MINUTE:
        return "time", html.escape(to_the_minute(str(value)))
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    name = names.get(str(value), str(value))
    text = html.escape(format(value, spec or ",") if is_number else name)
    if link is not None:
        text = f'<a href="{html.escape(link(str(value)))}">{text}</a>'
    return "number" if is_number else "", text


def rubric_titles(study: Study) -> dict[str, str]:
    """Return the titles of the rubrics by their names; the study's own display names come first."""
    names = study.config.names
    return {name: names.get(name) or rubric.title for name, rubric in study.rubrics.items()}


def to_the_minute(stamp: str) -> str:
    """Return a time from the store without seconds and time zone.

    >>> to_the_minute("2026-03-02T09:00:59.123+00:00")
    '2026-03-02 09:00'
    """
    return stamp[:16].replace("T", " ")


def choose_any(
    label: str, names: Mapping[str, str], placeholder: str, key: str, **options: Any
) -> str | None:
    """Draw a select box that begins with nothing chosen; return the chosen key of `names`."""
    options |= {"index": None, "placeholder": placeholder}
    options["format_func"] = lambda name: names.get(name, name)
    chosen: str | None = st.selectbox(label, list(names), key=key, **options)
    return chosen


# ---- links from page to page --------------------------------------------------------------------


@dataclass(frozen=True)
class PageLink:
    """A link to the page with this title. `chosen` are values for that page's fields, by the keys
    of the fields; the link's address contains them.
    """

    title: str
    text: str
    chosen: Mapping[str, str] = field(default_factory=dict)

    def show(self) -> None:
        page = st.Page(lambda: None, title=self.title, url_path=place_of(self.title))
        st.page_link(page, label=html_texts.plain(self.text), query_params=self.chosen)


def page_of(title: str, field: str, value: str) -> str:
    """Return the address, from any of the lead's pages, of a page with a value in one field.

    >>> page_of("Annotators", "one_rater", "a&b")
    'annotators?one_rater=a%26b'
    """
    return f"{place_of(title)}?{field}={quote(value, safe='')}"


# ---- charts -------------------------------------------------------------------------------------


def show_charts(charts: Sequence[Mapping[str, str]]) -> None:
    """Draw forest plots (`rubric`, `svg`, `alt`, `note`) in the page's colours, by rubric."""
    sections, colour_scheme = dict[str, str](), st.context.theme.type or "light"
    legend = charts[0]["note"] if charts else ""  # shown once: other notes repeat it
    for chart in charts:
        svg = svg_in_scheme(chart["svg"], colour_scheme).replace("κ", "kappa")  # the page's word
        encoded = base64.b64encode(svg.encode()).decode()
        alt, note = (html.escape(chart[name].removeprefix(legend)) for name in ("alt", "note"))
        image = f'<img src="data:image/svg+xml;base64,{encoded}" alt="{alt}"><small>{note}</small>'
        sections.setdefault(chart["rubric"], html_texts.heading(chart["rubric"], 3))
        sections[chart["rubric"]] += f"<figure>{image}</figure>"
    drawn = "".join(f"<section>{section}</section>" for section in sections.values())
    html_texts.show(html_texts.block(legend, "note"), f'<div class="evenhand-charts">{drawn}</div>')


# ---- the texts of an item, as on the annotators' pages ------------------------------------------

_MOST_LETTERS = 160  # of an item's text in a table; lead.css shows what fits the column


def text_for_annotators(study: Study, unit_id: str, rubric_name: str) -> PeopleText:
    """Return a rubric's words and an item's texts; those of a pair's two sides in stored order."""
    rubric = study.rubrics[rubric_name]
    return rubric.for_people(study.values(rubric, unit_id))


def first_words(study: Study, unit_id: str, rubric_name: str) -> str:
    """Return the beginning of an item's first text, on one line; "" if the study has no text."""
    if rubric_name not in study.rubrics or has_known_answer(unit_id):
        return ""
    first, *_ = text_for_annotators(study, unit_id, rubric_name).blocks
    return " ".join(first.text[:_MOST_LETTERS].split())


def marked_blocks(
    study: Study,
    texts: Sequence[TextBlock],
    marks: Sequence[tuple[str, Mark]],
    note: Callable[[Sequence[str]], str],
) -> str:
    """Return HTML: an item's texts, the two sides of a pair next to each other. A text in which
    annotators marked words is shown as it was written, with the marks. `marks` are pairs of an
    annotator and a mark; `note` returns the note on words from the annotators who marked them.
    """

    def block_with_marks(text: TextBlock) -> str:
        marks_here = [(rater, mark) for rater, mark in marks if mark.text == text.variable]
        if not marks_here:
            return html_texts.drawn_block(text, ENGLISH, study.config.annotation.display)
        marked_pieces = pieces(text.text, marks_here)
        noted = [(piece, note(raters) if raters else "") for piece, raters in marked_pieces]
        return html_texts.marked_block(noted, text.label)

    return html_texts.side_by_side([(text.side, block_with_marks(text)) for text in texts])


def unit_blocks(study: Study, unit_id: str, rubric_name: str) -> str:
    """Return an item's texts as HTML. Raises InputError if the study has no such rubric."""
    if rubric_name not in study.rubrics:
        raise InputError(f"the study has no rubric {rubric_name!r} any more")
    if has_known_answer(unit_id):
        text = "A practice item or an attention check; its texts are in the study's file."
        return html_texts.block(text)
    texts = text_for_annotators(study, unit_id, rubric_name).blocks
    return html_texts.drawn_blocks(texts, ENGLISH, study.config.annotation.display)


# ---- previews of annotators' pages --------------------------------------------------------------

_STYLE = Path(__file__).parents[1] / "session_pages.css"


def show_annotator_view(content: str, label: str = "As annotators see it") -> None:
    """Draw HTML made by this app, under a label, as it looks on the annotators' pages."""
    st.html(_STYLE)
    with st.container(border=True, key="preview"):
        html_texts.show(f'<p class="evenhand-label">{label}</p>')
        with st.container(key="step"):
            html_texts.show(content)


# ---- uploaded files: never larger than declared, and kept only while they are read --------------

MOST_MB = 50
TABLES = ["csv", "jsonl"]
OF_TOOLS = [*TABLES, "tsv", "json", "xlsx", "parquet", "arrow", "eval", "zip"]  # also tables


@contextmanager
def uploaded_files(
    kinds: Sequence[str] = TABLES, /, **files: UploadedFile | None
) -> Iterator[dict[str, Path | None]]:
    """Yield the paths of the files in a temporary folder, by their keyword; None for no file. Names
    that users gave never become paths. Raises InputError if a file is too large or of another kind.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-upload-") as home:
        paths: dict[str, Path | None] = dict.fromkeys(files)
        for name, file in files.items():
            if file is None:
                continue
            if file.size > MOST_MB * 1_000_000:
                raise InputError(
                    f"the file of {name} is larger than {MOST_MB} MB; use the command line for it"
                )
            suffix = Path(file.name).suffix.lower()
            if suffix.removeprefix(".") not in kinds:
                raise InputError(
                    f"the file of {name} is of no known kind; upload one of {', '.join(kinds)}"
                )
            paths[name] = path = Path(home) / f"{name}{suffix}"
            path.write_bytes(file.getbuffer())
        yield paths


def split_list(text: str, between: str = ",") -> list[str]:
    """Return the parts of a text, without empty ones and surrounding spaces."""
    return [part.strip() for part in text.split(between) if part.strip()]
