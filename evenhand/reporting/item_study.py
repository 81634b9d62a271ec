"""From a file of items, and what is said of it, to what a new study is made of."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.exchange.readers.rows import ItemTable
    from evenhand.reporting.ratings_file.frames import Table
    from evenhand.rubrics import Rubric
    from evenhand.study import Study
    from evenhand.study.prompts.comparisons import ComparisonColumns
    from evenhand.study.prompts.items import ItemColumns, Items

Ask = Callable[[InputError], Sequence[str]]
"""Asks which columns raters read, where their names do not say it; the error says why."""


@dataclass(frozen=True, kw_only=True)
class ItemOptions:
    """What a user says of an items file, on the command line or `in_python`: its columns by what
    they are, and what is asked.
    """

    show: Sequence[str] = ()
    subject: Sequence[str] = ()
    cluster: str = ""
    judge: str = ""
    missing: Sequence[str] = ()
    sheet: str = ""
    each_turn: bool = False
    rubrics: Sequence[str] = ()
    question: str = ""
    options: Sequence[str] = ()
    scale: str = ""
    several: bool = False
    level: Literal["nominal", "ordinal", ""] = ""
    steps: int | None = None
    in_python: bool = False

    @property
    def of_one(self) -> bool:
        """True where what is asked is of one response; without it, it may be of two."""
        return bool(self.rubrics or self.options or self.scale)

    def refuse(self, names: Sequence[str], because: str) -> None:
        """Raise InputError where an option is given that would change nothing here."""
        for name in names:
            if getattr(self, name) not in ("", (), [], False, None):
                raise InputError(f"--{name.replace('_', '-')} {because}")


@dataclass(frozen=True)
class ItemStudy:
    """What an items file becomes: items, the rubrics that are asked, the judge's ratings, what each
    column was taken for, and notes on what was read.
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
        from evenhand.study.lead.imports import import_ratings

        return import_ratings(study, self.judged, self.source)[0]

    @property
    def as_read(self) -> list[str]:
        """Sentences on what was read, and what the columns were taken for."""
        taken = "; ".join(f"{role}: {columns}" for role, columns in self.taken)
        return [*self.notes, written("items.taken", taken=taken)]

    def said(self, judged: int, folder: Path, sampled: int) -> list[str]:
        """Sentences on what the columns were taken for, and what was made of them."""
        from evenhand.study.prompts.pairs import prompts_noun

        total, noun = len(self.items.pairs), prompts_noun(self.items.pairs)
        said = [
            *self.as_read,
            written("items.made", folder=folder, sampled=sampled, total=total, noun=noun),
        ]
        if self.judged is not None:
            said.append(written("items.judged", count=judged, rater=self.judge))
        return said

    @property
    def judge(self) -> str:
        """The judge's id as a rater."""
        return "" if self.judged is None else str(self.judged["rater_id"].iloc[0])


def item_study(source: Path | Table, options: ItemOptions, ask: Ask | None = None) -> ItemStudy:
    """Read a file or a table of items; files that its cells name are beside it, or in the working
    folder. Raises InputError where it is bad, or where it is not said what to ask.
    """
    from evenhand.study.prompts.comparisons import answer_columns

    named = _named(options)
    path, held, compares = _read(source, options, named)
    answers = answer_columns(held.table, path.name, options.show or held.show)
    if _is_compared(held, answers, options, compares):
        return _comparisons(path, held, answers, named, options)
    return _single_answers(path, held, named, options, ask)


@dataclass(frozen=True)
class ItemFile:
    """What a file holds before anything is asked of it: each column with its first text, what
    raters would read, what each is taken for as (role, columns), and notes. `fault` says what is
    not clear.
    """

    columns: Sequence[tuple[str, str]]
    show: Sequence[str]
    taken: Sequence[tuple[str, str]]
    notes: Sequence[str] = ()
    fault: str = ""


def look_at_items(source: Path, options: ItemOptions) -> ItemFile:
    """Return what a file of items holds. Raises InputError where it cannot be read."""
    from evenhand.study.prompts.comparisons import answer_columns, comparison_columns
    from evenhand.study.prompts.items import item_columns
    from evenhand.study.tables.columns import shortened

    path, held, compares = _read(source, options, _named(options))
    frame, name, shown = held.table, path.name, options.show or held.show
    texts = [(str(column), shortened(str(frame[column].iloc[0]))) for column in frame]
    known = {"cluster": options.cluster, "judge": options.judge, "question": options.question}
    try:
        answers = answer_columns(frame, name, shown)
        columns: ItemColumns | ComparisonColumns
        if answers and _is_compared(held, answers, options, compares):
            two = (answers[0], answers[1])
            columns = comparison_columns(
                frame, name, two, show=options.show, subject=options.subject, **known
            )
            show = columns.show
        else:
            known["cluster"] = known["cluster"] or held.cluster
            subject = ",".join(options.subject)
            columns = item_columns(frame, name, show=shown, subject=subject, **known)
            show = list(columns.show)
    except InputError as fault:
        return ItemFile(texts, list(shown), [], held.notes, str(fault))
    return ItemFile(texts, show, columns.said(), held.notes)


