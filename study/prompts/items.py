"""Items: rows of a file, each rated as it is. A response, an answer with its context, a judge's
record; and comparisons, whose rows have two answers.

An item study is kept like a study whose prompts have one side: every row is a prompt of its own,
answered by one subject, with its other texts as columns, so that sampling, the annotation page,
graders and the analysis need no special case. Rows on the same prompt are one cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Block, Rubric
from evenhand.rubrics.rendering import ANSWERS, as_messages, is_conversation, passages_of, turns_of
from evenhand.study.prompts.pairs import (
    CRITERIA,
    PAIR_ID,
    RESERVED,
    RESPONSE_ID,
    SUBJECT,
    looks_like_image,
    numbered_ids,
    with_images,
)
from evenhand.study.prompts.units import unit_id
from evenhand.study.tables.columns import USUAL_NAMES, require_columns, require_rows, shortened
from evenhand.study.tables.formats import FIRST_ROW, row_number
from evenhand.study.tables.ratings import TRUTH, validate_ratings

ITEM_ID = "item_id"
"""Column that every item has: its id in the file, or its number."""
PROMPT_ID = "prompt_id"
"""Column that tells which items are on the same prompt."""
TURN, TURN_ID, CONVERSATION_ID = "turn", "turn_id", "conversation_id"
"""Columns of rows that are the turns of conversations."""
MOST_CHARACTERS = 1_000_000
_KNOWN = USUAL_NAMES["items"]
_LONGEST_WORD = 20
_FRAME = re.compile(r"^(attributes|context)\.|\.value$")
"""Text that tracing tools put around a column's name, as in `attributes.input.value`."""
_RIGHT = (("c", "i"), ("correct", "incorrect"), ("pass", "fail"))
"""Words of judges for yes and no; Inspect grades C and I."""
_TEXTS = ("prompt", "context", "reference", "response")


@dataclass(frozen=True, kw_only=True)
class ItemColumns:
    """The columns of an items file by what they are; empty where there is none. `show` are those
    that raters read, in this order; `prompt`, `context`, `reference`, `response`,
    `conversations` and `images` are among them. `hidden` are texts of which raters read nothing.
    """

    show: tuple[str, ...]
    prompt: str = ""
    context: str = ""
    reference: str = ""
    response: str = ""
    subject: str = ""
    cluster: str = ""
    id: str = ""
    judge: str = ""
    conversations: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def said(self) -> list[tuple[str, str]]:
        """Return the role that each column is taken for, as (role, columns)."""
        roles = (*_TEXTS, "subject", "cluster", "id", "judge")
        named = [
            ("shown", ", ".join(self.show)),
            ("conversation", ", ".join(self.conversations)),
            ("image", ", ".join(self.images)),
            ("passages", ", ".join(self.passages)),
            ("JSON", ", ".join(column for column in self.json if column not in self.passages)),
            *((role, getattr(self, role)) for role in roles),
            ("not shown", ", ".join(self.hidden)),
        ]
        return [(role, columns) for role, columns in named if columns or role == "shown"]


@dataclass(frozen=True)
class Items:
    """Items in a study's form: `pairs` and `responses` as the store keeps them, the `blocks` that
    show the texts, and a judge's labels (`judged`, pair_id and label), where a column has them.
    `images` are the variables that hold images, shown or not.
    """

    pairs: pd.DataFrame
    responses: pd.DataFrame
    blocks: tuple[Block, ...]
    cluster: str
    judged: pd.DataFrame | None
    images: tuple[str, ...] = ()

    @property
    def unit_ids(self) -> list[str]:
        """The unit of each item, in their order."""
        firsts = self.responses[self.responses["side"] == "a"]
        side = "a" if len(firsts) == len(self.responses) else ""  # of two answers, both together
        keys = zip(firsts["pair_id"], firsts["subject"], strict=True)
        return [unit_id(item, subject, side) for item, subject in keys]


