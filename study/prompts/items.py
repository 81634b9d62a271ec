"""Items: rows of a file, each rated by itself, such as a response, or an answer with its context;
and comparisons, rows with two answers to one prompt.

From a table to a study's form: `item_columns` decides what each column is, `make_items` turns the
rows into pairs and responses, and `judge_ratings` reads the labels of a judge, a model. The
functions for comparisons, in the second half, reduce them to items and add the second answer.
`name` is always the file's name, for messages.

An item study is kept like a study of pairs of prompts with just one of the two sides: every row is
a prompt of its own, answered by one subject (a model), with its other texts as columns, so that
sampling, annotation, graders and analysis need no special case. Rows on one prompt are a cluster.
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
from evenhand.rubrics.options import RIGHT_OR_WRONG, TRUTH
from evenhand.rubrics.rendering import ANSWERS, as_messages, is_conversation, passages_of, turns_of
from evenhand.study.prompts import pairs as prompt_files
from evenhand.study.prompts.units import unit_id
from evenhand.study.tables.columns import USUAL_NAMES, require_columns, require_rows, shortened
from evenhand.study.tables.formats import FIRST_ROW, row_number
from evenhand.study.tables.ratings import validate_ratings

ITEM_ID = "item_id"  # column of every item: its id in the file, or its number
PROMPT_ID = "prompt_id"  # column with the same value for all items on one prompt
TURN, TURN_ID, CONVERSATION_ID = "turn", "turn_id", "conversation_id"  # of rows that are turns
MOST_CHARACTERS = 1_000_000  # characters of a cell that can be shown
_NAMES_BY_ROLE = USUAL_NAMES["items"]
_MAX_WORD_CHARACTERS = 20  # a longer cell counts as a text
_TRACING_AFFIX = re.compile(r"^(attributes|context)\.|\.value$")
"""Text that tracing tools put around a column's name, as in `attributes.input.value`."""
_TEXT_ROLES = ("prompt", "context", "reference", "response")  # the response is the last one


