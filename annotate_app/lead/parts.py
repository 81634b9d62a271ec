"""Parts of the lead's pages: the study's counts and figures while people label; tables that screen
readers can read, too, in which every cell is only text; charts; the verdict board; a unit as people
read it; files that a lead uploads.

A separate process of lower priority makes the figures (`evenhand.reporting.report`). So no
annotator waits while it counts, and the pages show the same rows as the report. Its figures are
kept until something new has come in.
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
from evenhand.annotate_app.html_texts import (
    block,
    drawn_block,
    drawn_blocks,
    marked_block,
    plain,
    show,
    show_complaint,
    side_by_side,
)
from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.logins import place_of
from evenhand.errors import InputError, StoreAway
from evenhand.lazy import pd
from evenhand.reporting.report import FORESTS_FILE, QUALITY_FILE, counted_of, study_figures
from evenhand.reporting.workers import StandBy, run_apart
from evenhand.rubrics.rendering import PeopleText, TextBlock
from evenhand.study import Study
from evenhand.study.lead.progress import data_version
from evenhand.study.prompts.units import has_known_answer
from evenhand.study.tables.ratings import Mark, pieces
from evenhand.study.trust import state_folder
from evenhand.texts import DASH, named, written

# Counts for the lead's pages, made outside the process that serves the annotators. With 100,000
# labels a table takes a second to count, and Python counts one thing at a time: in the serving
# process everyone would wait. So one further process of low priority does it, for all who look,
# with a connection of its own to the store.

Counted = TypeVar("Counted")
_PROCESS = StandBy()
"""One for this process of the app, which no visitor's "clear the caches" ends."""


def counted(study: Study, count: Callable[..., Counted], *arguments: object) -> Counted:
    """Return `count(study, *arguments)` for the present data. `count` is a function of a module
    that has nothing to do with pages: the other process loads it.
    """
    result: Counted = _PROCESS.ask(counted_of, study.folder.resolve(), count, arguments)
    return result