def item_columns(
    frame: pd.DataFrame,
    name: str,
    *,
    show: Sequence[str] = (),
    subject: str = "",
    cluster: str = "",
    judge: str = "",
    question: str = "",
) -> ItemColumns:
    """Return what each column of an items file is: as named, or else by its name. Without `show`
    raters read what a response is held against, too, and the texts that the `question` names.

    Raises InputError where a named column is missing, or where it is not clear what raters should
    read.
    """
    require_columns(frame, [*show, *filter(None, (subject, cluster, judge))], name)
    if judge and judge in show:
        raise InputError(
            f"{name}: the column {judge!r} is the judge's, which annotators may not see; take it "
            "out of --show"
        )
    by_name = {_FRAME.sub("", str(name).strip().casefold()): str(name) for name in frame}

    def called(role: str) -> list[str]:
        columns = [by_name[column] for column in _KNOWN[role] if column in by_name]
        return [column for column in columns if column not in (judge, cluster)]

    subject = subject or next(iter(called("subject")), "")
    own_id = next(iter(called("id")), "")
    apart = {subject, cluster, judge, own_id}
    texts = [column for column in map(str, frame) if column not in apart and is_text(frame[column])]
    if not (shown := list(show)):
        responses = called("response")
        if len(responses) > 1:
            raise InputError(
                f"{name}: {responses[0]!r} and {responses[1]!r} could both be the response; name "
                f"what annotators read with --show, such as --show {responses[0]}"
            )
        shown = [column for role in _TEXTS for column in called(role)[:1]]
        if not responses:
            raise InputError(
                f"{name}: none of the columns {', '.join(map(str, frame))} is called response, "
                "output or answer; name what annotators read with --show COLUMN,COLUMN"
            )
        asked = [
            column
            for name, column in by_name.items()
            if column not in (*shown, *apart)
            and (name in _KNOWN["criterion"] or (column in texts and _is_named(name, question)))
        ]
        shown[-1:-1] = asked  # the response stays last

    def first(role: str) -> str:
        return next((column for column in called(role) if column in shown), "")

    if subject and subject == cluster:
        raise InputError(
            f"{name}: the column {subject!r} says who answered; name another one with --cluster"
        )
    if subject in shown:
        raise InputError(
            f"{name}: the column {subject!r} says who answered, which annotators may not see; "
            "take it out of --show, or name another column with --subject"
        )
    row = frame.iloc[0]
    others = [column for role in ("prompt", "context", "reference") for column in called(role)]
    response = first("response") or next((col for col in shown[::-1] if col not in others), "")
    return ItemColumns(
        show=tuple(shown),
        prompt=first("prompt"),
        context=first("context"),
        reference=first("reference"),
        response=response or shown[-1],
        subject=subject,
        cluster=cluster,
        id=own_id,
        judge=judge,
        conversations=tuple(column for column in shown if is_conversation(row[column])),
        images=tuple(column for column in shown if _holds_images(frame[column])),
        json=tuple(column for column in shown if _is_json(row[column])),
        passages=tuple(col for col in shown if col != response and passages_of(row[col])),
        hidden=tuple(
            col for col in texts if col not in shown and col.removesuffix("_alt") not in shown
        ),
    )


def is_text(cells: pd.Series) -> bool:
    """Return True if a cell is longer than a word."""
    bare = cells.str.strip()
    return bool((bare.str.contains(r"\s") | (bare.str.len() > _LONGEST_WORD)).any())


def _is_named(column: str, question: str) -> bool:
    """Return True if the words of a column's name stand in a question.

    >>> _is_named("style_guide", "Does it follow the style guide?"), _is_named("notes", "Is it so?")
    (True, False)
    """
    words = re.findall(r"\w+", question.casefold())
    named = re.findall(r"[^\W_]+", column)
    forms = ({word, word.removesuffix("s"), f"{word}s"} for word in named)
    return bool(named) and all(form & {*words} for form in forms)