@dataclass(frozen=True, kw_only=True)
class ItemColumns:
    """The columns of an items file by their role; empty where there is none. Raters read those of
    `show`, in this order; of these some have texts' roles (`prompt` to `response`), or cells of a
    form: `conversations`, `images`, `json` or lists of `passages`. `hidden` texts are not shown.
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

    def roles(self) -> list[tuple[str, str]]:
        """Return each role with its columns, as (role, comma-separated columns)."""
        single = (*_TEXT_ROLES, "subject", "cluster", "id", "judge")
        roles = [
            ("shown", ", ".join(self.show)),
            ("conversation", ", ".join(self.conversations)),
            ("image", ", ".join(self.images)),
            ("passages", ", ".join(self.passages)),
            ("JSON", ", ".join(column for column in self.json if column not in self.passages)),
            *((role, getattr(self, role)) for role in single),
            ("not shown", ", ".join(self.hidden)),
        ]
        return [(role, columns) for role, columns in roles if columns or role == "shown"]


@dataclass(frozen=True)
class Items:
    """Items in a study's form: `pairs` and `responses` as the store keeps them, the `blocks` that
    show the texts, the column of clusters ("" if none), and a judge's labels (`pair_id, label`), if
    any. `images` are the variables that hold images, shown or not.
    """

    pairs: pd.DataFrame
    responses: pd.DataFrame
    blocks: tuple[Block, ...]
    cluster: str
    judge_labels: pd.DataFrame | None
    images: tuple[str, ...] = ()

    @property
    def unit_ids(self) -> list[str]:
        """Return the unit id of each item, in the order of the items."""
        first_answers = self.responses[self.responses["side"] == "a"]
        side = "a" if len(first_answers) == len(self.responses) else ""  # two answers are one unit
        keys = zip(first_answers["pair_id"], first_answers["subject"], strict=True)
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
    """Return the columns of an items file by role: as the arguments name them, or else by their own
    names. Without `show` raters read the usual texts, such as the reference, and the columns that
    the `question` names. Raises InputError where a column is missing, or several could be it.
    """
    require_columns(frame, [*show, *filter(None, (subject, cluster, judge))], name)
    # Columns by plain name, "input" for "attributes.input.value". All but the named judge's and
    # cluster's are `free` to get a role by their name, the column with the most usual name first.
    column_of = {_TRACING_AFFIX.sub("", str(col).strip().casefold()): str(col) for col in frame}
    free = {plain: column for plain, column in column_of.items() if column not in (judge, cluster)}
    columns_by_role = {
        role: [free[usual_name] for usual_name in names if usual_name in free]
        for role, names in _NAMES_BY_ROLE.items()
    }

    subject = subject or next(iter(columns_by_role["subject"]), "")
    id_column = next(iter(columns_by_role["id"]), "")
    not_shown = (subject, cluster, judge, id_column)
    others = {plain: column for plain, column in column_of.items() if column not in not_shown}
    shown = list(show) or _default_texts(frame, columns_by_role, others, question, name)
    _check_unseen(shown, subject, cluster, judge, name)
    shown_by_role = {
        role: next((column for column in columns if column in shown), "")
        for role, columns in columns_by_role.items()
    }

    # Without a usual name the response is the last text that is not named like another role, or,
    # if all are named so, the last text, which then loses that other role.
    named_otherwise = {column for role in _TEXT_ROLES[:-1] for column in columns_by_role[role]}
    last_shown = next((column for column in shown[::-1] if column not in named_otherwise), "")
    response = shown_by_role["response"] or last_shown or shown[-1]
    shown_by_role |= {role: "" for role, column in shown_by_role.items() if column == response}

    samples = frame.where(frame != "").bfill().fillna("").iloc[0]  # each column's first text
    passages = [column for column in shown if column != response and passages_of(samples[column])]
    hidden = [
        column
        for column in map(str, frame)
        if column not in (*shown, *not_shown)
        and column.removesuffix("_alt") not in shown  # the description of a shown image
        and is_text(frame[column])
    ]
    return ItemColumns(
        show=tuple(shown),
        prompt=shown_by_role["prompt"],
        context=shown_by_role["context"],
        reference=shown_by_role["reference"],
        response=response,
        subject=subject,
        cluster=cluster,
        id=id_column,
        judge=judge,
        conversations=tuple(column for column in shown if is_conversation(samples[column])),
        images=tuple(column for column in shown if _holds_images(frame[column])),
        json=tuple(column for column in shown if _is_json(samples[column])),
        passages=tuple(passages),
        hidden=tuple(hidden),
    )


def _default_texts(
    frame: pd.DataFrame,
    columns_by_role: Mapping[str, Sequence[str]],
    others: Mapping[str, str],
    question: str,
    name: str,
) -> list[str]:
    """Return the columns that raters read by default, the response last: the first column of each
    text's role in `columns_by_role`, and of the `others` (by plain name) criteria and texts that
    the question names. Raises InputError unless just one column can be the response.
    """
    candidates = columns_by_role["response"]
    if len(candidates) > 1:
        raise InputError(
            f"{name}: {candidates[0]!r} and {candidates[1]!r} could both be the response; name "
            f"what annotators read with --show, such as --show {candidates[0]}"
        )
    if not candidates:
        raise InputError(
            f"{name}: none of the columns {', '.join(map(str, frame))} is called response, output "
            "or answer; name what annotators read with --show COLUMN,COLUMN"
        )
    usual = [column for role in _TEXT_ROLES for column in columns_by_role[role][:1]]
    named = [
        column
        for plain, column in others.items()
        if column not in usual
        and (
            plain in _NAMES_BY_ROLE["criterion"]
            or (is_text(frame[column]) and _is_named(plain, question))
        )
    ]
    return [*usual[:-1], *named, usual[-1]]  # the response is the last of the usual ones


def _check_unseen(shown: Sequence[str], subject: str, cluster: str, judge: str, name: str) -> None:
    """Raise InputError where annotators would see who answered, or a judge's labels."""
    if judge and judge in shown:
        raise InputError(
            f"{name}: the column {judge!r} is the judge's, which annotators may not see; take it "
            "out of --show"
        )
    if subject and subject == cluster:
        raise InputError(
            f"{name}: the column {subject!r} says who answered; name another one with --cluster"
        )
    if subject in shown:
        raise InputError(
            f"{name}: the column {subject!r} says who answered, which annotators may not see; "
            "take it out of --show, or name another column with --subject"
        )


