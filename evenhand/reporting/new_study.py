"""A new study, as `evenhand new`, `evenhand label` and the page *New study* make it: its material
from a file of items, its preview, the names that annotators would see, and links for them.
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
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand.errors import InputError
from evenhand.exchange.readers.reading import read_items
from evenhand.exchange.readers.rows import ItemTable
from evenhand.exchange.readers.source import reply_text
from evenhand.reporting.noting import note, note_edits, operator
from evenhand.reporting.panel import Line, Shown
from evenhand.reporting.ratings_file.criteria import with_criteria
from evenhand.reporting.ratings_file.dataframes import items_table
from evenhand.reporting.ratings_file.declared import ItemOptions, LabelOptions, ScaleOptions
from evenhand.reporting.ratings_file.labels import read_as_ordered
from evenhand.rubrics import Rubric, asked_comparison, asked_rubric, load_rubric
from evenhand.rubrics.rendering import image_of
from evenhand.study import Study, create_study, open_study
from evenhand.study.access import make_invites
from evenhand.study.creation import StudyPlan
from evenhand.study.desk.claims import SessionDesign, pause
from evenhand.study.lead.imports import import_ratings
from evenhand.study.lead.progress import RubricLoad, workload
from evenhand.study.prompts import items as item_tables
from evenhand.study.prompts.items import ComparisonColumns, ItemColumns, Items
from evenhand.study.prompts.pairs import cluster_noun, markdown_share, prompts_noun
from evenhand.study.settings import study_toml
from evenhand.study.store.store import rater_kinds
from evenhand.study.tables.columns import fold, folded, shortened
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.ratings_file.declared import Table


@dataclass(frozen=True)
class ItemStudy:
    """A study of an items file: items, the rubrics that are asked, the judge's ratings, the roles
    of columns, and notes on what was read.
    """

    items: Items
    rubrics: list[Rubric]
    judged: pd.DataFrame | None
    taken: list[tuple[str, str]]
    notes: Sequence[str] = ()
    source: str = ""

    def import_judge(self, study: Study) -> int:
        """Store the judge's labels as a grader's; return how many."""
        if self.judged is None:
            return 0
        return import_ratings(study, self.judged, self.source)[0]

    @property
    def as_read(self) -> list[str]:
        """Sentences on what was read, and what the columns were taken for."""
        taken = "; ".join(f"{role}: {columns}" for role, columns in self.taken)
        return [*self.notes, written("items.taken", taken=taken)]

    def sentences(self, judged: int, folder: Path, sampled: int) -> list[str]:
        """Sentences on what the columns were taken for, and what was made of them."""
        pairs = self.items.pairs
        counts = {"sampled": sampled, "total": len(pairs), "noun": prompts_noun(pairs)}
        made = [*self.as_read, written("items.made", folder=folder, **counts)]
        if self.judged is not None:
            made.append(written("items.judged", count=judged, rater=self.judge))
        return made

    @property
    def judge(self) -> str:
        """The judge's id as a rater."""
        return "" if self.judged is None else str(self.judged["rater_id"].iloc[0])


def item_study(source: Path | Table, options: ItemOptions) -> ItemStudy:
    """Read a file or a table of items; files that its cells name are in its folder, or the working
    folder. Raises InputError where it is bad, or where it is not said what to ask.
    """
    path, held, named = _read(source, options)
    answers = item_tables.answer_columns(held.table, path.name, options.show or held.show)
    if _is_compared(held, answers, options, named):
        return _comparisons(path, held, answers, named, options)
    return _single_answers(path, held, named, options)


@dataclass(frozen=True)
class ItemFile:
    """A file of items before anything is asked of it: each column with its first text, the columns
    that raters would read, the roles of columns as (role, columns), and notes. `fault` says what
    is not clear.
    """

    columns: Sequence[tuple[str, str]]
    show: Sequence[str]
    taken: Sequence[tuple[str, str]]
    notes: Sequence[str] = ()
    fault: str = ""


