"""Make a new study, for `evenhand new`, `evenhand label` and the page *New study*.

A file of items becomes a study in four steps:

1. `_read_items` reads the rows (`_Rows`), each with one answer, or with two to be compared.
2. `read_content` finds the roles of columns, and returns the content of a study, a `StudyContent`:
   items, the rubrics to ask, and a judge's labels (a judge is a model whose labels are a column).
3. `make_study` makes the study, also of other prompts.
4. `preview_of` tells its size, work and precision, and names of models that annotators would see.

`evenhand new` takes steps 2 to 4 one by one. The page first shows the roles of columns (`ItemFile`)
by `look_at_items`, and then calls `create_items`, or `create_and_preview` for other prompts.
`evenhand label` is `label_items`: it also continues a study, and makes links for annotators.
"""

from __future__ import annotations

import atexit
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from evenhand.errors import InputError
from evenhand.exchange.readers.reading import read_items
from evenhand.exchange.readers.rows import ItemTable
from evenhand.exchange.readers.source import bare_cell
from evenhand.reporting.noting import note, note_edits, operator
from evenhand.reporting.panel import Line, Printable
from evenhand.reporting.ratings_file.criteria import with_criteria
from evenhand.reporting.ratings_file.dataframes import items_table
from evenhand.reporting.ratings_file.declared import ItemOptions, LabelOptions, ScaleOptions, Table
from evenhand.reporting.ratings_file.labels import note_on_order
from evenhand.rubrics import Rubric, asked_comparison, asked_rubric, load_rubric
from evenhand.rubrics.options import says_yes
from evenhand.rubrics.rendering import image_of
from evenhand.study import Study, create_study, open_study
from evenhand.study.access import make_invites
from evenhand.study.creation import StudyPlan
from evenhand.study.desk.claims import SessionDesign, pause
from evenhand.study.lead.imports import import_ratings
from evenhand.study.lead.progress import RubricLoad, workload
from evenhand.study.prompts import items as prompt_items
from evenhand.study.prompts.pairs import cluster_noun, markdown_share, prompts_noun
from evenhand.study.prompts.units import swap_side
from evenhand.study.settings import study_toml
from evenhand.study.store.store import rater_kinds
from evenhand.study.tables.columns import fold, folded, shortened
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import written

_VERSION = r"\d(?:[\w.-]*\w)?"  # of a model: "4o", "3.5-turbo"
_MODELS = (  # names of families of models, and of their makers
    rf"(?i:chat-?gpt|(?:gpt|llama|gemini|grok|phi|alpaca)-?{_VERSION}|claude-\w[\w.-]*\w|gemma|"
    r"codellama|mistral-\w+|ministral|magistral|mixtral|qwen|qwq|deepseek|command-r|vicuna|"
    r"o[134]-(?:mini|preview|pro)|openai|anthropic)|"
    r"Claude|Gemini|Grok|LLaMA|Llama|Mistral"  # some are common words in lower case
)
_COMMON_WORDS = {"score", "rating", "label", "answer", "verdict", "grade", "correct", "result"}
"""Names of judges' columns that are not looked for in texts, where they are common words."""
_NO_SUBJECT = "responses"  # the subject of items whose subject is not known
_SHORTEST_NAME = 3  # a shorter one without a digit may be a common word, so it is not looked for
_MOST_HUMANS = 100  # to compute precision for: more change little, and time grows with the square
_INVITE_HOURS = 168.0  # hours for which annotators' links are valid: a week
_READING_OPTIONS = ("--judge", "--missing", "--sheet", "--show", "--subject", "--cluster")
"""Options on reading the file: with these alone, `evenhand label` continues a present study."""