def is_text(cells: pd.Series) -> bool:
    """Return True if a column has a cell that is more than a word."""
    stripped = cells.str.strip()
    return bool((stripped.str.contains(r"\s") | (stripped.str.len() > _MAX_WORD_CHARACTERS)).any())


def _is_named(column: str, question: str) -> bool:
    """Return True if all words of a column's name occur in a question.

    >>> _is_named("style_guide", "Does it follow the style guide?"), _is_named("notes", "Is it so?")
    (True, False)
    """
    question_words = re.findall(r"\w+", question.casefold())
    column_words = re.findall(r"[^\W_]+", column)
    forms = ({word, word.removesuffix("s"), f"{word}s"} for word in column_words)
    return bool(column_words) and all(form & {*question_words} for form in forms)


def check_items_table(frame: pd.DataFrame, name: str) -> None:
    """Raise InputError if a table of items has no rows or a cell that is too long."""
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
    """Return one row for each turn of the assistant, with the conversation before the turn, and the
    columns of these rows. A conversation is a cluster. A judge's labels are a JSON list, one for
    each turn. Raises InputError without just one column of conversations, or one label for a turn.
    """
    if len(columns.conversations) != 1:
        raise InputError(
            f"{name}: --each-turn needs one shown column of conversations; it has "
            f"{len(columns.conversations) or 'none'}"
        )
    _check_rows(frame, columns, name)
    (conversation,) = columns.conversations
    ids = frame[columns.id].tolist() if columns.id else prompt_files.numbered_ids(len(frame))
    turn_rows: list[dict[str, str]] = []
    source_rows: list[int] = []  # the row of `frame` from which each turn comes
    for row, item_id, cell in zip(frame.index, ids, frame[conversation], strict=True):
        turns = turns_of(cell)
        answers = [index for index, turn in enumerate(turns) if turn.role == "assistant"]
        labels = _labels_of_turns(frame, row, columns.judge, len(answers), name)
        for index, label in zip(answers, labels, strict=True):
            cells = {TURN_ID: f"{item_id}-t{index + 1}", CONVERSATION_ID: item_id}
            cells[TURN] = turns[index].text
            cells[conversation] = as_messages(turns[:index]) if index else ""
            if columns.judge:
                cells[columns.judge] = label
            turn_rows.append(cells)
            source_rows.append(row)
    if not turn_rows:
        raise InputError(f"{name}: no conversation has a turn of the assistant")
    other_columns = frame.drop(columns=[conversation, *filter(None, (columns.id, columns.judge))])
    repeated = other_columns.loc[source_rows].reset_index(drop=True)
    turn_frame = pd.concat([repeated, pd.DataFrame(turn_rows)], axis=1)
    show = (*(column for column in columns.show if column != conversation), conversation, TURN)
    prompt, cluster = columns.prompt or conversation, columns.cluster or CONVERSATION_ID
    columns = replace(columns, show=show, prompt=prompt, cluster=cluster)
    return turn_frame, replace(columns, response=TURN, id=TURN_ID)


def _labels_of_turns(frame: pd.DataFrame, row: int, judge: str, n: int, name: str) -> list[str]:
    """Return a judge's labels of the assistant's `n` turns, read from the JSON list of this row."""
    if not judge:
        return [""] * n
    cell = str(frame[judge][row])
    try:
        labels = json.loads(cell)
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, list) or len(labels) != n:
        raise InputError(
            f"{name}, row {row + FIRST_ROW}: {judge} is {shortened(cell)!r}; with --each-turn "
            f"write a JSON list of {n}, a label for each turn of the assistant"
        )
    return ["" if label is None else str(label) for label in labels]