def _named(options: ItemOptions) -> list[Rubric]:
    from evenhand.rubrics import load_rubric

    if options.question and options.rubrics:
        raise InputError(written("items.ask"))
    if not options.question:
        asked = ["options", "scale", "several", "level", "steps"]
        options.refuse(asked, "goes with --question; a rubric has its own")
    return [load_rubric(name) for name in options.rubrics]


def _read(
    source: Path | Table, options: ItemOptions, named: list[Rubric]
) -> tuple[Path, ItemTable, bool]:
    """Return what a file holds, under its path, and whether a rubric that is named compares two."""
    from evenhand.exchange.readers.reading import read_items
    from evenhand.exchange.readers.rows import ItemTable
    from evenhand.exchange.readers.texts import reply_text
    from evenhand.reporting.ratings_file.dataframes import items_table
    from evenhand.study.prompts.items import check_items_table
    from evenhand.study.tables.spellings import fold, folded

    compares = any(rubric.unit == "comparison" for rubric in named)
    if isinstance(source, Path):
        path, compared = source, compares or not options.of_one
        held = read_items(path, options.judge, compared=compared, sheet=options.sheet)
    else:
        path, held = Path("items"), ItemTable(items_table(source, options.sheet))
    held = replace(held, table=held.table.map(reply_text))
    check_items_table(held.table, path.name)
    if options.judge in held.table:
        labels = fold(held.table[options.judge])
        labels = labels.mask(labels.isin([*map(folded, options.missing)]), "")
        held = replace(held, table=held.table.assign(**{options.judge: labels}))
    elif not options.judge:
        options.refuse(["missing"], "goes with --judge")
    return path, held, compares


def _is_compared(
    held: ItemTable, answers: Sequence[str], options: ItemOptions, compares: bool
) -> bool:
    """Return True if two answers are compared: what is asked of one response is not asked of two
    that stand beside it.
    """
    from evenhand.study.prompts.comparisons import has_one_answer

    of_one = has_one_answer(held.table) and options.of_one
    return compares or (bool(answers) and not of_one)


def _single_answers(
    path: Path, held: ItemTable, named: list[Rubric], options: ItemOptions, ask: Ask | None
) -> ItemStudy:
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.reporting.ratings_file.scales import read_as_ordered
    from evenhand.rubrics import asked_rubric
    from evenhand.study.prompts.items import each_turn, item_columns, judge_ratings, make_items

    options.refuse(["steps"], "goes with two answers in a row, such as response_a, response_b")
    if not options.question and not named:
        raise InputError(written("items.ask"))
    name, frame, show = path.name, held.table, options.show or held.show
    subject, cluster = ",".join(options.subject), options.cluster or held.cluster
    known = {"subject": subject, "cluster": cluster, "judge": options.judge}
    known["question"] = " ".join([options.question, *(each.question for each in named)])
    try:
        columns = item_columns(frame, name, show=show, **known)
    except InputError as fault:
        if show or ask is None:
            raise
        columns = item_columns(frame, name, show=ask(fault), **known)
    notes = [*held.notes, *_hidden(columns.show, columns.hidden, options)]
    if options.each_turn:
        frame, columns = each_turn(frame, columns, name)
    items = make_items(frame, columns, name, path.parent, named)
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
            level=options.level,
        )
        rubrics = [rubric]
        if options.options and not options.level and rubric.level == "ordinal":
            spelling = ScaleOptions(in_python=options.in_python)
            notes = [*notes, read_as_ordered(rubric.categories, spelling)]
    judged = None
    if items.judged is not None:
        judged = judge_ratings(items, _the_one(rubrics), columns.judge, name)
    return ItemStudy(items, rubrics, judged, columns.said(), notes, name)


def _comparisons(
    path: Path,
    held: ItemTable,
    answers: Sequence[str],
    named: list[Rubric],
    options: ItemOptions,
) -> ItemStudy:
    """Make comparisons of a file with two answers in a row, or with single answers to the same
    prompts; without a question or a rubric the one called preference is asked.
    """
    from evenhand.rubrics import asked_comparison, load_rubric
    from evenhand.rubrics.rendering import ANSWERS
    from evenhand.study.prompts.comparisons import (
        comparison_columns,
        comparison_judge,
        make_comparisons,
        paired_rows,
    )
    from evenhand.study.prompts.items import item_columns

    name, frame, show, subject = path.name, held.table, options.show, options.subject
    of_one = ["options", "scale", "several", "level", "each_turn"]
    options.refuse(of_one, "goes with one answer in a row; --steps with two")
    if not answers:
        options.refuse(["judge"], "goes with two answers in a row; here a row has one")
        single = item_columns(frame, name, show=show, subject=",".join(subject))
        frame, answers, subject = paired_rows(frame, single, name), ANSWERS, ()
        show = [*(each for each in single.show if each != single.response), *answers]
    columns = comparison_columns(
        frame,
        name,
        (answers[0], answers[1]),
        show=show,
        subject=subject,
        cluster=options.cluster,
        judge=options.judge,
        question=" ".join([options.question, *(each.question for each in named)]),
    )
    notes = [*held.notes, *_hidden(columns.show, columns.items.hidden, options)]
    items = make_comparisons(frame, columns, name, path.parent, named)
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
    if items.judged is not None:
        judged = comparison_judge(items, columns, _the_one(rubrics), name)
    return ItemStudy(items, rubrics, judged, columns.said(), notes, name)


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