@dataclass(frozen=True)
class StudyContent:
    """The content of a new study, as read from a file of items."""

    items: prompt_items.Items
    rubrics: list[Rubric]  # to ask on the items
    judge_ratings: pd.DataFrame | None  # None without a judge
    roles: list[tuple[str, str]]  # each role with its columns
    notes: Sequence[str] = ()  # sentences on how the file was read
    source: str = ""  # the file's name

    def import_judge(self, study: Study) -> int:
        """Store the judge's labels as a grader's; return their number."""
        if self.judge_ratings is None:
            return 0
        return import_ratings(study, self.judge_ratings, self.source)[0]

    @property
    def as_read(self) -> list[str]:
        """The notes, and a sentence on the roles of columns."""
        roles = "; ".join(f"{role}: {columns}" for role, columns in self.roles)
        return [*self.notes, written("items.taken", taken=roles)]

    def sentences(self, n_judged: int, folder: Path, sampled: int) -> list[str]:
        """Return `as_read`, and sentences on the study that was made and the judge's labels."""
        pairs = self.items.pairs
        counts = {"sampled": sampled, "total": len(pairs), "noun": prompts_noun(pairs)}
        lines = [*self.as_read, written("items.made", folder=folder, **counts)]
        if self.judge_ratings is not None:
            lines.append(written("items.judged", count=n_judged, rater=self.judge))
        return lines

    @property
    def judge(self) -> str:
        """The judge's rater id, "" without a judge."""
        return "" if self.judge_ratings is None else str(self.judge_ratings["rater_id"].iloc[0])


def read_content(source: Path | Table, options: ItemOptions) -> StudyContent:
    """Read a file or a table of items. Files named in its cells are looked for in its folder, or in
    the working folder for a table. Raises InputError if it is invalid, or without a question.
    """
    rows = _read_items(source, options)
    return _study_of_comparisons(rows) if rows.is_compared else _study_of_answers(rows)


@dataclass(frozen=True)
class ItemFile:
    """A file of items that were not checked against a question."""

    columns: Sequence[tuple[str, str]]  # each column with its first text
    show: Sequence[str]  # columns that raters would read
    roles: Sequence[tuple[str, str]]  # each role with its columns
    notes: Sequence[str] = ()  # sentences on how the file was read
    fault: str = ""  # a sentence if the roles are unclear


def look_at_items(source: Path, options: ItemOptions) -> ItemFile:
    """Return a file's columns and their roles. Raises InputError if it cannot be read."""
    rows = _read_items(source, options)
    table, notes = rows.table, rows.notes
    first_texts = [(str(column), shortened(str(table[column].iloc[0]))) for column in table]
    columns: prompt_items.ItemColumns | prompt_items.ComparisonColumns
    try:
        if rows.answer_columns and rows.is_compared:  # a rubric may compare what the rows lack
            columns = rows.comparison_columns(options.question)
        else:
            columns = rows.item_columns(table, options.question)
    except InputError as fault:
        return ItemFile(first_texts, list(rows.show), [], notes, fault=str(fault))
    return ItemFile(first_texts, list(columns.show), columns.roles(), notes)


@dataclass(frozen=True)
class _Rows:
    """The rows of a file of items, and what the user declared on them."""

    path: Path  # "items" for a table in memory
    table: pd.DataFrame
    notes: Sequence[str]  # sentences on how the file was read
    show: Sequence[str]  # columns that raters read, declared or of the file's tool; none: to infer
    cluster: str  # column of rows that belong together, likewise
    rubrics: list[Rubric]  # those named in the options
    options: ItemOptions

    @property
    def answer_columns(self) -> tuple[str, ...]:
        """The two columns of two answers in a row; none if rows have one answer."""
        return prompt_items.answer_columns(self.table, self.path.name, self.show)

    @property
    def is_compared(self) -> bool:
        """True if two answers of a row are compared: if a rubric compares, or if there are two, but
        not if the options ask about one answer and a column is named like one.
        """
        has_one = self.options.is_about_one and prompt_items.unsided_answers(self.table)
        has_two = bool(self.answer_columns)
        return (has_two and not has_one) or "comparison" in [rubric.unit for rubric in self.rubrics]

    def item_columns(self, table: pd.DataFrame, question: str) -> prompt_items.ItemColumns:
        """Return the columns of items by role; `table` has the rows, or criteria made of them."""
        subject, judge = ",".join(self.options.subject), self.options.judge
        roles = {"subject": subject, "cluster": self.cluster, "judge": judge, "question": question}
        return prompt_items.item_columns(table, self.path.name, show=self.show, **roles)

    def comparison_columns(self, question: str) -> prompt_items.ComparisonColumns:
        """Return the columns of comparisons by role. A tool names columns to `show`, and a
        `cluster`, for items with one answer; for comparisons only the options do.
        """
        options, answers = self.options, (self.answer_columns[0], self.answer_columns[1])
        roles = {"cluster": options.cluster, "judge": options.judge, "question": question}
        return prompt_items.comparison_columns(
            self.table, self.path.name, answers, show=options.show, subject=options.subject, **roles
        )


