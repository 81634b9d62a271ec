"""Items: rows of a file, each rated as it is. A response, an answer with its context, a judge's
record.

An item study is kept like a study whose prompts have one side: every row is a prompt of its own,
answered by one subject, with its other texts as columns, so that sampling, the annotation page,
graders and the analysis need no special case. Rows on the same prompt are one cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evenhand.errors import InputError
from evenhand.rubrics import Block, Rubric
from evenhand.rubrics.content import as_messages, is_conversation, turns_of
from evenhand.rubrics.options import options_in, separators_in, set_label
from evenhand.study.prompts.images import looks_like_image, with_images
from evenhand.study.prompts.pairs import PAIR_ID, RESERVED, SUBJECT, numbered_ids
from evenhand.study.prompts.units import unit_id
from evenhand.study.tables.columns import require_columns, require_rows, shortened
from evenhand.study.tables.formats import FIRST_ROW, row_number

if TYPE_CHECKING:
    import pandas as pd

ITEM_ID = "item_id"
"""Column that every item has: its id in the file, or its number."""
PROMPT_ID = "prompt_id"
"""Column that tells which items are on the same prompt."""
TURN, TURN_ID, CONVERSATION_ID = "turn", "turn_id", "conversation_id"
"""Columns of rows that are the turns of conversations."""
MOST_CHARACTERS = 1_000_000
_KNOWN = {
    "prompt": (
        *("prompt", "question", "input", "query", "instruction", "user_input"),
        *("inputs", "request"),
    ),
    "context": ("context", "contexts", "retrieved_contexts", "passage", "documents"),
    "reference": ("reference", "expected_output", "ground_truth", "expected", "target", "gold"),
    "response": (
        *("response", "output", "answer", "completion", "generation", "model_output"),
        *("outputs", "messages", "conversation", "transcript"),
    ),
    "subject": ("subject", "model", "model_name", "llm.model_name"),
    "id": (ITEM_ID, "id", "unit_id", "uid", "example_id", "span_id"),
}
"""Names by which a column is taken for what it is, in the order in which texts are shown."""
_CRITERION = (
    *("criterion", "criteria", "requirement", "requirements", "rubric_item", "rubric_items"),
    *("guideline", "guidelines"),
)
"""Names of columns that say what a response is held against."""
_LONGEST_WORD = 20
_FRAME = re.compile(r"^(attributes|context)\.|\.value$")
"""What tracing tools write around a column's name, as in `attributes.input.value`."""
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
    hidden: tuple[str, ...] = ()

    def said(self) -> list[tuple[str, str]]:
        """What each column is taken for, as (role, columns)."""
        roles = (*_TEXTS, "subject", "cluster", "id", "judge")
        named = [("shown", ", ".join(self.show))]
        if self.conversations:
            named.append(("conversation", ", ".join(self.conversations)))
        if self.images:
            named.append(("image", ", ".join(self.images)))
        named += [(role, getattr(self, role)) for role in roles if getattr(self, role)]
        return [*named, ("not shown", ", ".join(self.hidden))] if self.hidden else named


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
        own = self.responses[self.responses["side"] == "a"]
        side = "a" if len(own) == len(self.responses) else ""  # of two answers, both together
        whose = zip(own["pair_id"], own["subject"], strict=True)
        return [unit_id(item, subject, side) for item, subject in whose]


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
            f"{name}: the column {judge!r} is the judge's, which raters may not see; take it out "
            "of --show"
        )
    by_name = {_FRAME.sub("", str(name).strip().casefold()): str(name) for name in frame}

    def called(role: str) -> list[str]:
        found = [by_name[each] for each in _KNOWN[role] if each in by_name]
        return [column for column in found if column not in (judge, cluster)]

    subject = subject or next(iter(called("subject")), "")
    own_id = next(iter(called("id")), "")
    apart = {subject, cluster, judge, own_id}
    texts = [column for column in map(str, frame) if column not in apart and is_text(frame[column])]
    shown = list(show)
    if not shown:
        for role in _TEXTS:
            found = called(role)
            if len(found) > 1 and role == "response":
                raise InputError(
                    f"{name}: {found[0]!r} and {found[1]!r} could both be the response; name what "
                    f"raters read with --show, such as --show {found[0]}"
                )
            shown += found[:1]
        if not called("response"):
            raise InputError(
                f"{name}: none of the columns {', '.join(map(str, frame))} is called response, "
                "output or answer; name what raters read with --show COLUMN,COLUMN"
            )
        asked = [
            column
            for name, column in by_name.items()
            if column not in (*shown, *apart)
            and (name in _CRITERION or (column in texts and _is_named(name, question)))
        ]
        shown[-1:-1] = asked  # the response stays last

    def first(role: str) -> str:
        return next((each for each in called(role) if each in shown), "")

    if subject and subject == cluster:
        raise InputError(
            f"{name}: the column {subject!r} says who answered; name another one with --cluster"
        )
    if subject in shown:
        raise InputError(
            f"{name}: the column {subject!r} says who answered, which raters may not see; take it "
            "out of --show, or name another column with --subject"
        )
    others = [each for role in ("prompt", "context", "reference") for each in called(role)]
    response = first("response") or next((each for each in shown[::-1] if each not in others), "")
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
        conversations=tuple(each for each in shown if is_conversation(frame[each].iloc[0])),
        images=tuple(each for each in shown if _holds_images(frame[each])),
        json=tuple(each for each in shown if _is_json(frame[each].iloc[0])),
        hidden=tuple(
            each for each in texts if each not in shown and each.removesuffix("_alt") not in shown
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
    return bool(named) and all(
        {each, each.removesuffix("s"), f"{each}s"} & {*words} for each in named
    )


def check_items_table(frame: pd.DataFrame, name: str) -> None:
    """Raise InputError where a table of items has no rows or a cell beyond all bounds."""
    require_rows(frame, name, "items")
    for column in frame:
        longest = frame[column].str.len()
        if int(longest.max()) > MOST_CHARACTERS:
            row = row_number(frame, int(longest.to_numpy().argmax()))
            raise InputError(
                f"{name}, row {row}: {column} has {int(longest.max()):,} characters; at most "
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
    import pandas as pd

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
            own = {TURN_ID: f"{given}-t{at + 1}", CONVERSATION_ID: given, TURN: turns[at].text}
            own |= {chat: as_messages(turns[:at]) if at else ""}
            cells.append(own | ({columns.judge: label} if columns.judge else {}))
            rows.append(row)
    if not cells:
        raise InputError(f"{name}: no conversation has a turn of the assistant")
    kept = frame.drop(columns=[chat, *filter(None, (columns.id, columns.judge))])
    repeated = kept.loc[rows].reset_index(drop=True)
    apart = pd.concat([repeated, pd.DataFrame(cells)], axis=1)
    others = tuple(each for each in columns.show if each != chat)
    return apart, replace(
        columns,
        show=(*others, chat, TURN),
        prompt=columns.prompt or chat,
        response=TURN,
        id=TURN_ID,
        cluster=columns.cluster or CONVERSATION_ID,
    )


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
    import pandas as pd

    _check_rows(frame, columns, name)
    blocks = _blocks(columns, name)
    names = dict(zip(columns.show, (each.column for each in blocks), strict=True))
    images = _images(frame, columns, names, rubrics)
    frame = with_images(frame, list(images), name, folder)
    own = frame[columns.id].tolist() if columns.id else []
    given = own or numbered_ids(len(frame))
    fits = all(PAIR_ID.fullmatch(each) for each in given)
    ids = pd.Series(given if fits else numbered_ids(len(frame)), index=frame.index)
    kept = [
        str(column)
        for column in frame
        if column not in (columns.response, columns.subject, columns.id, columns.judge)
    ]
    stored = {column: _stored(column, columns, names) for column in kept}
    _check_names(stored, name)
    pairs = frame[kept].rename(columns=stored)
    pairs.insert(0, "pair_id", ids)
    pairs[ITEM_ID] = given
    cluster = stored.get(columns.cluster, "")
    if not cluster and columns.prompt and pairs["prompt_a"].duplicated().any():
        codes, _ = pd.factorize(pairs["prompt_a"])
        pairs[PROMPT_ID] = [f"q{code + 1}" for code in codes]
        cluster = PROMPT_ID
    responses = pd.DataFrame(
        {
            "pair_id": ids,
            "side": "a",
            "subject": frame[columns.subject].str.strip() if columns.subject else "responses",
            "response": frame[columns.response],
        }
    )
    judged = None
    if columns.judge:
        judged = pd.DataFrame({"pair_id": ids, "label": frame[columns.judge].str.strip()})
    return Items(pairs, responses, blocks, cluster, judged, tuple(images.values()))


def golden_items(rubric: Rubric) -> Items:
    """Return a rubric's golden answers as items, in their order."""
    import pandas as pd

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
        for row, each in zip(frame.index + FIRST_ROW, frame[columns.id], strict=True):
            if not each.strip():
                raise InputError(f"{name}, row {row}: {columns.id} is empty; give the row an id")
            if each in seen:
                raise InputError(
                    f"{name}, row {row}: the id {shortened(each)!r} stands in row {seen[each]} "
                    "too; give every row its own"
                )
            seen[each] = row
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


def _blocks(columns: ItemColumns, name: str) -> tuple[Block, ...]:
    blocks = [
        Block(column=_variable(each, columns), label=_label(each), kind=_kind(each, columns))
        for each in columns.show
    ]
    taken = [block.column for block in blocks]
    for column, block in zip(columns.show, blocks, strict=True):
        if taken.count(block.column) > 1:
            raise InputError(f"{name}: two shown columns are called like {column!r}; rename one")
    return tuple(blocks)


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
    if column in columns.images:
        return "image"
    return "json" if column in columns.json else ""


def _images(
    frame: pd.DataFrame, columns: ItemColumns, names: Mapping[str, str], rubrics: Sequence[Rubric]
) -> dict[str, str]:
    """The columns of images, each with its variable: those of the rubrics' image blocks, and those
    that are shown and hold images.
    """
    declared = {name for rubric in rubrics for name in rubric.images}
    read = {name for rubric in rubrics for name in rubric.variables}
    own = {each: names.get(each, each) for each in map(str, frame) if each != columns.judge}
    return {
        column: name
        for column, name in own.items()
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


def _stored(column: str, columns: ItemColumns, names: dict[str, str]) -> str:
    """The name under which a column is kept with the pairs."""
    if column == columns.prompt:
        return "prompt_a"
    kept = names.get(column, column)
    # A file's own column of a name that has a meaning here keeps its values under another name.
    return f"file_{kept}" if kept in _TAKEN else kept


def _check_names(stored: dict[str, str], name: str) -> None:
    kept = list(stored.values())
    for column, own in stored.items():
        if own in _OF_PAIRS:
            raise InputError(f"{name}: the column {column!r} means something else here; rename it")
        if kept.count(own) > 1:
            raise InputError(f"{name}: two columns would be called {own!r}; rename {column!r}")


def _label(column: str) -> str:
    """A column's name as people read it.

    >>> _label("retrieved_contexts"), _label("RAG answer"), _label("attributes.input.value")
    ('Retrieved contexts', 'RAG answer', 'Input')
    """
    words = _FRAME.sub("", column).replace("_", " ").strip()
    return words[:1].upper() + words[1:120]


def _other_label(rubric: Rubric, given: str, known: Mapping[str, str]) -> str:
    """A judge's number, or its set of options by key or name; "" if it is none."""
    if rubric.number or not given.strip():
        return rubric.label_of(given) or ""
    named = options_in(given, separators_in([given.casefold()], known) or "")
    keys = None if named is None else [known.get(each.casefold(), "") for each in named]
    return set_label(keys, rubric.categories) or ""


def judge_ratings(items: Items, rubric: Rubric, column: str, name: str) -> pd.DataFrame:
    """Return a judge's labels as the ratings of a grader called like their `column`; rows without a
    label are left out. Options are known by key or name, and numbers, truth values and words for
    right and wrong as such.

    Raises InputError naming the first row whose label is no option.
    """
    import pandas as pd

    from evenhand.study.tables.ratings import TRUTH, validate_ratings

    assert items.judged is not None  # noqa: S101 - the caller asked for a judge
    known = {each.name.casefold(): each.key for each in rubric.options}
    known |= {each.key.casefold(): each.key for each in rubric.options}
    truth = (*TRUTH, *_RIGHT)
    for pair in truth:
        if all(word in known for word in pair):
            own = [known[word] for word in pair]
            known = {
                word: key for each in truth for word, key in zip(each, own, strict=True)
            } | known
            break
    labels = []
    for at, given in enumerate(items.judged["label"]):
        plain = given.casefold()
        key = known.get(plain) or known.get(plain.removesuffix(".0"), "")
        if not rubric.is_choice:
            key = _other_label(rubric, given, known)
            if plain and not key:
                raise InputError(
                    f"{name}, row {row_number(items.judged, at)}: {column} is "
                    f"{shortened(given)!r}, which is {rubric.none_of}; round or correct it"
                )
        if plain and not key:
            raise InputError(
                f"{name}, row {row_number(items.judged, at)}: {column} is {shortened(given)!r}, "
                f"which is no option; the options are {', '.join(rubric.categories)} (--missing "
                "names values that are no labels)"
            )
        labels.append(key)
    frame = pd.DataFrame(
        {
            "unit_id": items.unit_ids,
            "rubric": rubric.name,
            "rater_id": re.sub(r"[^A-Za-z0-9._-]+", "-", column).strip("-")[:64] or "judge",
            "rater_kind": "model",
            "label": labels,
        }
    )
    frame = frame[frame["label"] != ""].reset_index(drop=True)
    if frame.empty:
        raise InputError(f"{name}: the column {column!r} has no labels; leave --judge out")
    return validate_ratings(frame)