def look_at_items(source: Path, options: ItemOptions) -> ItemFile:
    """Return what a file of items holds. Raises InputError where it cannot be read."""
    path, held, named = _read(source, options)
    frame, name, shown = held.table, path.name, options.show or held.show
    texts = [(str(column), shortened(str(frame[column].iloc[0]))) for column in frame]
    roles: dict[str, Any] = {"cluster": options.cluster, "judge": options.judge}
    roles["question"] = options.question
    try:
        answers = item_tables.answer_columns(frame, name, shown)
        columns: ItemColumns | ComparisonColumns
        if answers and _is_compared(held, answers, options, named):
            roles |= {"show": options.show, "subject": options.subject}
            columns = item_tables.comparison_columns(frame, name, (answers[0], answers[1]), **roles)
            show = columns.show
        else:
            roles["cluster"] = roles["cluster"] or held.cluster
            subject = ",".join(options.subject)
            columns = item_tables.item_columns(frame, name, show=shown, subject=subject, **roles)
            show = list(columns.show)
    except InputError as fault:
        return ItemFile(texts, list(shown), [], held.notes, str(fault))
    return ItemFile(texts, show, columns.roles(), held.notes)


def _read(source: Path | Table, options: ItemOptions) -> tuple[Path, ItemTable, list[Rubric]]:
    """Return what a file holds, under its path, and the rubrics that are named."""
    if options.question and options.rubric:
        raise InputError(written("items.ask"))
    if not options.question:
        asked = ["options", "scale", "several", "level", "steps"]
        options.refuse(asked, "goes with --question; a rubric has its own")
    named = [load_rubric(name) for name in options.rubric]
    if isinstance(source, Path):
        path, compared = source, _compares(named) or not options.of_one
        held = read_items(path, options.judge, compared=compared, sheet=options.sheet)
    else:
        path, held = Path("items"), ItemTable(items_table(source, options.sheet))
    held = replace(held, table=held.table.map(reply_text))
    item_tables.check_items_table(held.table, path.name)
    if options.judge in held.table:
        labels = fold(held.table[options.judge])
        labels = labels.mask(labels.isin([*map(folded, options.missing)]), "")
        held = replace(held, table=held.table.assign(**{options.judge: labels}))
    elif not options.judge:
        options.refuse(["missing"], "goes with --judge")
    return path, held, named


def _compares(named: Sequence[Rubric]) -> bool:
    return any(rubric.unit == "comparison" for rubric in named)


def _is_compared(
    held: ItemTable, answers: Sequence[str], options: ItemOptions, named: Sequence[Rubric]
) -> bool:
    """Return True if two answers are compared: what is asked of one response is not asked of two
    in the same row.
    """
    of_one = item_tables.has_one_answer(held.table) and options.of_one
    return _compares(named) or (bool(answers) and not of_one)


def _single_answers(
    path: Path, held: ItemTable, named: list[Rubric], options: ItemOptions
) -> ItemStudy:
    options.refuse(["steps"], "goes with two answers in a row, such as response_a, response_b")
    if not options.question and not named:
        raise InputError(written("items.ask"))
    name, show = path.name, options.show or held.show
    frame = with_criteria(held.table, name, rated=False)
    subject, cluster = ",".join(options.subject), options.cluster or held.cluster
    roles = {"subject": subject, "cluster": cluster, "judge": options.judge}
    roles["question"] = " ".join([options.question, *(declared.question for declared in named)])
    columns = item_tables.item_columns(frame, name, show=show, **roles)
    notes = [*held.notes, *_hidden(columns.show, columns.hidden, options)]
    if options.each_turn:
        frame, columns = item_tables.each_turn(frame, columns, name)
    items = item_tables.make_items(frame, columns, name, path.parent, named)
    variables = {variable for rubric in named for variable in rubric.variables}
    pairs = zip(columns.show, items.blocks, strict=True)
    unseen = [column for column, block in pairs if named and block.column not in variables]
    if unseen:
        notes.append(written("items.hidden_by_rubric", columns=", ".join(unseen)))
    rubrics = _shown_as_they_are(named, items)
    if options.question:
        rubric = asked_rubric(
            options.question,
            items.blocks,
            options=options.options,
            scale=options.scale,
            several=options.several,
            level=options.level or "",
            descriptions=options.descriptions,
        )
        rubrics = [rubric]
        if options.options and not options.level and rubric.level == "ordinal":
            spelling = ScaleOptions(in_python=options.in_python)
            notes.append(read_as_ordered(rubric.categories, spelling))
    judged = None
    if items.judge_labels is not None:
        judged = item_tables.judge_ratings(items, _the_one(rubrics), columns.judge, name)
    return ItemStudy(items, rubrics, judged, columns.roles(), notes, name)