def _read_items(source: Path | Table, options: ItemOptions) -> _Rows:
    """Read the rows of items. Raises InputError if the options or the rows are invalid."""
    if options.question and options.rubric:
        raise InputError(written("items.ask"))
    if not options.question:
        of_question = ["options", "scale", "several", "level", "steps"]
        options.refuse(of_question, "goes with --question; a rubric has its own")
    rubrics = [load_rubric(name) for name in options.rubric]
    if isinstance(source, Path):
        path = source
        joins_votes = not options.is_about_one or "comparison" in [rub.unit for rub in rubrics]
        table_read = read_items(path, options.judge, compared=joins_votes, sheet=options.sheet)
    else:
        path, table_read = Path("items"), ItemTable(items_table(source, options.sheet))
    frame = table_read.table.map(bare_cell)  # a cell may be a provider's reply as JSON
    prompt_items.check_items_table(frame, path.name)
    if options.judge in frame:
        labels = fold(frame[options.judge])
        labels = labels.mask(labels.isin([*map(folded, options.missing)]), "")
        frame = frame.assign(**{options.judge: labels})
    elif not options.judge:
        options.refuse(["missing"], "goes with --judge")
    show, cluster = options.show or table_read.show, options.cluster or table_read.cluster
    return _Rows(path, frame, table_read.notes, show, cluster, rubrics, options)


def _study_of_answers(rows: _Rows) -> StudyContent:
    """Return the items, and the rubrics on them, of a file with one answer in a row."""
    name, options = rows.path.name, rows.options
    options.refuse(["steps"], "goes with two answers in a row, such as response_a, response_b")
    if not options.question and not rows.rubrics:
        raise InputError(written("items.ask"))
    frame = with_criteria(rows.table, name, has_ratings=False)
    # Raters read the columns that a question names.
    questions = " ".join([options.question, *(rubric.question for rubric in rows.rubrics)])
    columns = rows.item_columns(frame, questions)
    notes = [*rows.notes, *_hidden_note(columns.show, columns.hidden, options)]
    if options.each_turn:
        frame, columns = prompt_items.each_turn(frame, columns, name)
    items = prompt_items.make_items(frame, columns, name, rows.path.parent, rows.rubrics)
    if rows.rubrics:
        variables = {variable for rubric in rows.rubrics for variable in rubric.variables}
        blocks = zip(columns.show, items.blocks, strict=True)
        if hidden := [column for column, block in blocks if block.column not in variables]:
            notes.append(written("items.hidden_by_rubric", columns=", ".join(hidden)))
    rubrics = _with_kinds(rows.rubrics, items)
    if options.question:
        asked = asked_rubric(
            options.question,
            items.blocks,
            options=options.options,
            scale=options.scale,
            several=options.several,
            level=options.level or "",
            descriptions=options.descriptions,
        )
        rubrics = [asked]
        if options.options and not options.level and asked.level == "ordinal":
            spelling = ScaleOptions(in_python=options.in_python)
            notes.append(note_on_order(asked.categories, spelling))
        if asked.affirmative and not says_yes(options.options):
            notes.append(
                written("items.affirmative", option=asked.kind.name_of(*asked.affirmative))
            )
    ratings = None
    if items.judge_labels is not None:
        ratings = prompt_items.judge_ratings(items, _judge_rubric(rubrics), columns.judge, name)
    return StudyContent(items, rubrics, ratings, columns.roles(), notes, name)


def _study_of_comparisons(rows: _Rows) -> StudyContent:
    """Return the items, and the rubrics on them, of a file with two answers in a row."""
    name, options = rows.path.name, rows.options
    of_one = ["options", "scale", "several", "level", "each_turn"]
    options.refuse(of_one, "goes with one answer in a row; --steps with two")
    if not rows.answer_columns:
        raise InputError(
            f"{name}: comparisons need two answers in a row, in columns called response_a and "
            "response_b; these rows have one"
        )
    questions = " ".join([options.question, *(rubric.question for rubric in rows.rubrics)])
    columns = rows.comparison_columns(questions)
    notes = [*rows.notes, *_hidden_note(columns.show, columns.items.hidden, options)]
    items = prompt_items.make_comparisons(rows.table, columns, name, rows.path.parent, rows.rubrics)
    if options.question:
        steps = 3 if options.steps is None else options.steps
        rubrics = [asked_comparison(options.question, items.blocks, steps)]
    elif rows.rubrics:
        rubrics = _with_kinds(rows.rubrics, items)
        for rubric in rubrics:
            if "prompt" in rubric.variables and not columns.items.prompt:
                raise InputError(
                    f"{name}: rubric {rubric.name!r} shows a prompt, and no column is taken for "
                    "it; call one prompt, or leave --rubric out"
                )
    else:
        rubrics = [load_rubric("preference").showing(items.blocks)]
    ratings = None
    if items.judge_labels is not None:
        ratings = prompt_items.comparison_judge(items, columns, _judge_rubric(rubrics), name)
    return StudyContent(items, rubrics, ratings, columns.roles(), notes, name)