def make_items(
    frame: pd.DataFrame,
    columns: ItemColumns,
    name: str,
    folder: Path = Path(),
    rubrics: Sequence[Rubric] = (),
) -> Items:
    """Return the rows of an items file, which lies in `folder`, in a study's form. Columns that
    hold images, or that the `rubrics` show as images, are read as images. Raises InputError naming
    the first row in which no shown text is filled in, an id comes twice, a subject is missing where
    others have one, or an image cannot be read.
    """
    _check_rows(frame, columns, name)
    variables = [_variable(column, columns) for column in columns.show]
    for column, variable in zip(columns.show, variables, strict=True):
        if variables.count(variable) > 1:
            raise InputError(f"{name}: two shown columns are called like {column!r}; rename one")
    variable_of = dict(zip(columns.show, variables, strict=True))
    blocks = tuple(
        Block(column=variable, label=_label(column), kind=_block_kind(column, columns))
        for column, variable in variable_of.items()
    )
    images = _image_variables(frame, columns, variable_of, rubrics)
    frame = prompt_files.with_images(frame, list(images), name, folder)

    # Ids that cannot be part of a unit's id are kept as `item_id` alone.
    numbers = prompt_files.numbered_ids(len(frame))
    item_ids = frame[columns.id].tolist() if columns.id else numbers
    are_valid = all(prompt_files.PAIR_ID.fullmatch(item_id) for item_id in item_ids)
    ids = pd.Series(item_ids if are_valid else numbers, index=frame.index)
    not_in_pairs = (columns.response, columns.subject, columns.id, columns.judge)
    pair_columns = [str(column) for column in frame if column not in not_in_pairs]
    stored_names = _stored_names(pair_columns, columns, variable_of, name)
    pairs = frame[pair_columns].rename(columns=stored_names)
    pairs.insert(0, "pair_id", ids)
    pairs[ITEM_ID] = item_ids

    # Items on one prompt are a cluster, and so are the criteria of one response.
    cluster = stored_names.get(columns.cluster, "")
    if not cluster and columns.prompt and pairs["prompt_a"].duplicated().any():
        codes, _ = pd.factorize(pairs["prompt_a"])
        pairs[PROMPT_ID] = [f"q{code + 1}" for code in codes]
        cluster = PROMPT_ID
    if not cluster and {*prompt_files.CRITERIA} <= {*pairs}:
        cluster = prompt_files.RESPONSE_ID

    subject = frame[columns.subject].str.strip() if columns.subject else "responses"
    cells = {"pair_id": ids, "side": "a", "subject": subject, "response": frame[columns.response]}
    judge_labels = None
    if columns.judge:
        judge_labels = pd.DataFrame({"pair_id": ids, "label": frame[columns.judge].str.strip()})
    return Items(pairs, pd.DataFrame(cells), blocks, cluster, judge_labels, tuple(images.values()))


def golden_items(rubric: Rubric) -> Items:
    """Return a rubric's golden answers as items, in their order."""
    # A rubric may show no text that is called response; a unit always has one.
    frame = pd.DataFrame([{"response": "-"} | golden.texts for golden in rubric.golden])
    prompt = "prompt" if "prompt" in frame else ""
    columns = ItemColumns(show=rubric.variables, prompt=prompt, response="response")
    return make_items(frame, columns, f"{rubric.name}.toml", rubrics=[rubric])


def _check_rows(frame: pd.DataFrame, columns: ItemColumns, name: str) -> None:
    """Raise InputError for the first row without a text, a unique id, or a valid subject."""
    is_empty = frame[list(columns.show)].apply(lambda cells: cells.str.strip() == "").all(axis=1)
    if is_empty.any():
        row = row_number(frame, int(is_empty.to_numpy().argmax()))
        shown = " and ".join(columns.show)
        raise InputError(f"{name}, row {row}: {shown} is empty; fill it in or take the row out")
    for column in columns.conversations:
        check_conversations(frame[column][frame[column] != ""], name)
    if columns.id:
        row_of_id: dict[str, int] = {}
        for row, item_id in zip(frame.index + FIRST_ROW, frame[columns.id], strict=True):
            if not item_id.strip():
                raise InputError(f"{name}, row {row}: {columns.id} is empty; give the row an id")
            if first_row := row_of_id.get(item_id):
                raise InputError(
                    f"{name}, row {row}: the id {shortened(item_id)!r} stands in row {first_row} "
                    "too; give every row its own"
                )
            row_of_id[item_id] = row
    if columns.subject:
        check_subjects(frame[columns.subject], name)


def check_conversations(cells: pd.Series, name: str) -> None:
    """Raise InputError for the first cell of a column that is not a conversation."""
    for row, cell in zip(cells.index + FIRST_ROW, cells, strict=True):
        try:
            turns_of(cell)
        except ValueError as fault:
            raise InputError(f"{name}, row {row}: {cells.name}: {fault}") from None