def _comparisons(
    path: Path, held: ItemTable, answers: Sequence[str], named: list[Rubric], options: ItemOptions
) -> ItemStudy:
    """Make comparisons of a file with two answers in a row; without a question or a rubric the one
    called preference is asked.
    """
    name, frame = path.name, held.table
    of_one = ["options", "scale", "several", "level", "each_turn"]
    options.refuse(of_one, "goes with one answer in a row; --steps with two")
    if not answers:
        raise InputError(
            f"{name}: comparisons need two answers in a row, in columns called response_a and "
            "response_b; these rows have one"
        )
    columns = item_tables.comparison_columns(
        frame,
        name,
        (answers[0], answers[1]),
        show=options.show,
        subject=options.subject,
        cluster=options.cluster,
        judge=options.judge,
        question=" ".join([options.question, *(declared.question for declared in named)]),
    )
    notes = [*held.notes, *_hidden(columns.show, columns.items.hidden, options)]
    items = item_tables.make_comparisons(frame, columns, name, path.parent, named)
    if options.question:
        steps = 3 if options.steps is None else options.steps
        rubrics = [asked_comparison(options.question, items.blocks, steps)]
    elif named:
        rubrics = _shown_as_they_are(named, items)
        for rubric in rubrics:
            if "prompt" in rubric.variables and not columns.items.prompt:
                raise InputError(
                    f"{name}: rubric {rubric.name!r} shows a prompt, and no column is taken for "
                    "it; call one prompt, or leave --rubric out"
                )
    else:
        rubrics = [load_rubric("preference").showing(items.blocks)]
    judged = None
    if items.judge_labels is not None:
        judged = item_tables.comparison_judge(items, columns, _the_one(rubrics), name)
    return ItemStudy(items, rubrics, judged, columns.roles(), notes, name)


def _hidden(shown: Sequence[str], hidden: Sequence[str], options: ItemOptions) -> list[str]:
    """A sentence on texts that raters will not read, and the option that shows them."""
    if not hidden:
        return []
    every = [*shown, *hidden]
    show = f"show={every}" if options.in_python else f"--show {shlex.quote(','.join(every))}"
    return [written("items.hidden", columns=", ".join(hidden), show=show)]


def _shown_as_they_are(rubrics: Sequence[Rubric], items: Items) -> list[Rubric]:
    """The rubrics with conversations in turns, and images as such."""
    kinds = {block.column: str(block.kind) for block in items.blocks if block.kind}
    kinds |= dict.fromkeys(items.images, "image")
    return [rubric.with_kinds(kinds) for rubric in rubrics]


def _the_one(rubrics: Sequence[Rubric]) -> Rubric:
    if len(rubrics) > 1:
        raise InputError("--judge goes with one rubric: a column holds the labels of one")
    return rubrics[0]


_VERSION = r"\d(?:[\w.-]*\w)?"
_MODELS = (
    rf"(?i:chat-?gpt|(?:gpt|llama|gemini|grok|phi|alpaca)-?{_VERSION}|claude-\w[\w.-]*\w|gemma|"
    r"codellama|mistral-\w+|ministral|magistral|mixtral|qwen|qwq|deepseek|command-r|vicuna|"
    r"o[134]-(?:mini|preview|pro)|openai|anthropic)|"
    r"Claude|Gemini|Grok|LLaMA|Llama|Mistral"  # in small letters some are words
)
"""Names of families of models, and of those who make them."""
_WORDS = {"score", "rating", "label", "answer", "verdict", "grade", "correct", "result"}
"""Names of judges' columns that texts hold for other reasons."""
_NO_SUBJECT = "responses"  # the subject of items of which none is known
_SHORTEST = 3