def _hidden_note(visible: Sequence[str], hidden: Sequence[str], options: ItemOptions) -> list[str]:
    """Return a sentence on texts that raters will not read, if any, and how to show them."""
    if not hidden:
        return []
    columns = [*visible, *hidden]
    show = f"show={columns}" if options.in_python else f"--show {shlex.quote(','.join(columns))}"
    return [written("items.hidden", columns=", ".join(hidden), show=show)]


def _with_kinds(rubrics: Sequence[Rubric], items: prompt_items.Items) -> list[Rubric]:
    """Return the rubrics with blocks of the kinds that the items' conversations and images need."""
    kinds = {block.column: str(block.kind) for block in items.blocks if block.kind}
    kinds |= dict.fromkeys(items.images, "image")
    return [rubric.with_kinds(kinds) for rubric in rubrics]


def _judge_rubric(rubrics: Sequence[Rubric]) -> Rubric:
    """Return the rubric of a judge's labels. Raises InputError if there are several."""
    if len(rubrics) > 1:
        raise InputError("--judge goes with one rubric: a column holds the labels of one")
    return rubrics[0]


# ---- names of models that annotators would see --------------------------------------------------


def names_shown(study: Study, option: str = "") -> list[str]:
    """Return sentences on names of the study's subjects and judges, and of known models, that
    annotators would see in items' texts or in headings. `option` is one that hides columns, or "".
    """
    with study.store.read() as connection:
        judges = [name for name, kind in rater_kinds(connection).items() if kind == "model"]
    subjects = [name for name in study.store.subjects() if name != _NO_SUBJECT]
    # In a text a judge's column is named before its label, as in "quality: 3".
    patterns = [rf"{re.escape(name)}(?=\s*[:=])" for name in judges if name not in _COMMON_WORDS]
    first_names = _first_names(study, _name_pattern(subjects, further=patterns))
    heading_pattern = _name_pattern([*subjects, *judges], further=[])
    labels = [block.label for rubric in study.labelled_rubrics() for block in rubric.blocks]
    headings = dict.fromkeys(label for label in labels if heading_pattern.search(label))
    sentences = []
    if first_names:
        item, first_name = next(iter(first_names.items()))
        counts = {"count": len(first_names), "total": len(study.store.pairs())}
        sentences.append(written("items.names_in_texts", **counts, first=item, what=first_name))
    if headings:
        sentences.append(written("items.names_in_headings", headings=", ".join(headings)))
    if sentences and option:
        sentences.append(written("items.names_left_out", option=option))
    return sentences


def _name_pattern(names: list[str], further: list[str]) -> re.Pattern[str]:
    """Return a pattern of whole words: these names as they are spelled (very short ones are left
    out), `further` patterns, and `_MODELS`.
    """
    searched = [name for name in names if len(name) >= _SHORTEST_NAME or re.search(r"\d", name)]
    escaped = map(re.escape, sorted(searched, key=len, reverse=True))  # "gpt-4o" before "gpt-4"
    alternatives = "|".join([*escaped, *further, _MODELS])
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w])")


def _first_names(study: Study, pattern: re.Pattern[str]) -> dict[str, str]:
    """Return by item the first name in its texts with its column, such as "gpt-4o in prompt"."""
    first_names: dict[str, str] = {}
    for item, column, cell in shown_texts(study):
        text = cell if (image := image_of(cell)) is None else image.alt
        if item not in first_names and (match := pattern.search(text)):
            first_names[item] = f"{match[0]} in {column}"
    return first_names