def check_subjects(cells: pd.Series, name: str) -> None:
    """Raise InputError for the first cell of a column that cannot name a subject."""
    for row, cell in zip(cells.index + FIRST_ROW, cells, strict=True):
        if not prompt_files.SUBJECT.fullmatch(cell.strip()):
            raise InputError(
                f"{name}, row {row}: {cells.name} is {shortened(cell)!r}; it must name who "
                "answered, in 1-120 characters without |"
            )


def _is_json(cell: str) -> bool:
    """Return True if a cell is a JSON object, or a list of values that are not all empty or 0."""
    try:
        value = json.loads(cell) if cell.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) or (isinstance(value, list) and any(value))


def _block_kind(column: str, columns: ItemColumns) -> Literal["conversation", "image", "json", ""]:
    """Return how a block shows a column; "" is plain text."""
    if column in columns.conversations:
        return "conversation"
    if column in columns.images:
        return "image"
    return "json" if column in columns.json else ""


def _image_variables(
    frame: pd.DataFrame, columns: ItemColumns, shown: Mapping[str, str], rubrics: Sequence[Rubric]
) -> dict[str, str]:
    """Return the variables of columns that hold images or are declared as such, by column."""
    declared = {name for rubric in rubrics for name in rubric.images}
    used = {name for rubric in rubrics for name in rubric.variables}
    # `shown` has the variables of shown columns; that of any other column is its own name.
    variables = {name: shown.get(name, name) for name in map(str, frame) if name != columns.judge}
    return {
        column: variable
        for column, variable in variables.items()
        if column in columns.images
        or variable in declared
        or (variable in used and _holds_images(frame[column]))
    }


def _holds_images(cells: pd.Series) -> bool:
    """Return True if the first cell that is filled in is an image."""
    return prompt_files.looks_like_image(next(filter(str.strip, cells), ""))


def _variable(column: str, columns: ItemColumns) -> str:
    """Return a shown column's name in a rubric: its role, or else its name in plain letters.

    >>> columns = ItemColumns(show=("Question", "passage", "My note"), context="passage")
    >>> [_variable(column, columns) for column in columns.show]
    ['question', 'context', 'my_note']
    """
    for role in _TEXT_ROLES:
        if column == getattr(columns, role):
            return role
    name = re.sub(r"[^a-z0-9]+", "_", column.casefold()).strip("_")
    name = name if re.match("[a-z]", name) else f"text_{name}"
    # A name that ends with _a or _b would mean a side.
    return f"{name}_text" if re.search("(^|_)[ab]$", name) else name


_PAIR_COLUMNS = ("pair_id", "prompt_b")  # columns of pairs that no column of a file may become
_OTHER_MEANING = frozenset((ITEM_ID, PROMPT_ID, *prompt_files.RESERVED))


def _stored_names(
    pair_columns: Sequence[str], columns: ItemColumns, variable_of: Mapping[str, str], name: str
) -> dict[str, str]:
    """Return the columns' names in the pairs. Raises InputError for ambiguous ones."""
    stored_names: dict[str, str] = {}
    for column in pair_columns:
        stored = variable_of.get(column, column)
        # A column of the file whose name has another meaning here is kept as `file_NAME`.
        stored_names[column] = f"file_{stored}" if stored in _OTHER_MEANING else stored
    if columns.prompt in stored_names:
        stored_names[columns.prompt] = "prompt_a"
    for column, stored in stored_names.items():
        if stored in _PAIR_COLUMNS:
            raise InputError(f"{name}: the column {column!r} means something else here; rename it")
        if list(stored_names.values()).count(stored) > 1:
            raise InputError(f"{name}: two columns would be called {stored!r}; rename {column!r}")
    return stored_names


def _label(column: str) -> str:
    """Return a column's name as annotators read it.

    >>> _label("retrieved_contexts"), _label("RAG answer"), _label("attributes.input.value")
    ('Retrieved contexts', 'RAG answer', 'Input')
    """
    words = _TRACING_AFFIX.sub("", column).replace("_", " ").strip()
    return words[:1].upper() + words[1:120]  # as long as a block's label may be