def check_items_table(frame: pd.DataFrame, name: str) -> None:
    """Raise InputError where a table of items has no rows or a cell beyond all bounds."""
    require_rows(frame, name, "items")
    for column in frame:
        lengths = frame[column].str.len().to_numpy()
        if (longest := int(lengths.max())) > MOST_CHARACTERS:
            row = row_number(frame, int(lengths.argmax()))
            raise InputError(
                f"{name}, row {row}: {column} has {longest:,} characters; at most "
                f"{MOST_CHARACTERS:,} can be shown"
            )


def each_turn(
    frame: pd.DataFrame, columns: ItemColumns, name: str
) -> tuple[pd.DataFrame, ItemColumns]:
    """Return one row for each turn of the assistant, with the conversation up to there, and the
    columns of these rows. A conversation is a cluster. A judge's labels are a JSON list, one for
    each of these turns.

    Raises InputError where no column or several hold conversations, or labels and turns are not as
    many.
    """
    if len(columns.conversations) != 1:
        raise InputError(
            f"{name}: --each-turn needs one shown column of conversations; it has "
            f"{len(columns.conversations) or 'none'}"
        )
    _check_rows(frame, columns, name)
    (chat,) = columns.conversations
    ids = frame[columns.id].tolist() if columns.id else numbered_ids(len(frame))
    cells: list[dict[str, str]] = []
    rows: list[int] = []
    for row, given, cell in zip(frame.index, ids, frame[chat], strict=True):
        turns = turns_of(cell)
        rated = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
        labels = _labels_of_turns(frame, row, columns.judge, len(rated), name)
        for at, label in zip(rated, labels, strict=True):
            of_turn = {TURN_ID: f"{given}-t{at + 1}", CONVERSATION_ID: given}
            of_turn |= {TURN: turns[at].text, chat: as_messages(turns[:at]) if at else ""}
            cells.append(of_turn | ({columns.judge: label} if columns.judge else {}))
            rows.append(row)
    if not cells:
        raise InputError(f"{name}: no conversation has a turn of the assistant")
    kept = frame.drop(columns=[chat, *filter(None, (columns.id, columns.judge))])
    repeated = kept.loc[rows].reset_index(drop=True)
    apart = pd.concat([repeated, pd.DataFrame(cells)], axis=1)
    others = tuple(column for column in columns.show if column != chat)
    show, cluster = (*others, chat, TURN), columns.cluster or CONVERSATION_ID
    turned = replace(columns, show=show, prompt=columns.prompt or chat, cluster=cluster)
    return apart, replace(turned, response=TURN, id=TURN_ID)


def _labels_of_turns(
    frame: pd.DataFrame, row: int, judge: str, turns: int, name: str
) -> Sequence[str]:
    if not judge:
        return [""] * turns
    given = str(frame[judge][row])
    try:
        labels = json.loads(given)
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, list) or len(labels) != turns:
        raise InputError(
            f"{name}, row {row + FIRST_ROW}: {judge} is {shortened(given)!r}; with --each-turn "
            f"write a JSON list of {turns}, a label for each turn of the assistant"
        )
    return ["" if label is None else str(label) for label in labels]