def shown_texts(study: Study) -> Iterator[tuple[str, str, str]]:
    """Yield the item, the column and the text, or image, of every cell that the rubrics show."""
    variables = {name for rubric in study.labelled_rubrics() for name in rubric.variables}
    # A pair's column prompt_a or prompt_b is the variable `prompt` of a rubric on one side.
    variable_of = {f"{name}_{side}": name for name in ("prompt", "stance") for side in "ab"}
    pairs, responses = study.store.pairs(), study.store.responses()
    for item, response in zip(responses["pair_id"], responses["response"], strict=True):
        yield item, "response", response
    for column in pairs.columns.drop(["pair_id", "sample_position"]):
        variable = variable_of.get(column, column)
        if column in variables or variable in variables:
            for item, text in zip(pairs["pair_id"], pairs[column], strict=True):
                yield item, variable, text


# ---- the study and its preview ------------------------------------------------------------------


def check_raters_and_seed(raters: int, seed: int) -> None:
    """Raise InputError for a number of annotators or a seed that a new study cannot have."""
    if not 1 <= raters <= study_toml.MOST_RATERS:
        raise InputError(f"--raters must be 1 to {study_toml.MOST_RATERS:,}, not {raters:,}")
    if seed < 0:
        raise InputError("--seed must be 0 or more")


def make_study(folder: Path, plan: StudyPlan, content: StudyContent | None = None) -> int:
    """Make a study, with the first entries of its log and the labels of its items' judge; it
    appears complete or not at all. Return the number of the judge's labels.
    """
    n_judged = 0

    def complete(study: Study) -> None:
        nonlocal n_judged
        note(study, "study", Path(folder).name)
        note_edits(study, operator())
        n_judged = content.import_judge(study) if content else 0

    create_study(folder, plan, complete)
    return n_judged


def _new_study(
    source: Path | Table, folder: Path, options: LabelOptions
) -> tuple[StudyContent, int]:
    """Make a study of items; return what was read, and the number of the judge's labels."""
    raters = 1 if options.raters is None else options.raters
    check_raters_and_seed(raters, options.seed)
    content = read_content(source, options)
    plan = StudyPlan(
        items=content.items,
        rubrics=content.rubrics,
        sample=options.sample,
        stratify=options.stratify,
        seed=options.seed,
        raters_per_unit=raters,
    )
    return content, make_study(folder, plan, content)


@dataclass(frozen=True)
class StudyPreview:
    """A preview of a study."""

    sampled: int  # number of prompts in the sample
    total: int  # number of all prompts
    noun: str  # for the prompts
    load: tuple[RubricLoad, ...]  # annotators' work
    precision: tuple[str, ...]  # sentences on the precision of the sample
    display: str  # sentence on how responses are displayed, "" if there are none yet
    names: tuple[str, ...]  # sentences on names of models that annotators would see
    markup: str  # the setting `display`
    first: tuple[Rubric, Mapping[str, str]] | None  # first rubric, first item's texts by variable
    read: tuple[str, ...] = ()  # sentences on the file of items


def preview_of(study: Study) -> StudyPreview:
    """Return the preview of a study, as printed by `evenhand new`."""
    from evenhand.analysis.planning import study_precision

    pairs = study.store.pairs()
    sampled = pairs[pairs["sample_position"].notna()]
    cluster = study.config.analysis.cluster
    noun = prompts_noun(pairs)
    first = next(iter(SessionDesign(study).questions.values()), None)
    rubrics = study.labelled_rubrics()
    levels = {rubric.level for rubric in rubrics}
    n_subjects = len(study.config.annotation.subjects or study.store.subjects()) or 1
    precision = study_precision(
        pairs=sampled[cluster].nunique() if cluster in sampled else len(sampled),
        subjects=1 if noun == "items" else n_subjects,  # an item is one subject's answer
        humans=min(study.config.annotation.raters_per_unit, _MOST_HUMANS),
        margin=study.config.analysis.margin,
        rule=study.config.decision,
        noun=cluster_noun(pairs, cluster),
        points=2 if "nominal" in levels else min((len(r.categories) for r in rubrics), default=2),
    )
    return StudyPreview(
        sampled=len(sampled),
        total=len(pairs),
        noun=noun,
        load=workload(study),
        precision=tuple(precision),
        display=display_of(study),
        names=tuple(names_shown(study, "--show" if prompt_items.ITEM_ID in pairs else "")),
        markup=study.config.annotation.display,
        first=None if first is None else (first.rubric, study.values(first.rubric, first.unit_id)),
    )


def create_and_preview(folder: Path, plan: StudyPlan) -> StudyPreview:
    """Make a study and return its preview. Raises InputError, with nothing written."""
    make_study(folder, plan)
    with open_study(folder) as study:
        return preview_of(study)