def judge_ratings(items: Items, rubric: Rubric, column: str, name: str) -> pd.DataFrame:
    """Return a judge's labels as the ratings of a grader named after their `column`; rows without a
    label are left out. Labels are options' keys or names, numbers, truth values, or words for right
    and wrong. Raises InputError naming the first row whose label is not an option.
    """
    assert items.judge_labels is not None  # noqa: S101 - the caller asked for a judge
    key_of_word = _keys_of_options(rubric)
    opposites = (*TRUTH, *RIGHT_OR_WRONG)
    for yes, no in opposites:
        if yes in key_of_word and no in key_of_word:  # then all such words mean these options
            synonyms = {word: key_of_word[yes] for word, _ in opposites}
            synonyms |= {word: key_of_word[no] for _, word in opposites}
            key_of_word = synonyms | key_of_word
            break
    keys = []
    for row_index, label in enumerate(items.judge_labels["label"]):
        key = rubric.kind.imported_label(label, key_of_word)
        if label and not key:
            problem = f"{rubric.kind.none_of}; correct it"
            if rubric.kind.is_choice:
                problem = (
                    f"no option; the options are {rubric.kind.permitted} (--missing names values "
                    "that are no labels)"
                )
            cell = f"{name}, row {row_number(items.judge_labels, row_index)}: {column}"
            raise InputError(f"{cell} is {shortened(label)!r}, which is {problem}")
        keys.append(key)
    rater = re.sub(r"[^A-Za-z0-9._-]+", "-", column).strip("-")[:64] or "judge"  # see `RATER_CODE`
    cells = {"unit_id": items.unit_ids, "rubric": rubric.name, "rater_id": rater}
    frame = pd.DataFrame(cells | {"rater_kind": "model", "label": keys})
    frame = frame[frame["label"] != ""].reset_index(drop=True)
    if frame.empty:
        raise InputError(f"{name}: the column {column!r} has no labels; leave --judge out")
    return validate_ratings(frame)


def _keys_of_options(rubric: Rubric) -> dict[str, str]:
    """Return the options' keys by the options' names and keys, in lower case."""
    return {spelling.casefold(): key for spelling, key in rubric.kind.spellings.items()}


# ---- comparisons --------------------------------------------------------------------------------
# Two subjects' answers to one prompt, rated side by side. A comparison is kept like a pair whose
# two sides have the same prompt, so that sampling, the order of the sides and graders need no
# special case. Two columns of the pair name the subjects; raters never see them.
ANSWERED_BY = ("subject_a", "subject_b")  # columns of a comparison with its answers' subjects
TOGETHER = "answers"  # the subject under which the two answers of a comparison are kept
_SIDES = (("a", "b"), ("1", "2"))  # ends of names of the first and the second answer
_COMPARISON_NAMES = USUAL_NAMES["comparisons"]
_ANSWER_NAMES = _COMPARISON_NAMES["answer"]
_TIE_WORDS = ("tie", "draw", "equal", "same", "both", "neither", "none", "c")  # as in A, B or C
_NO_SIDE = "?"  # of a judge's word that names neither a side nor a tie


@dataclass(frozen=True, kw_only=True)
class ComparisonColumns:
    """The columns of a file of comparisons: the two answers, their subjects (none where the file
    does not name them), and all others: `items` are the columns of the same file if one column,
    called `answer`, is put in place of the two answers.
    """

    answers: tuple[str, str]
    subjects: tuple[str, ...]
    answer: str
    items: ItemColumns

    def roles(self) -> list[tuple[str, str]]:
        """Return each role with its columns, as (role, comma-separated columns)."""
        compared = [("answers", ", ".join(self.answers))]
        if self.subjects:
            compared.append(("subjects", ", ".join(self.subjects)))
        others = [
            (role, ", ".join(self._in_file(column) for column in columns.split(", ")))
            for role, columns in self.items.roles()
            if role not in ("response", "subject")
        ]
        return [*others[:1], *compared, *others[1:]]  # after "shown", which is the first

    @property
    def show(self) -> list[str]:
        """Return the columns that raters read, in their order."""
        return [name for column in self.items.show for name in self._in_file(column).split(", ")]

    def _in_file(self, column: str) -> str:
        """Return a column as the file has it: the two answers instead of `answer`."""
        return ", ".join(self.answers) if column == self.answer else column