def names_shown(study: Study, option: str = "") -> list[str]:
    """Return sentences on items whose shown texts, and on headings that, hold the name of a model,
    of a subject of the study or of a judge; `option` is what leaves a column out, "" if none does.
    """
    with study.store.read() as connection:
        judges = [name for name, kind in rater_kinds(connection).items() if kind == "model"]
    subjects = [name for name in study.subjects() if name != _NO_SUBJECT]
    in_texts = _pattern(
        subjects, [rf"{re.escape(name)}(?=\s*[:=])" for name in judges if name not in _WORDS]
    )
    in_headings = _pattern([*subjects, *judges], [])
    items: dict[str, str] = {}
    for item, column, cell in shown_texts(study):
        image = image_of(cell)
        text = cell if image is None else image.alt
        if item not in items and (name := in_texts.search(text)):
            items[item] = f"{name[0]} in {column}"
    blocks = [block for rubric in study.labelled_rubrics() for block in rubric.blocks]
    headings = dict.fromkeys(b.label for b in blocks if in_headings.search(b.label))
    sentences = []
    if items:
        first, what = next(iter(items.items()))
        counts = {"count": len(items), "total": len(study.store.pairs())}
        sentences.append(written("items.names_in_texts", **counts, first=first, what=what))
    if headings:
        sentences.append(written("items.names_in_headings", headings=", ".join(headings)))
    if sentences and option:
        sentences.append(written("items.names_left_out", option=option))
    return sentences


def _pattern(names: list[str], others: list[str]) -> re.Pattern[str]:
    """A pattern of whole words; letter case counts in the names, but not in those of models."""
    exact = [re.escape(name) for name in names if len(name) >= _SHORTEST or re.search(r"\d", name)]
    either = "|".join([*sorted(exact, key=len, reverse=True), *others, _MODELS])
    return re.compile(rf"(?<![\w-])(?:{either})(?![\w])")


def shown_texts(study: Study) -> Iterator[tuple[str, str, str]]:
    """Yield the item, the column and the text, or image, of every cell that the rubrics show."""
    shown = {name for rubric in study.labelled_rubrics() for name in rubric.variables}
    sides = {f"{name}_{side}": name for name in ("prompt", "stance") for side in "ab"}
    pairs, responses = study.store.pairs(), study.store.responses()
    for item, text in zip(responses["pair_id"], responses["response"], strict=True):
        yield item, "response", text
    for column in pairs.columns.drop(["pair_id", "sample_position"]):
        if column in shown or sides.get(column) in shown:
            for item, text in zip(pairs["pair_id"], pairs[column], strict=True):
                yield item, sides.get(column, column), text


_MOST_HUMANS = 100
"""More raters of a unit hardly narrow an interval, and time grows with their square."""


def check_numbers(raters: int, seed: int) -> None:
    """Raise InputError for a number of annotators or a seed that a new study cannot have."""
    if not 1 <= raters <= study_toml.MOST_RATERS:
        raise InputError(f"--raters must be 1 to {study_toml.MOST_RATERS:,}, not {raters:,}")
    if seed < 0:
        raise InputError("--seed must be 0 or more")


@dataclass(frozen=True)
class StudyPreview:
    """The number of prompts sampled and in all, the noun for them, the work for people, sentences
    on what the sample can decide, how responses are shown (empty where there are none yet), names
    that annotators would see, and sentences on how a file of items was `read`.
    """

    sampled: int
    total: int
    noun: str
    load: tuple[RubricLoad, ...]
    precision: tuple[str, ...]
    display: str
    names: tuple[str, ...]
    markup: str
    first: tuple[Rubric, Mapping[str, str]] | None
    """The first item's texts by their variables, and the first rubric by which it is rated."""
    read: tuple[str, ...] = ()


def make_study(folder: Path, plan: StudyPlan, items: ItemStudy | None = None) -> int:
    """Make a study, with the first entries of its log and the labels of the judge of its `items`;
    it appears whole or not at all. Return the number of these labels.
    """
    judged = 0

    def complete(study: Study) -> None:
        nonlocal judged
        note(study, "study", Path(folder).name)
        note_edits(study, operator())
        judged = items.import_judge(study) if items else 0

    create_study(folder, plan, complete)
    return judged


def preview_of(study: Study) -> StudyPreview:
    """Return the preview of a study, as printed by `evenhand new`."""
    from evenhand.analysis.planning import study_precision

    pairs = study.store.pairs()
    sampled = pairs[pairs["sample_position"].notna()]
    cluster = study.config.analysis.cluster
    clustered = cluster in sampled  # prompts on one thing resemble one another
    noun, first = prompts_noun(pairs), next(iter(SessionDesign(study).questions.values()), None)
    answered = len(study.config.annotation.subjects or study.subjects()) or 1
    precision = study_precision(
        pairs=sampled[cluster].nunique() if clustered else len(sampled),
        subjects=1 if noun == "items" else answered,  # an item is one subject's answer
        humans=min(study.config.annotation.raters_per_unit, _MOST_HUMANS),
        margin=study.config.analysis.margin,
        rule=study.config.decision,
        noun=cluster_noun(pairs, cluster),
    )
    return StudyPreview(
        len(sampled),
        len(pairs),
        noun,
        workload(study),
        tuple(precision),
        display_of(study),
        tuple(names_shown(study, "--show" if item_tables.ITEM_ID in pairs else "")),
        study.config.annotation.display,
        None if first is None else (first.rubric, study.values(first.rubric, first.unit_id)),
    )