def make_items(
    frame: pd.DataFrame,
    columns: ItemColumns,
    name: str,
    folder: Path = Path(),
    rubrics: Sequence[Rubric] = (),
) -> Items:
    """Return the rows of an items file, which lies in `folder`, as a study keeps them. What the
    columns or the `rubrics` show as an image is kept as one.

    Raises InputError naming the first row in which no shown text is filled in, an id comes twice,
    a subject is missing where others have one, or an image cannot be read.
    """
    _check_rows(frame, columns, name)
    variables = [_variable(other_column, columns) for other_column in columns.show]
    for column, variable in zip(columns.show, variables, strict=True):
        if variables.count(variable) > 1:
            raise InputError(f"{name}: two shown columns are called like {column!r}; rename one")
    names = dict(zip(columns.show, variables, strict=True))
    blocks = tuple(
        Block(column=variable, label=_label(other_column), kind=_kind(other_column, columns))
        for other_column, variable in names.items()
    )
    images = _images(frame, columns, names, rubrics)
    frame = with_images(frame, list(images), name, folder)
    given = frame[columns.id].tolist() if columns.id else numbered_ids(len(frame))
    fits = all(PAIR_ID.fullmatch(id_) for id_ in given)
    ids = pd.Series(given if fits else numbered_ids(len(frame)), index=frame.index)
    left_out = (columns.response, columns.subject, columns.id, columns.judge)
    kept = [str(column) for column in frame if column not in left_out]
    stored = _stored_names(kept, columns, names, name)
    pairs = frame[kept].rename(columns=stored)
    pairs.insert(0, "pair_id", ids)
    pairs[ITEM_ID] = given
    cluster = stored.get(columns.cluster, "")
    if not cluster and columns.prompt and pairs["prompt_a"].duplicated().any():
        codes, _ = pd.factorize(pairs["prompt_a"])
        pairs[PROMPT_ID] = [f"q{code + 1}" for code in codes]
        cluster = PROMPT_ID
    if not cluster and {*CRITERIA} <= {*pairs}:
        cluster = RESPONSE_ID
    subject = frame[columns.subject].str.strip() if columns.subject else "responses"
    cells = {"pair_id": ids, "side": "a", "subject": subject, "response": frame[columns.response]}
    responses = pd.DataFrame(cells)
    judged = None
    if columns.judge:
        judged = pd.DataFrame({"pair_id": ids, "label": frame[columns.judge].str.strip()})
    return Items(pairs, responses, blocks, cluster, judged, tuple(images.values()))


def golden_items(rubric: Rubric) -> Items:
    """Return a rubric's golden answers as items, in their order."""
    # A rubric may show no text that is called response; a unit always has one.
    frame = pd.DataFrame([{"response": "-"} | golden.texts for golden in rubric.golden])
    prompt = "prompt" if "prompt" in frame else ""
    columns = ItemColumns(show=rubric.variables, prompt=prompt, response="response")
    return make_items(frame, columns, f"{rubric.name}.toml", rubrics=[rubric])


def _check_rows(frame: pd.DataFrame, columns: ItemColumns, name: str) -> None:
    bare = frame[list(columns.show)].apply(lambda cells: cells.str.strip() == "").all(axis=1)
    if bare.any():
        row = row_number(frame, int(bare.to_numpy().argmax()))
        shown = " and ".join(columns.show)
        raise InputError(f"{name}, row {row}: {shown} is empty; fill it in or take the row out")
    for column in columns.conversations:
        check_conversations(frame[column][frame[column] != ""], name)
    if columns.id:
        seen: dict[str, int] = {}
        for row, id_ in zip(frame.index + FIRST_ROW, frame[columns.id], strict=True):
            if not id_.strip():
                raise InputError(f"{name}, row {row}: {columns.id} is empty; give the row an id")
            if id_ in seen:
                raise InputError(
                    f"{name}, row {row}: the id {shortened(id_)!r} stands in row {seen[id_]} "
                    "too; give every row its own"
                )
            seen[id_] = row
    if columns.subject:
        check_subjects(frame[columns.subject], name)


def check_conversations(cells: pd.Series, name: str) -> None:
    """Raise InputError for the first cell of a column that is no conversation."""
    for row, cell in zip(cells.index + FIRST_ROW, cells, strict=True):
        try:
            turns_of(cell)
        except ValueError as fault:
            raise InputError(f"{name}, row {row}: {cells.name}: {fault}") from None