def answer_columns(frame: pd.DataFrame, name: str, show: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the two columns of a file that hold two answers to a prompt, by their names, such as
    response_a and response_b; none where there are no two, or `show` names others. Raises
    InputError where two pairs of columns could be the answers.
    """
    shown = (re.sub(r"[ -]", "_", _without_side(column).casefold()) for column in show)
    sided = _sided_columns(frame, dict.fromkeys((*_ANSWER_NAMES, *shown)))
    pairs = [pair for pair in sided if not show or all(column in show for column in pair)]
    if len(pairs) > 1:
        pair_names = " or ".join(", ".join(pair) for pair in pairs[:2])
        raise InputError(
            f"{name}: the two answers could be {pair_names}; name what annotators read with --show"
        )
    return pairs[0] if pairs else ()


def unsided_answers(frame: pd.DataFrame) -> list[str]:
    """Return the columns that are named like an answer without a side."""
    return [str(name) for name in frame if str(name).strip().casefold() in _ANSWER_NAMES]


def _without_side(column: str) -> str:
    """Return a column's name without its side.

    >>> _without_side("Output 1"), _without_side("answer_b")
    ('Output', 'answer')
    """
    return re.sub(r"[ _-]?[ab12]$", "", column, flags=re.IGNORECASE)


def _sided_columns(frame: pd.DataFrame, words: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns whose names are one of the words and a side.

    >>> import pandas as pd
    >>> frame = pd.DataFrame(columns=["Output 1", "Output 2", "model_a", "model_b"])
    >>> _sided_columns(frame, ("output",))
    [('Output 1', 'Output 2')]
    """
    column_of = {re.sub(r"[ -]", "_", str(name).strip().casefold()): str(name) for name in frame}
    forms = ("{word}_{side}", "{word}{side}", "model_{side}_{word}", "{side}_{word}")
    pairs = (
        tuple(column_of.get(form.format(word=word, side=side), "") for side in sides)
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
    """Return the role of each column of a file of comparisons: as named, or else by its name.
    Raises InputError where a named column is missing, or cannot have the role it is named for.
    """
    require_columns(frame, [*show, *subject, *filter(None, (cluster, judge))], name)
    if len(subject) not in (0, 2):
        raise InputError(
            f"{name}: two answers have two subjects; write --subject model_a,model_b, the columns "
            "in the order of the answers"
        )
    subjects = tuple(subject) or next(iter(_sided_columns(frame, _COMPARISON_NAMES["subject"])), ())
    for column in subjects:
        if column in show:
            raise InputError(
                f"{name}: the column {column!r} says who answered, which annotators may not see; "
                "take it out of --show"
            )
    first, second = answers
    new_names = (_without_side(first), *_ANSWER_NAMES)  # for the one column instead of the two
    answer = next(column for column in new_names if column and column not in frame)
    usual_clusters = _COMPARISON_NAMES["cluster"]
    clusters = [column for column in usual_clusters if column in frame and column != judge]
    cluster = cluster or next(iter(clusters), "")
    shown = [answer if column == first else column for column in show if column != second]
    # In a file with two answers, a column named like one answer is another text: a reference, say.
    # It is taken out, since `item_columns` would take it for the response.
    unsided = [column for column in unsided_answers(frame) if column not in (answer, *shown)]
    table = _with_one_answer(frame, answers, subjects, answer).drop(columns=unsided)
    items = item_columns(table, name, show=shown, cluster=cluster, judge=judge, question=question)
    hidden = (column for column in unsided if column != judge and is_text(frame[column]))
    items = replace(items, response=answer, subject="", hidden=(*items.hidden, *hidden))
    return ComparisonColumns(answers=answers, subjects=subjects, answer=answer, items=items)


def _with_one_answer(
    frame: pd.DataFrame, answers: tuple[str, str], subjects: Sequence[str], answer: str
) -> pd.DataFrame:
    """Return the table as one of items: the first answer as `answer`, without the second."""
    first, second = answers
    one_answer = frame.drop(columns=[second, *subjects])
    return one_answer.rename(columns={first: answer, f"{first}_alt": f"{answer}_alt"})


def make_comparisons(
    frame: pd.DataFrame,
    columns: ComparisonColumns,
    name: str,
    folder: Path = Path(),
    rubrics: Sequence[Rubric] = (),
) -> Items:
    """Return the rows of a file of comparisons, which lies in `folder`, in a study's form. Raises
    InputError as `make_items` does, and where one subject gave both answers.
    """
    if columns.answer in columns.items.conversations:
        check_conversations(frame[columns.answers[1]], name)
    for column in columns.subjects:
        check_subjects(frame[column], name)
    if columns.subjects:
        first, second = (frame[column].str.strip() for column in columns.subjects)
        if (is_same := (first == second).to_numpy()).any():
            index = int(is_same.argmax())
            where, subject = f"{name}, row {row_number(frame, index)}", shortened(first.iloc[index])
            raise InputError(
                f"{where}: {subject!r} gave both answers; a comparison is between two subjects"
            )
    one_answer = _with_one_answer(frame, columns.answers, columns.subjects, columns.answer)
    items = make_items(one_answer, columns.items, name, folder, rubrics)
    if "response" in items.images:
        frame = prompt_files.with_images(frame, [columns.answers[1]], name, folder)
    pairs = items.pairs
    if "prompt_a" not in pairs:
        pairs.insert(1, "prompt_a", "")
    pairs["prompt_b"] = pairs["prompt_a"]
    for answered_by, column in zip(ANSWERED_BY, columns.subjects, strict=False):  # two, or none
        pairs[answered_by] = frame[column].str.strip()
    responses_a = items.responses.assign(subject=TOGETHER)
    responses_b = responses_a.assign(side="b", response=frame[columns.answers[1]].to_numpy())
    responses = pd.concat([responses_a, responses_b], ignore_index=True)
    return replace(items, pairs=pairs, responses=responses)


def golden_comparisons(rubric: Rubric) -> Items:
    """Return a rubric's golden answers as comparisons, in their order."""
    frame = pd.DataFrame([golden.texts for golden in rubric.golden])
    columns = comparison_columns(frame, rubric.name, ANSWERS, show=rubric.variables)
    return make_comparisons(frame, columns, f"{rubric.name}.toml", rubrics=[rubric])


def comparison_judge(
    items: Items, columns: ComparisonColumns, rubric: Rubric, name: str
) -> pd.DataFrame:
    """Return a judge's verdicts as a grader's ratings: options' keys or names, or, where one option
    favours a side, that side (a, 1, model_a, the answer's column), the subject's name, or a word
    for a tie. Raises InputError naming the first row whose verdict is not an option.
    """
    assert items.judge_labels is not None  # noqa: S101 - the caller asked for a judge
    sides = [option.favours for option in rubric.options]
    # By side ("a", "b", or "" for a tie) the option that favours it, if just one does.
    option_by_side: dict[str, str] = {
        option.favours: option.key for option in rubric.options if sides.count(option.favours) == 1
    }
    option_words = set(_keys_of_options(rubric))
    subjects = items.pairs[list(ANSWERED_BY[: len(columns.subjects)])].to_numpy().tolist()
    labels = []
    for verdict, row_subjects in zip(items.judge_labels["label"], subjects, strict=True):
        word = verdict.casefold().removesuffix(".0")  # 1.0 names side 1
        is_option = word in option_words
        side = _NO_SIDE if is_option else _side_of_word(word, columns.answers, row_subjects)
        labels.append(option_by_side.get(side, verdict))  # else `judge_ratings` reads the verdict
        named = ["ab"[n] for n, subject in enumerate(row_subjects) if subject.casefold() == word]
        if named and _side_of_word(word, columns.answers, ()) not in (*named, _NO_SIDE):
            raise InputError(
                f"{name}: {columns.items.judge} is {verdict!r}, which may be the model or the "
                "other side; write A, B or tie, or other names of models"
            )
    items = replace(items, judge_labels=items.judge_labels.assign(label=labels))
    return judge_ratings(items, rubric, columns.items.judge, name)


def _side_of_word(word: str, answers: Sequence[str], subjects: Sequence[str]) -> str:
    """Return the side that a judge's word names, "" for a tie, else `_NO_SIDE`.

    >>> [_side_of_word(word, ("x", "y"), ("m1", "m2")) for word in ("model_2", "m1", "draw", "")]
    ['b', 'a', '', '?']
    """
    if word in _TIE_WORDS or word.startswith("tie "):
        return ""
    for index, side in enumerate("ab"):
        side_names = [names[index] for names in _SIDES]  # such as "a" and "1"
        words = {prefix + name for prefix in ("", "model_", "model ") for name in side_names}
        words |= {names[index].casefold() for names in (answers, subjects) if names}
        if word in words:
            return side
    return _NO_SIDE