def latest(study: Study, count: Callable[[Study], Counted]) -> Counted:
    """Return `count(study)`, counted once for all viewers, and again when new data has come in or
    the minute is over: leases run out although nothing comes in.
    """
    name, minute = f"{count.__module__}.{count.__qualname__}", int(time.time() // 60)
    result: Counted = _kept(study, count, name, str(study.folder), data_version(study), minute)
    return result


@st.cache_data(max_entries=20, show_spinner=False)
def _kept(
    _study: Study, _count: Callable[[Study], Any], name: str, folder: str, version: str, minute: int
) -> Any:
    return counted(_study, _count)


stand_by = _PROCESS.prepare
"""Starts the process ahead of its use, when somebody logs in who will need it."""

_log = logging.getLogger(__name__)

_FAILED = "the figures could not be made; the app's log says why"
_TEXTS = ("rater_id", "leaning_at", "flagged", "reason", "excluded")
_ESTIMATE = ("estimate", "low", "high")


def latest_figures(study: Study) -> LiveFigures | None:
    """The latest figures; newer ones are being made if something has come in since.

    Shows their age, and the stage that the newer ones are in; None while there are none.
    """
    maker = _maker(study.folder.resolve())
    version = data_version(study)
    maker.request(version)
    figures = maker.current
    is_current = figures is not None and figures.version == version
    if maker.stage and not is_current:
        seconds = int(time.monotonic() - maker.since)
        st.text(written("lead.making", stage=maker.stage, seconds=seconds))
    elif maker.last_attempt and maker.last_attempt.complaint:
        show_complaint(maker.last_attempt.complaint)
    if figures is not None:
        st.text(written("lead.current" if is_current else "lead.older", at=figures.made_at))
    return figures


def current_figures(study: Study) -> LiveFigures | None:
    """Return the latest figures without showing anything or requesting newer ones."""
    return _maker(study.folder.resolve()).current


@dataclass(frozen=True)
class LiveFigures:
    """The figures of one state of the study, in a folder of its own."""

    version: str
    folder: Path
    complaint: str = ""
    """Why there are no figures, in one sentence; else empty."""
    made_at: str = ""
    """When they were begun (UTC, to the minute): labels that came later are not in them."""

    @cached_property
    def results(self) -> pd.DataFrame:
        return self._table("results.csv", _ESTIMATE)

    @cached_property
    def report(self) -> Any:
        """report.json: the verdicts, the notes, the rubrics' titles."""
        return json.loads((self.folder / "report.json").read_text("utf-8"))

    @cached_property
    def quality(self) -> pd.DataFrame:
        numbers = [name for name in QUALITY_COLUMNS if name not in _TEXTS]
        return self._table(QUALITY_FILE, numbers, _TEXTS)

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


_MADE = "made.txt"


class FiguresMaker:
    """Makes the figures of one study on request. Safe under many threads.

    `last_attempt` may have failed, `current` the last that gave figures. While one is being made,
    `stage` names the present step, and it began at `since` (`time.monotonic`).
    """

    def __init__(self, study_folder: Path) -> None:
        self._study = study_folder.resolve()
        self._home = tempfile.TemporaryDirectory(prefix="evenhand-lead-")  # for this user only
        self._lock = threading.Lock()
        installed = Path(__file__).stat().st_mtime_ns
        named = hashlib.sha256(f"{installed} {self._study}".encode()).hexdigest()[:24]
        self._saved_folder = state_folder() / "figures" / named
        self._previous: LiveFigures | None = None
        self.last_attempt: LiveFigures | None = None
        self.current: LiveFigures | None = None
        with suppress(OSError):  # those of a process before this one, until there are newer ones
            out = Path(shutil.copytree(self._saved_folder, Path(self._home.name) / "last"))
            version, at = (out / _MADE).read_text("utf-8").splitlines()
            self.current = LiveFigures(version, out, made_at=at)
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
        complaint, at = "", datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        try:
            run_apart(study_figures, self._study, out, on_stage=partial(setattr, self, "stage"))
            self._keep(out, version, at)
        except InputError as error:
            complaint = str(error)
        except StoreAway as error:
            _log.warning("%s: %s", _FAILED, error)
            complaint, version = _FAILED, ""  # so that they are tried again
        except Exception:
            _log.exception(_FAILED)
            complaint = _FAILED
        self.last_attempt = LiveFigures(version, out, complaint, at)
        if complaint:
            shutil.rmtree(out, ignore_errors=True)
        else:
            # Somebody may be reading the last ones; those before them are out of sight.
            if self._previous is not None:
                shutil.rmtree(self._previous.folder, ignore_errors=True)
            self._previous, self.current = self.current, self.last_attempt
        self.stage = ""

    def _keep(self, out: Path, version: str, at: str) -> None:
        """Keep figures for the next process, which shows them until it has newer ones."""
        with suppress(OSError):
            (out / _MADE).write_text(f"{version}\n{at}\n", "utf-8")
            self._saved_folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = tempfile.mkdtemp(dir=self._saved_folder.parent)
            shutil.copytree(out, fresh, dirs_exist_ok=True)
            shutil.rmtree(self._saved_folder, ignore_errors=True)
            Path(fresh).rename(self._saved_folder)


_maker = cache(FiguresMaker)
"""The maker for the study in a folder, one for each study of this process."""

# Tables

WORDS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("words.toml").read_text("utf-8")
)
"""Headings, fields and choices of the lead's pages."""
_TO_THE_MINUTE = "minute"
_FORMATS = {
    **dict.fromkeys(("seconds", "median_seconds", "idle_minutes"), ".0f"),
    **dict.fromkeys(("tokens_input", "tokens_output"), ".0f"),
    "pace": ".0%",
    **dict.fromkeys(("hours", "hours_left", "minutes"), ".1f"),
    **dict.fromkeys(("estimate", "low", "high", "owed", "cost_usd"), ".2f"),
    **dict.fromkeys(("created_at", "last_answer", "until", "end"), _TO_THE_MINUTE),
}
"""Format specifications of numbers, and of moments, by their columns."""