def work_lines(study: Study, usual: int) -> list[str]:
    """Say how many prompts are sampled, and whether that is fewer than `usual`; what annotators
    have to do and what they are to be paid; and what the sample can decide.
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
        most = config.annotation.units_per_rater
        people = math.ceil(labels / most) if most else 0
        owed = {"amount": pay.complete, "currency": pay.currency, "people": people}
        name = "pay" if most else "pay_each"
        lines.append(written(f"reproduce.{name}", total=people * pay.complete, **owed))
    return [*lines, *preview.precision]


def display_of(study: Study) -> str:
    """Return a sentence on how responses are shown, and on the share of them written in
    Markdown.
    """
    texts = study.store.responses()["response"]
    if texts.empty:
        return ""
    is_markdown = study.config.annotation.display == "markdown"
    share = round(100 * markdown_share(texts))
    return written("display.markdown" if is_markdown else "display.text", share=share)


def preview_only(create: Callable[..., StudyPreview], *material: object) -> StudyPreview:
    """Return the preview of a study that is made only for it, by `create_and_preview` or
    `create_items`, and then removed. Raises InputError where it could not be made.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-new-") as home:
        return create(Path(home) / "study", *material)


def folder_beside(present: Path, name: str) -> Path:
    """Return the folder `name` next to that of the `present` study, where a new one may be made.

    Raises InputError where the name is not a plain one, the folder exists, or its parent cannot be
    written.
    """
    if not study_toml.STUDY_NAME.fullmatch(name):
        raise InputError(
            "a study's name is 1 to 64 letters, digits, hyphens or underscores, and begins with a "
            "letter or digit"
        )
    folder = present.resolve().parent / name
    if folder.exists() or folder.is_symlink():  # also a link that leads nowhere
        raise InputError(f"there is a folder {name!r} beside this study already; choose another")
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        raise InputError("nothing can be written beside this study; make the new one elsewhere")
    return folder


def start_study(folder: Path) -> Path:
    """Return the folder of the study whose page New study makes the first one in a `folder` that
    has none: `study_toml.START` in it, paused, with one item. Raises InputError where the folder
    cannot be made.
    """
    start = folder / study_toml.START
    if not start.exists():
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: {str(error.strerror).lower()}; name another") from None
        options = LabelOptions(question="-", options=["yes", "no"])
        _make(pd.DataFrame({"response": ["-"]}), start, options)
        with open_study(start) as study:
            pause(study.store, "", operator())
    return start


def create_and_preview(folder: Path, plan: StudyPlan) -> StudyPreview:
    """Make a study, and return its preview. Raises InputError, with nothing written, where a file
    is bad.
    """
    make_study(folder, plan)
    with open_study(folder) as study:
        return preview_of(study)


# ---- rows of a file, and the links of those who label them ---------------------------------------