def create_items(folder: Path, source: Path, options: LabelOptions) -> StudyPreview:
    """Make a study of items and return its preview. Raises InputError, with nothing written."""
    content, _ = _new_study(source, folder, options)
    with open_study(folder) as study:
        return replace(preview_of(study), read=tuple(content.as_read))


def preview_only(create: Callable[..., StudyPreview], *arguments: object) -> StudyPreview:
    """Return the preview of a temporary study that `create` makes with these arguments."""
    with tempfile.TemporaryDirectory(prefix="evenhand-new-") as parent:
        return create(Path(parent) / "study", *arguments)


def work_lines(study: Study, usual: int) -> list[str]:
    """Return sentences on the number of sampled prompts, with a warning if there are fewer in all
    than the `usual` number; on annotators' work and pay; and on the precision of the sample.
    """
    preview, config = preview_of(study), study.config
    counts = {"total": preview.total, "noun": preview.noun}
    lines = [written("new.sampled", sampled=preview.sampled, seed=config.seed, **counts)]
    if preview.total < usual:
        lines.append(written("reproduce.few", usual=usual, **counts))
    labels = sum(load.judgments for load in preview.load)
    hours = sum(load.hours for load in preview.load)
    raters = config.annotation.raters_per_unit
    lines.append(written("reproduce.work", labels=labels, hours=hours, raters=raters))
    if pay := config.pay:
        units_per_rater = config.annotation.units_per_rater
        people = math.ceil(labels / units_per_rater) if units_per_rater else 0  # 0: not known
        costs = {"amount": pay.complete, "currency": pay.currency, "people": people}
        key = "pay" if units_per_rater else "pay_each"
        lines.append(written(f"reproduce.{key}", total=people * pay.complete, **costs))
    return [*lines, *preview.precision]


def display_of(study: Study) -> str:
    """Return a sentence on the display of responses and their share of Markdown; "" for none."""
    texts = study.store.responses()["response"]
    if texts.empty:
        return ""
    is_markdown = study.config.annotation.display == "markdown"
    share = round(100 * markdown_share(texts))
    return written("display.markdown" if is_markdown else "display.text", share=share)


def folder_next_to(present: Path, name: str) -> Path:
    """Return the folder `name` next to that of the `present` study, for a new study. Raises
    InputError if the name is not plain, the folder exists, or its parent cannot be written.
    """
    if not study_toml.STUDY_NAME.fullmatch(name):
        raise InputError(
            "a study's name is 1 to 64 letters, digits, hyphens or underscores, and begins with a "
            "letter or digit"
        )
    folder = present.resolve().parent / name
    if folder.exists() or folder.is_symlink():  # a dangling link, too
        raise InputError(f"there is a folder {name!r} beside this study already; choose another")
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        raise InputError("nothing can be written beside this study; make the new one elsewhere")
    return folder


def start_study(folder: Path) -> Path:
    """Return the placeholder study of a `folder` without studies, made if needed: on its page *New
    study* a lead makes the first one. It is `study_toml.START` in the folder, paused, with one
    item. Raises InputError if the folder cannot be made.
    """
    start = folder / study_toml.START
    if not start.exists():
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: {str(error.strerror).lower()}; name another") from None
        options = LabelOptions(question="-", options=["yes", "no"])
        _new_study(pd.DataFrame({"response": ["-"]}), start, options)
        with open_study(start) as study:
            pause(study.store, "", operator())
    return start


# ---- items to label -----------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Labelling(Printable):
    """A study to label: its folder, annotators' `links`, and the `command` that serves their page.
    `notes` list the roles of columns and what was made of the items.
    """

    folder: Path
    links: Sequence[str]
    port: int
    notes: Sequence[str] = ()

    @property
    def command(self) -> str:
        """The command that serves the page until it is stopped."""
        return shlex.join(["evenhand", "annotate", str(self.folder), "--port", str(self.port)])

    @property
    def links_heading(self) -> str:
        """The heading above the links."""
        return written("items.links" if len(self.links) > 1 else "items.link")

    @property
    def lines(self) -> list[Line]:
        """The links, a warning that only this machine can open them, and the command."""
        command = written("items.served", command=self.command)
        return [self.links_heading, *self.links, written("items.here_only"), command]

    def serve(self) -> subprocess.Popen[bytes]:
        """Serve the page in another process, which ends with this one or by `terminate()`."""
        command = [sys.executable, "-P", "-m", *shlex.split(self.command)]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
        atexit.register(process.terminate)
        return process