def show_table(
    frame: pd.DataFrame,
    caption: str,
    columns: str | Mapping[str, str],
    *,
    headings: Mapping[str, str] | None = None,
    number: str = "",
    folded: bool = False,
    links: Mapping[str, Callable[[str], str]] | None = None,
    display_names: Mapping[str, str] | None = None,
    html_columns: Collection[str] = (),
) -> None:
    """Draw a table of some columns, given as a text of their names or as a mapping from name to
    heading; a number that is not known is a dash.

    `headings` are this table's own; `number` is the format of numbers in columns given by a
    mapping. A table that repeats a chart above it is `folded`. `links` return the address for a
    cell's value, by column; `display_names` replace ids of raters and rubrics; the cells of
    `html_columns` are HTML, made here of escaped texts.
    """
    formats: Mapping[str, str] = {}
    links, title = links or {}, html.escape(caption)
    names = dict.fromkeys(("rater_id", "rubric"), display_names or {})
    if isinstance(columns, str):
        titles, formats = WORDS["headings"] | dict(headings or {}), _FORMATS
        columns = {name: titles.get(name) or named(name) for name in columns.split()}
    cell_class = {name: ' class="number"' * (frame[name].dtype.kind in "iuf") for name in columns}
    head = "".join(
        f'<th scope="col"{cell_class[name]}>{html.escape(heading)}</th>'
        for name, heading in columns.items()
    )
    rows = [
        "".join(
            f"<td>{row[name]}</td>"
            if name in html_columns
            else _cell(row[name], formats.get(name, number), links.get(name), names.get(name, {}))
            for name in columns
        )
        for row in frame.to_dict("records")
    ]
    with st.expander(caption) if folded else nullcontext():
        st.html(
            f'<div class="evenhand-scroll" role="region" tabindex="0" aria-label="{title}">'
            f'<table class="evenhand-table"><caption>{title}</caption>'
            f"<thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table></div>"
        )


def to_the_minute(stamp: str) -> str:
    """A time from the store, for people to read.

    >>> to_the_minute("2026-03-02T09:00:59.123+00:00")
    '2026-03-02 09:00'
    """
    return stamp[:16].replace("T", " ")


def choose_any(
    label: str, names: Mapping[str, str], placeholder: str, key: str, **field: Any
) -> str | None:
    """Draw a choice by name that begins with none chosen; return what is chosen."""
    field |= {"index": None, "format_func": names.__getitem__, "placeholder": placeholder}
    chosen: str | None = st.selectbox(label, list(names), key=key, **field)
    return chosen


# Links from one of the lead's pages to another, with what is to be chosen there.


@dataclass(frozen=True)
class PageLink:
    """A sentence or number that leads to the page with this title. `chosen` are the values that
    fields take there, by their keys; such a field is bound to the address.
    """

    title: str
    text: str
    chosen: Mapping[str, str] = field(default_factory=dict)

    def show(self) -> None:
        page = st.Page(lambda: None, title=self.title, url_path=place_of(self.title))
        st.page_link(page, label=plain(self.text), query_params=self.chosen)


def page_of(title: str, field: str, value: str) -> str:
    """Return the address of a page with a value in one field, from any of the lead's pages.

    >>> page_of("Annotators", "one_rater", "a&b")
    'annotators?one_rater=a%26b'
    """
    return f"{place_of(title)}?{field}={quote(value, safe='')}"


def _cell(
    value: object, spec: str, way: Callable[[str], str] | None, called: Mapping[str, str]
) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return f'<td class="number">{DASH}</td>'
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    name = called.get(str(value), str(value))
    shown = to_the_minute(name) if spec == _TO_THE_MINUTE else name
    text = html.escape(format(value, spec or ",") if is_number else shown)
    if way is not None:
        text = f'<a href="{html.escape(way(str(value)))}">{text}</a>'
    return f'<td class="number">{text}</td>' if is_number else f"<td>{text}</td>"