@dataclass(frozen=True, repr=False)
class Labelling(Shown):
    """A study to label: its folder, the `links` of those who do, and the `command` that serves the
    page behind them. `notes` list what the columns were taken for, and what was made of the items.
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
        """The links, who can open them, and the command that serves their page."""
        served = written("items.served", command=self.command)
        return [self.links_heading, *self.links, written("items.here_only"), served]

    def serve(self) -> subprocess.Popen[bytes]:
        """Serve the page in a process of its own, which ends with this one or by `terminate()`."""
        words = ["annotate", str(self.folder), "--port", str(self.port)]
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "evenhand", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(process.terminate)
        return process


def label_items(
    source: Path | Table, folder: Path, wanted: LabelOptions, *, port: int, address: str = ""
) -> Labelling:
    """Make a study of the rows of a file or a table, or go on with the one that is there, and make
    a link for each rater that is good for a week, to `address` or to this machine's port.

    Raises InputError where the items are bad, where it is not said what to ask, or where the study
    that is there is of other items or asks something else.
    """
    leaves_out = ""
    if (folder / study_toml.FILE_NAME).is_file():
        notes = [written("items.goes_on", folder=folder), *_compared(source, folder, wanted)]
    else:
        made, judged = _make(source, folder, wanted)
        notes = made.sentences(judged, folder, study_toml.read_config(folder).sample.pairs)
        leaves_out = "show=" if wanted.in_python else "--show"
    with open_study(folder) as study:
        notes += names_shown(study, leaves_out)
        places = study.config.annotation.raters_per_unit
        raters = [f"rater-{n}" for n in range(1, places + 1)]
        invites = make_invites(study, raters, hours=168.0)
        note(study, "invite", "", f"made: {len(raters)}")
    place = address or f"http://localhost:{port}/"
    links = [f"{place}?invite={invite.token}" for invite in invites]
    return Labelling(folder, links, port, notes)


_TO_READ = ("--judge", "--missing", "--sheet", "--show", "--subject", "--cluster")
"""Options that may be given again without a question: they say how to read the file."""


def _compared(source: Path | Table, folder: Path, wanted: LabelOptions) -> list[str]:
    """Compare the study that is there with a file of items, and store the judge's labels that it
    lacks; return sentences on both.

    Raises InputError where something else is asked for, and, if it is named again, where the items
    are others.
    """
    settled = f"is settled in {folder}, which is there already; leave it out, or name a new folder"
    options: ItemOptions = wanted
    is_named = bool(wanted.question or wanted.rubric)
    with open_study(folder) as study:
        if not is_named:
            for option in wanted.given:
                if option not in _TO_READ:
                    raise InputError(f"{option} {settled}")
            rubrics = [str(folder / RUBRICS_FOLDER / f"{name}.toml") for name in study.rubrics]
            in_turns = item_tables.CONVERSATION_ID in study.store.pairs()
            options = replace(options, rubric=rubrics, each_turn=in_turns)
        try:
            made = item_study(source, options)
        except InputError as fault:
            if is_named or options.judge:
                raise
            return [written("items.not_compared", reason=fault)]
        differs = _differences(study, made.items)
        if is_named:
            config = study.config
            rubrics_now = {rubric.hash for rubric in study.rubrics.values()}
            same = rubrics_now == {rubric.hash for rubric in made.rubrics}
            same &= wanted.sample in (None, config.sample.pairs) and wanted.seed == config.seed
            same &= wanted.raters in (None, config.annotation.raters_per_unit)
            if differs or not same:
                raise InputError(" ".join([f"what is asked for {settled}", *differs]))
        if added := 0 if differs else made.import_judge(study):
            differs.append(written("items.judged_now", count=added, rater=made.judge))
        return differs


def _differences(study: Study, items: Items) -> list[str]:
    """Sentences on items of a file that a study does not have, or has with another text."""
    texts: dict[str, set[str]] = {}
    for table in (items.pairs, items.responses):
        for item, *cells in table.itertuples(index=False):  # the id comes first in both
            texts.setdefault(str(item), set()).update(map(str, cells))
    present = set(study.store.pairs()["pair_id"])
    more = [item for item in texts if item not in present]
    changed = [
        item for item, _, text in shown_texts(study) if item in texts and text not in texts[item]
    ]
    return [
        written(f"items.{what}", count=len(set(ids)), first=ids[0])
        for what, ids in (("more", more), ("changed", changed))
        if ids
    ]


def _make(source: Path | Table, folder: Path, wanted: LabelOptions) -> tuple[ItemStudy, int]:
    """Make the study; return what it was made of, and how many labels a judge had given."""
    raters = 1 if wanted.raters is None else wanted.raters
    check_numbers(raters, wanted.seed)
    made = item_study(source, wanted)
    plan = StudyPlan(
        items=made.items,
        rubrics=made.rubrics,
        sample=wanted.sample,
        stratify=wanted.stratify,
        seed=wanted.seed,
        raters_per_unit=raters,
    )
    return made, make_study(folder, plan, made)


def create_items(folder: Path, source: Path, wanted: LabelOptions) -> StudyPreview:
    """Make a study of items, and return its preview. Raises InputError, with nothing written, where
    the file is bad.
    """
    made, _ = _make(source, folder, wanted)
    with open_study(folder) as study:
        return replace(preview_of(study), read=tuple(made.as_read))