def check_subjects(cells: pd.Series, name: str) -> None:
    """Raise InputError for the first cell of a column that cannot name a subject."""
    for row, cell in zip(cells.index + FIRST_ROW, cells, strict=True):
        if not SUBJECT.fullmatch(cell.strip()):
            raise InputError(
                f"{name}, row {row}: {cells.name} is {shortened(cell)!r}; it must name who "
                "answered, in 1-120 characters without |"
            )


def _is_json(cell: str) -> bool:
    """Return True for an object, or a list that holds one."""
    try:
        held = json.loads(cell) if cell.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(held, dict) or (isinstance(held, list) and any(map(bool, held)))


def _kind(column: str, columns: ItemColumns) -> Literal["conversation", "image", "json", ""]:
    if column in columns.conversations:
        return "conversation"
    return "image" if column in columns.images else "json" if column in columns.json else ""


def _images(
    frame: pd.DataFrame, columns: ItemColumns, names: Mapping[str, str], rubrics: Sequence[Rubric]
) -> dict[str, str]:
    """Return the columns that hold images or are declared to by the rubrics, by their variables."""
    declared = {name for rubric in rubrics for name in rubric.images}
    read = {name for rubric in rubrics for name in rubric.variables}
    variables = {name: names.get(name, name) for name in map(str, frame) if name != columns.judge}
    return {
        column: name
        for column, name in variables.items()
        if column in columns.images
        or name in declared
        or (name in read and _holds_images(frame[column]))
    }


def _holds_images(cells: pd.Series) -> bool:
    """Return True if the first cell that is filled in is an image."""
    return looks_like_image(next(filter(str.strip, cells), ""))


def _variable(column: str, columns: ItemColumns) -> str:
    """The name of a shown column in a rubric: what it is, or else its own in plain letters.

    >>> columns = ItemColumns(show=("Question", "passage", "My note"), context="passage")
    >>> [_variable(each, columns) for each in columns.show]
    ['question', 'context', 'my_note']
    """
    for role in _TEXTS:
        if column == getattr(columns, role):
            return role
    name = re.sub(r"[^a-z0-9]+", "_", column.casefold()).strip("_")
    name = name if re.match("[a-z]", name) else f"text_{name}"
    return f"{name}_text" if re.search("(^|_)[ab]$", name) else name


_OF_PAIRS = ("pair_id", "prompt_b")
_TAKEN = frozenset((ITEM_ID, PROMPT_ID, *RESERVED))


def _stored_names(
    kept: Sequence[str], columns: ItemColumns, names: Mapping[str, str], name: str
) -> dict[str, str]:
    """Return the names under which these columns are kept with the pairs."""
    stored = {column: names.get(column, column) for column in kept}
    # A file's own column of a name that has a meaning here keeps its values under another name.
    stored = {column: f"file_{new}" if new in _TAKEN else new for column, new in stored.items()}
    stored |= {columns.prompt: "prompt_a"} if columns.prompt in stored else {}
    taken = list(stored.values())
    for column, new in stored.items():
        if new in _OF_PAIRS:
            raise InputError(f"{name}: the column {column!r} means something else here; rename it")
        if taken.count(new) > 1:
            raise InputError(f"{name}: two columns would be called {new!r}; rename {column!r}")
    return stored


def _label(column: str) -> str:
    """A column's name as people read it.

    >>> _label("retrieved_contexts"), _label("RAG answer"), _label("attributes.input.value")
    ('Retrieved contexts', 'RAG answer', 'Input')
    """
    words = _FRAME.sub("", column).replace("_", " ").strip()
    return words[:1].upper() + words[1:120]


