"""Comparisons: two subjects' answers to one prompt, rated side by side.

A comparison is an item with a second answer. It is kept like a pair whose two sides have the same
prompt, so that sampling, the order of the sides and graders need no special case. Who gave which
answer stands in two columns of the pair, which no rater ever sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import ANSWERS
from evenhand.study.prompts.images import with_images
from evenhand.study.prompts.items import (
    ItemColumns,
    Items,
    check_conversations,
    check_subjects,
    is_text,
    item_columns,
    judge_ratings,
    make_items,
)
from evenhand.study.tables.columns import require_columns, shortened
from evenhand.study.tables.formats import FIRST_ROW, row_number

if TYPE_CHECKING:
    import pandas as pd

ANSWERED_BY = ("subject_a", "subject_b")
"""Columns of a comparison that name who gave the answers."""
TOGETHER = "answers"
"""The subject under which the two answers of a comparison are kept."""
_SIDES = (("a", "b"), ("1", "2"))
_ANSWER = (
    *("response", "answer", "output", "completion", "generation", "reply"),
    *("conversation", "transcript", "messages"),
)
_SUBJECT = ("subject", "model", "system", "generator", "assistant", "model_name")
_CLUSTER = ("question_id", "prompt_id")
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
        """What each column is taken for, as (role, columns)."""
        own = [("answers", ", ".join(self.answers))]
        if self.subjects:
            own.append(("subjects", ", ".join(self.subjects)))
        others = [
            (role, ", ".join(self._as_given(each) for each in columns.split(", ")))
            for role, columns in self.items.said()
            if role not in ("response", "subject")
        ]
        return [*others[:1], *own, *others[1:]]

    @property
    def show(self) -> list[str]:
        """The columns that raters read, in their order."""
        return [name for each in self.items.show for name in self._as_given(each).split(", ")]

    def _as_given(self, column: str) -> str:
        return ", ".join(self.answers) if column == self.answer else column


def answer_columns(frame: pd.DataFrame, name: str, show: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the two columns of a file that hold two answers to a prompt, by their names, such as
    response_a and response_b; none where there are no two, or `show` names others.

    Raises InputError where two pairs of columns could be the answers.
    """
    own = (re.sub(r"[ -]", "_", _stem(each).casefold()) for each in show)
    words = dict.fromkeys((*_ANSWER, *own))
    found = [
        pair for pair in _sided(frame, words) if not show or all(each in show for each in pair)
    ]
    if len(found) > 1:
        given = " or ".join(", ".join(pair) for pair in found[:2])
        raise InputError(
            f"{name}: the two answers could be {given}; name what raters read with --show"
        )
    return found[0] if found else ()


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
    found = []
    for word in words:
        for sides in _SIDES:
            for form in forms:
                pair = [named.get(form.format(word=word, side=side), "") for side in sides]
                if all(pair):
                    found.append((pair[0], pair[1]))
    return found


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
    """Return what each column of a file of comparisons is: as named, or else by its name.

    Raises InputError where a named column is missing, or cannot be what it is named as.
    """
    require_columns(frame, [*show, *subject, *filter(None, (cluster, judge))], name)
    if len(subject) not in (0, 2):
        raise InputError(
            f"{name}: two answers have two subjects; write --subject model_a,model_b, the columns "
            "in the order of the answers"
        )
    subjects = tuple(subject) or next(iter(_sided(frame, _SUBJECT)), ())
    for column in subjects:
        if column in show:
            raise InputError(
                f"{name}: the column {column!r} says who answered, which raters may not see; take "
                "it out of --show"
            )
    first, second = answers
    answer = next(each for each in (_stem(first), *_ANSWER) if each and each not in frame)
    known = next((each for each in _CLUSTER if each in frame and each != judge), "")
    own = [answer if each == first else each for each in show if each != second]
    one = _with_one_answer(frame, answers, subjects, answer)
    # Beside two answers a column that is called like one is something else, such as a reference.
    alike = [each for each in _single(frame) if each not in (answer, *own)]
    one, cluster = one.drop(columns=alike), cluster or known
    items = item_columns(one, name, show=own, cluster=cluster, judge=judge, question=question)
    hidden = [*items.hidden, *(each for each in alike if each != judge and is_text(frame[each]))]
    return ComparisonColumns(
        answers=answers,
        subjects=subjects,
        answer=answer,
        items=replace(items, response=answer, subject="", hidden=tuple(hidden)),
    )


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
    `make_items` does.

    Raises InputError naming the first bad row: as of items, or where one subject gave both answers.
    """
    import pandas as pd

    _check_answers(frame, columns, name)
    items = make_items(
        _with_one_answer(frame, columns.answers, columns.subjects, columns.answer),
        columns.items,
        name,
        folder,
        rubrics,
    )
    if "response" in items.images:
        frame = with_images(frame, columns.answers[1:], name, folder)
    pairs = items.pairs
    if "prompt_a" not in pairs:
        pairs.insert(1, "prompt_a", "")
    pairs["prompt_b"] = pairs["prompt_a"]
    for own, column in zip(ANSWERED_BY, columns.subjects, strict=False):
        pairs[own] = frame[column].str.strip()
    of_a = items.responses.assign(subject=TOGETHER)
    of_b = of_a.assign(side="b", response=frame[columns.answers[1]].to_numpy())
    responses = pd.concat([of_a, of_b], ignore_index=True)
    return replace(items, pairs=pairs, responses=responses)


def _check_answers(frame: pd.DataFrame, columns: ComparisonColumns, name: str) -> None:
    if columns.answer in columns.items.conversations:
        check_conversations(frame[columns.answers[1]], name)
    if not columns.subjects:
        return
    for column in columns.subjects:
        check_subjects(frame[column], name)
    one, two = (frame[column].str.strip() for column in columns.subjects)
    if (same := (one == two).to_numpy()).any():
        at = int(same.argmax())
        raise InputError(
            f"{name}, row {row_number(frame, at)}: {shortened(one.iloc[at])!r} gave both answers; "
            "a comparison is between two subjects"
        )


def paired_rows(frame: pd.DataFrame, columns: ItemColumns, name: str) -> pd.DataFrame:
    """Return the comparisons in a file of single answers: every two subjects' answers to a prompt,
    the subjects in alphabetical order, with the columns that are the same for all of its answers.

    Raises InputError where the file names no prompt or no subjects, a subject answers a prompt
    twice, or no two answer the same.
    """
    import pandas as pd

    if not columns.prompt or not columns.subject:
        missing = "prompt" if not columns.prompt else "subject"
        raise InputError(
            f"{name}: comparisons need two answers in a row (response_a, response_b), or rows with "
            f"a prompt, a response and a subject; no column is taken for the {missing}"
        )
    given = (columns.response, columns.subject, columns.id)
    of_prompt = frame.groupby(columns.prompt, sort=False)
    alike = of_prompt.nunique().le(1).all()
    shared = [str(column) for column in frame if column not in given and alike.get(column, True)]
    rows = []
    for _, own in of_prompt:
        subjects = own[columns.subject].str.strip()
        if (again := subjects.duplicated().to_numpy()).any():
            row = own.index[int(again.argmax())] + FIRST_ROW
            raise InputError(
                f"{name}, row {row}: {shortened(subjects.loc[row - FIRST_ROW])!r} has answered "
                "this prompt in a row further up; keep one answer"
            )
        texts = dict(zip(subjects, own[columns.response], strict=True))
        known = own[shared].iloc[0].to_dict()
        for one, two in combinations(sorted(texts), 2):
            answers = {"response_a": texts[one], "response_b": texts[two]}
            rows.append(known | answers | dict(zip(ANSWERED_BY, (one, two), strict=True)))
    if not rows:
        raise InputError(f"{name}: no two subjects answer the same prompt; nothing can be compared")
    return pd.DataFrame(rows)


def golden_comparisons(rubric: Rubric) -> Items:
    """Return a rubric's golden answers as comparisons, in their order."""
    import pandas as pd

    frame = pd.DataFrame([golden.texts for golden in rubric.golden])
    columns = comparison_columns(frame, rubric.name, ANSWERS, show=rubric.variables)
    return make_comparisons(frame, columns, f"{rubric.name}.toml", rubrics=[rubric])