# The report's pictures, in the colours of the lead's pages.


def show_drawn(charts: Sequence[Mapping[str, str]]) -> None:
    """Show pictures of the report (`svg`, `alt`, `caption`, `note`), as many in a row as fit."""
    figures, scheme = [], st.context.theme.type or "light"
    for chart in charts:
        svg = svg_in_scheme(chart["svg"], scheme).replace("κ", "kappa")  # as the page calls it
        drawn = base64.b64encode(svg.encode()).decode()
        caption, note, alt = (html.escape(chart[name]) for name in ("caption", "note", "alt"))
        figures.append(
            f"<figure><figcaption>{caption}</figcaption>"
            f'<img src="data:image/svg+xml;base64,{drawn}" alt="{alt}"><small>{note}</small>'
            "</figure>"
        )
    show(f'<div class="evenhand-charts">{"".join(figures)}</div>')


# A unit as people read it: its texts under their labels, drawn as on the raters' page.


def people_text(study: Study, unit_id: str, rubric_name: str) -> PeopleText:
    """The rubric and the unit in its own order."""
    rubric = study.rubrics[rubric_name]
    return rubric.for_people(study.values(rubric, unit_id))


def marked_blocks(
    study: Study,
    texts: Sequence[TextBlock],
    marks: Sequence[tuple[str, Mark]],
    note: Callable[[Sequence[str]], str],
) -> str:
    """The texts of a unit in its own order, side by side; where people marked words, the text as it
    was written, with the marks. `note` words the note on the raters who marked some words, at least
    one.
    """

    def shown(text: TextBlock) -> str:
        marked = [(who, mark) for who, mark in marks if mark.text == text.variable]
        if not marked:
            return drawn_block(text, ENGLISH, study.config.annotation.display)
        parts = pieces(text.text, marked)
        return marked_block([(part, note(who) if who else "") for part, who in parts], text.label)

    return side_by_side([(text.side, shown(text)) for text in texts])


def unit_blocks(study: Study, unit_id: str, rubric_name: str) -> str:
    """The unit's texts, for `html_texts.show`.

    Raises InputError where the study has no such rubric any more.
    """
    if rubric_name not in study.rubrics:
        raise InputError(f"the study has no rubric {rubric_name!r} any more")
    if has_known_answer(unit_id):
        return block("A practice item or an attention check; its texts stand in the study's file.")
    texts = people_text(study, unit_id, rubric_name).blocks
    return drawn_blocks(texts, ENGLISH, study.config.annotation.display)


# What raters see, drawn on the lead's pages with the raters' own style.

_STYLE = Path(__file__).parents[1] / "session_pages.css"


def as_raters_see(drawn: str) -> None:
    """Show HTML that was made here as it is on the pages around the work."""
    st.html(_STYLE)
    with st.container(border=True, key="preview"):
        show('<p class="evenhand-label">As annotators see it</p>')
        with st.container(key="step"):
            show(drawn)


# Files that a lead uploads: never larger than declared, kept only as long as they are read.

MOST_MB = 50
TABLES = ["csv", "jsonl"]
OF_TOOLS = [*TABLES, "tsv", "json", "xlsx", "parquet", "arrow", "eval", "zip"]


@contextmanager
def written_down(
    kinds: Sequence[str] = TABLES, /, **files: UploadedFile | None
) -> Iterator[dict[str, Path | None]]:
    """The files in a temporary folder, each under the name it is given here: what the sender called
    it never becomes a path.

    Raises InputError where one is too large or of no known kind.
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


def listed(text: str, between: str = ",") -> list[str]:
    """The parts of a list that is written with commas, or one a line."""
    return [part.strip() for part in text.split(between) if part.strip()]