def judge_ratings(items: Items, rubric: Rubric, column: str, name: str) -> pd.DataFrame:
    """Return a judge's labels as the ratings of a grader called like their `column`; rows without a
    label are left out. Options are known by key or name, and numbers, truth values and words for
    right and wrong as such. Raises InputError naming the first row whose label is no option.
    """
    assert items.judged is not None  # noqa: S101 - the caller asked for a judge
    known = {option.name.casefold(): option.key for option in rubric.options}
    known |= {option.key.casefold(): option.key for option in rubric.options}
    truth = (*TRUTH, *_RIGHT)
    if usual := next((pair for pair in truth if all(word in known for word in pair)), None):
        yes, no = (known[word] for word in usual)
        known = {pair[0]: yes for pair in truth} | {pair[1]: no for pair in truth} | known
    labels = []
    for at, given in enumerate(items.judged["label"]):
        plain = given.casefold()
        key = rubric.kind.imported_label(given, known)
        if plain and not key:
            why = f"{rubric.kind.none_of}; round or correct it"
            if rubric.kind.is_choice:
                why = (
                    f"no option; the options are {rubric.kind.permitted} (--missing names values "
                    "that are no labels)"
                )
            raise InputError(
                f"{name}, row {row_number(items.judged, at)}: {column} is {shortened(given)!r}, "
                f"which is {why}"
            )
        labels.append(key)
    rater = re.sub(r"[^A-Za-z0-9._-]+", "-", column).strip("-")[:64] or "judge"
    cells = {"unit_id": items.unit_ids, "rubric": rubric.name, "rater_id": rater}
    frame = pd.DataFrame(cells | {"rater_kind": "model", "label": labels})
    frame = frame[frame["label"] != ""].reset_index(drop=True)
    if frame.empty:
        raise InputError(f"{name}: the column {column!r} has no labels; leave --judge out")
    return validate_ratings(frame)


# Comparisons: two subjects' answers to one prompt, rated side by side. A comparison is an item with
# a second answer. It is kept like a pair whose two sides have the same prompt, so that sampling,
# the order of the sides and graders need no special case. Who gave which answer stands in two
# columns of the pair, which no rater ever sees.

ANSWERED_BY = ("subject_a", "subject_b")
"""Columns of a comparison that name who gave the answers."""
TOGETHER = "answers"
"""The subject under which the two answers of a comparison are kept."""
_SIDES = (("a", "b"), ("1", "2"))
_COMPARED = USUAL_NAMES["comparisons"]
_ANSWER = _COMPARED["answer"]
_TIE = ("tie", "draw", "equal", "same", "both", "neither", "none", "c")
"""Words by which files say that neither answer is better."""


@dataclass(frozen=True, kw_only=True)
class ComparisonColumns:
    """The columns of a file of comparisons: the two answers and who gave them (none where the file
    does not say), and of all else what it is, as in a file of items with one answer, `answer`.
    """

    answers: tuple[str, str]
    subjects: tuple[str, ...]
    answer: str
    items: ItemColumns

    def said(self) -> list[tuple[str, str]]:
        """Return the role that each column is taken for, as (role, columns)."""
        compared = [("answers", ", ".join(self.answers))]
        if self.subjects:
            compared.append(("subjects", ", ".join(self.subjects)))
        others = [
            (role, ", ".join(self._as_given(column) for column in columns.split(", ")))
            for role, columns in self.items.said()
            if role not in ("response", "subject")
        ]
        return [*others[:1], *compared, *others[1:]]

    @property
    def show(self) -> list[str]:
        """The columns that raters read, in their order."""
        return [name for column in self.items.show for name in self._as_given(column).split(", ")]

    def _as_given(self, column: str) -> str:
        return ", ".join(self.answers) if column == self.answer else column