def label_items(
    source: Path | Table, folder: Path, options: LabelOptions, *, port: int, address: str = ""
) -> Labelling:
    """Make a study of the rows of a file or a table, or continue the one in the folder, and make a
    link for each annotator to `address` or to this machine's port. Raises InputError if the items
    are invalid or without a question, or if the present study has other items or questions.
    """
    hiding_option = ""
    if (folder / study_toml.FILE_NAME).is_file():
        notes = [written("items.goes_on", folder=folder), *_continue(source, folder, options)]
    else:
        content, n_judged = _new_study(source, folder, options)
        notes = content.sentences(n_judged, folder, study_toml.read_config(folder).sample.pairs)
        hiding_option = "show=" if options.in_python else "--show"
    with open_study(folder) as study:
        notes += names_shown(study, hiding_option)
        raters = [f"rater-{n + 1}" for n in range(study.config.annotation.raters_per_unit)]
        invites = make_invites(study, raters, hours=_INVITE_HOURS)
        note(study, "invite", detail=f"made: {len(raters)}")
    base_url = address or f"http://localhost:{port}/"
    links = [f"{base_url}?invite={invite.token}" for invite in invites]
    return Labelling(folder, links, port, notes)


def _continue(source: Path | Table, folder: Path, options: LabelOptions) -> list[str]:
    """Compare the present study with a file of items, and store the judge's labels that it lacks.
    Return sentences on new labels, or on items that differ, or on why none could be compared.
    Raises InputError if a question or a rubric is declared and the study is another one, or if
    another option than those on reading the file is given.
    """
    settled = f"is settled in {folder}, which is there already; leave it out, or name a new folder"
    with open_study(folder) as study:
        has_questions = bool(options.question or options.rubric)
        item_options = options
        if not has_questions:  # then those of the study are asked
            for option in options.given_options:
                if option not in _READING_OPTIONS:
                    raise InputError(f"{option} {settled}")
            rubrics = [str(folder / RUBRICS_FOLDER / f"{name}.toml") for name in study.rubrics]
            by_turn = prompt_items.CONVERSATION_ID in study.store.pairs()
            item_options = replace(options, rubric=rubrics, each_turn=by_turn)
        try:
            content = read_content(source, item_options)
        except InputError as fault:
            if has_questions or options.judge:
                raise
            return [written("items.not_compared", reason=fault)]
        differences = _differences(study, content.items)
        config, hashes = study.config, {rubric.hash for rubric in study.rubrics.values()}
        is_same = hashes == {rubric.hash for rubric in content.rubrics}
        is_same &= options.sample in (None, config.sample.pairs) and options.seed == config.seed
        is_same &= options.raters in (None, config.annotation.raters_per_unit)
        if has_questions and (differences or not is_same):
            raise InputError(" ".join([f"what is asked for {settled}", *differences]))
        if differences:
            return differences
        n_new = content.import_judge(study)
        return [written("items.judged_now", count=n_new, rater=content.judge)] if n_new else []


def _differences(study: Study, file_items: prompt_items.Items) -> list[str]:
    """Return sentences on items of a file that a study lacks, or has with another text."""
    file_texts: dict[str, set[str]] = {}  # by item
    for table in (file_items.pairs, file_items.responses):
        for item, *cells in table.itertuples(index=False):  # the id comes first in both
            file_texts.setdefault(str(item), set()).update(map(str, cells))
    present = set(study.store.pairs()["pair_id"])
    new_items = [item for item in file_texts if item not in present]
    shown = [(item, text) for item, _, text in shown_texts(study) if item in file_texts]
    changed_items = [item for item, text in shown if text not in file_texts[item]]
    # Two answers with their sides swapped are the same texts, but another item.
    columns = ["pair_id", "side", "response"]
    answers, file_answers = (
        {tuple(map(str, row)) for row in table[columns].itertuples(index=False)}
        for table in (study.store.responses(), file_items.responses)
    )
    swapped = {(item, swap_side(side), text) for item, side, text in file_answers - answers}
    changed_items += sorted(item for item, _, _ in swapped & answers)
    return [
        written(f"items.{key}", count=len(set(items)), first=items[0])
        for key, items in (("more", new_items), ("changed", changed_items))
        if items
    ]