def comparison_judge(
    items: Items, columns: ComparisonColumns, rubric: Rubric, name: str
) -> pd.DataFrame:
    """Return a judge's verdicts as a grader's ratings: known by the options' keys and names, and
    where one option favours a side by that side (a, 1, model_a, the answer's column), the subject's
    name, or a word for a tie.

    Raises InputError naming the first row whose verdict is no option.
    """
    assert items.judged is not None  # noqa: S101 - the caller asked for a judge
    options = _option_by_side(rubric)
    own = {each.casefold() for option in rubric.options for each in (option.key, option.name)}
    subjects = items.pairs[list(ANSWERED_BY[: len(columns.subjects)])].to_numpy().tolist()
    labels = []
    for given, who in zip(items.judged["label"], subjects, strict=True):
        plain = given.casefold().removesuffix(".0")
        side = "?" if plain in own else _side_named(plain, columns.answers, who)
        labels.append(options.get(side, given))
    judged = items.judged.assign(label=labels)
    return judge_ratings(replace(items, judged=judged), rubric, columns.items.judge, name)


def _option_by_side(rubric: Rubric) -> dict[str, str]:
    """Return the option that favours a, b or "" (neither), where there is one alone."""
    favoured = [option.favours for option in rubric.options]
    return {each.favours: each.key for each in rubric.options if favoured.count(each.favours) == 1}


def _side_named(word: str, answers: Sequence[str], subjects: Sequence[str]) -> str:
    """Return the side that a judge's word names, "" for a tie, "?" for none.

    >>> [_side_named(word, ("x", "y"), ("gpt", "llama")) for word in ("model_2", "gpt", "draw", "")]
    ['b', 'a', '', '?']
    """
    if word in _TIE or word.startswith("tie "):
        return ""
    for place, side in enumerate("ab"):
        names = {f"{before}{end[place]}" for before in ("", "model_", "model ") for end in _SIDES}
        names |= {each[place].casefold() for each in (answers, subjects) if each}
        if word in names:
            return side
    return "?"