def answer_columns(frame: pd.DataFrame, name: str, show: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the two columns of a file that hold two answers to a prompt, by their names, such as
    response_a and response_b; none where there are no two, or `show` names others. Raises
    InputError where two pairs of columns could be the answers.
    """
    shown = (re.sub(r"[ -]", "_", _stem(column).casefold()) for column in show)
    sided = _sided(frame, dict.fromkeys((*_ANSWER, *shown)))
    pairs = [pair for pair in sided if not show or all(column in show for column in pair)]
    if len(pairs) > 1:
        given = " or ".join(", ".join(pair) for pair in pairs[:2])
        raise InputError(
            f"{name}: the two answers could be {given}; name what annotators read with --show"
        )
    return pairs[0] if pairs else ()


def has_one_answer(frame: pd.DataFrame) -> bool:
    """Return True if a column of a file is called like one response, without a side."""
    return bool(_single(frame))


def _single(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame if str(name).strip().casefold() in _ANSWER]


def _stem(column: str) -> str:
    """Return a column's name without its side.

    >>> _stem("Output 1"), _stem("answer_b")
    ('Output', 'answer')
    """
    return re.sub(r"[ _-]?[ab12]$", "", column, flags=re.IGNORECASE)


def _sided(frame: pd.DataFrame, words: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns called like one of the words and a side.

    >>> import pandas as pd
    >>> _sided(pd.DataFrame(columns=["Output 1", "Output 2", "model_a", "model_b"]), ("output",))
    [('Output 1', 'Output 2')]
    """
    named = {re.sub(r"[ -]", "_", str(name).strip().casefold()): str(name) for name in frame}
    forms = ("{word}_{side}", "{word}{side}", "model_{side}_{word}", "{side}_{word}")
    pairs = (
        tuple(named.get(form.format(word=word, side=side), "") for side in sides)
        for word, sides, form in product(words, _SIDES, forms)
    )
    return [(first, second) for first, second in pairs if first and second]


def comparison_columns(
    frame: pd.DataFrame,
    name: str,
    answers: tuple[str, str],
    *,
    show: Sequence[str] = (),
    subject: Sequence[str] = (),
    cluster: str = "",
    judge: str = "",
    question: str = "",
) -> ComparisonColumns:
    """Return what each column of a file of comparisons is: as named, or else by its name. Raises
    InputError where a named column is missing, or cannot be what it is named as.
    """
    require_columns(frame, [*show, *subject, *filter(None, (cluster, judge))], name)
    if len(subject) not in (0, 2):
        raise InputError(
            f"{name}: two answers have two subjects; write --subject model_a,model_b, the columns "
            "in the order of the answers"
        )
    subjects = tuple(subject) or next(iter(_sided(frame, _COMPARED["subject"])), ())
    for column in subjects:
        if column in show:
            raise InputError(
                f"{name}: the column {column!r} says who answered, which annotators may not "
                f"see; take "
                "it out of --show"
            )
    first, second = answers
    answer = next(field for field in (_stem(first), *_ANSWER) if field and field not in frame)
    known = next((field for field in _COMPARED["cluster"] if field in frame and field != judge), "")
    shown = [answer if field == first else field for field in show if field != second]
    one = _with_one_answer(frame, answers, subjects, answer)
    # Beside two answers a column that is called like one is something else, such as a reference.
    alike = [field for field in _single(frame) if field not in (answer, *shown)]
    one, cluster = one.drop(columns=alike), cluster or known
    items = item_columns(one, name, show=shown, cluster=cluster, judge=judge, question=question)
    hidden = [*items.hidden, *(each for each in alike if each != judge and is_text(frame[each]))]
    items = replace(items, response=answer, subject="", hidden=tuple(hidden))
    return ComparisonColumns(answers=answers, subjects=subjects, answer=answer, items=items)


def _with_one_answer(
    frame: pd.DataFrame, answers: tuple[str, str], subjects: Sequence[str], answer: str
) -> pd.DataFrame:
    first, second = answers
    one = frame.drop(columns=[second, *subjects])
    return one.rename(columns={first: answer, f"{first}_alt": f"{answer}_alt"})


def make_comparisons(
    frame: pd.DataFrame,
    columns: ComparisonColumns,
    name: str,
    folder: Path = Path(),
    rubrics: Sequence[Rubric] = (),
) -> Items:
    """Return the rows of a file of comparisons, which lies in `folder`, as a study keeps them, as
    `make_items` does. Raises InputError naming the first bad row: as of items, or where one subject
    gave both answers.
    """
    if columns.answer in columns.items.conversations:
        check_conversations(frame[columns.answers[1]], name)
    for column in columns.subjects:
        check_subjects(frame[column], name)
    if columns.subjects:
        first, second = (frame[column].str.strip() for column in columns.subjects)
        if (same := (first == second).to_numpy()).any():
            at = int(same.argmax())
            raise InputError(
                f"{name}, row {row_number(frame, at)}: {shortened(first.iloc[at])!r} gave both "
                "answers; a comparison is between two subjects"
            )
    one = _with_one_answer(frame, columns.answers, columns.subjects, columns.answer)
    items = make_items(one, columns.items, name, folder, rubrics)
    if "response" in items.images:
        frame = with_images(frame, columns.answers[1:], name, folder)
    pairs = items.pairs
    if "prompt_a" not in pairs:
        pairs.insert(1, "prompt_a", "")
    pairs["prompt_b"] = pairs["prompt_a"]
    for answered_by, column in zip(ANSWERED_BY, columns.subjects, strict=False):
        pairs[answered_by] = frame[column].str.strip()
    of_a = items.responses.assign(subject=TOGETHER)
    of_b = of_a.assign(side="b", response=frame[columns.answers[1]].to_numpy())
    responses = pd.concat([of_a, of_b], ignore_index=True)
    return replace(items, pairs=pairs, responses=responses)


def golden_comparisons(rubric: Rubric) -> Items:
    """Return a rubric's golden answers as comparisons, in their order."""
    frame = pd.DataFrame([golden.texts for golden in rubric.golden])
    columns = comparison_columns(frame, rubric.name, ANSWERS, show=rubric.variables)
    return make_comparisons(frame, columns, f"{rubric.name}.toml", rubrics=[rubric])


def comparison_judge(
    items: Items, columns: ComparisonColumns, rubric: Rubric, name: str
) -> pd.DataFrame:
    """Return a judge's verdicts as a grader's ratings: known by the options' keys and names, and
    where one option favours a side by that side (a, 1, model_a, the answer's column), the subject's
    name, or a word for a tie. Raises InputError naming the first row whose verdict is no option.
    """
    assert items.judged is not None  # noqa: S101 - the caller asked for a judge
    sides = [option.favours for option in rubric.options]
    # The option that favours a, b or "" (neither), where there is one alone.
    options: dict[str, str] = {
        option.favours: option.key for option in rubric.options if sides.count(option.favours) == 1
    }
    words = {word.casefold() for option in rubric.options for word in (option.key, option.name)}
    subjects = items.pairs[list(ANSWERED_BY[: len(columns.subjects)])].to_numpy().tolist()
    labels = []
    for given, who in zip(items.judged["label"], subjects, strict=True):
        plain = given.casefold().removesuffix(".0")
        side = "?" if plain in words else _side_named(plain, columns.answers, who)
        labels.append(options.get(side, given))
    judged = items.judged.assign(label=labels)
    return judge_ratings(replace(items, judged=judged), rubric, columns.items.judge, name)


def _side_named(word: str, answers: Sequence[str], subjects: Sequence[str]) -> str:
    """Return the side that a judge's word names, "" for a tie, "?" for none.

    >>> [_side_named(word, ("x", "y"), ("gpt", "llama")) for word in ("model_2", "gpt", "draw", "")]
    ['b', 'a', '', '?']
    """
    if word in _TIE or word.startswith("tie "):
        return ""
    for place, side in enumerate("ab"):
        names = {f"{before}{end[place]}" for before in ("", "model_", "model ") for end in _SIDES}
        names |= {needed[place].casefold() for needed in (answers, subjects) if needed}
        if word in names:
            return side
    return "?"
