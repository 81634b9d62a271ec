"""Other names of a ratings file's columns, and how they are mapped to ours."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

SHORT = {
    "unit": "unit_id",
    "rater": "rater_id",
    "kind": "rater_kind",
    "label": "label",
    "cluster": "cluster_id",
}
"""Short names in `--columns` of the columns that most files have; others keep their names."""
_ELSEWHERE = {
    "unit_id": "unit item item_id id unit_no example example_id doc doc_id document document_id "
    "instance instance_id question question_id sample sample_id task task_id text_id case case_id",
    "rater_id": "rater who annotator annotator_id worker worker_id coder coder_id judge judge_id "
    "user user_id grader grader_id labeler labeler_id labeller reviewer evaluator annotated_by",
    "rater_kind": "kind type rater_type annotator_type who_type source_type role",
    "label": "labels rating ratings score grade verdict annotation category class answer value "
    "judgment judgement decision choice",
    "rubric": "criterion criteria dimension aspect metric attribute scheme question task item name",
}
_PEOPLE = re.compile(
    r"(^|_)(annotator|worker|coder|labell?er|participant|turker)(_?ids?)?$|^(annotated_by|expert)$"
)
_ITEMS = frozenset(
    (
        _ELSEWHERE["unit_id"] + " prompt prompt_id input input_id text pair pair_id problem "
        "problem_id instruction conversation conversation_id dialogue dialogue_id uid uuid row "
        "row_id index unnamed_0"
    ).split()
) - {"task", "sample"}
"""A task may be a kind of item, and a sample the part of the data or the number of a draw."""


def renamed(frame: pd.DataFrame, columns: Mapping[str, str], source: str) -> pd.DataFrame:
    """The table with the columns `{ours: theirs}` under our names.

    Raises InputError where one of theirs is not there, or ours is there already.
    """
    for ours, theirs in columns.items():
        if theirs not in frame:
            listed = ", ".join(map(str, frame.columns))
            raise InputError(f"{source} has no column {theirs!r}; it has {listed}")
        if ours in frame and ours != theirs:
            raise InputError(
                f"{source} has a column {ours!r} already; rename it, or leave {theirs!r} as it is"
            )
    return frame.rename(columns={theirs: ours for ours, theirs in columns.items()})


def columns_in(text: str | None) -> dict[str, str]:
    """`{ours: theirs}` as `--columns unit=item,rater=who` has it. Raises InputError where a part
    says something else.

    >>> columns_in("unit=item,p_positive=score")
    {'unit_id': 'item', 'p_positive': 'score'}
    """
    from evenhand.study.tables.ratings import RATINGS_COLUMNS

    found: dict[str, str] = {}
    for part in (text or "").split(",") if text is not None else ():
        name, _, theirs = (word.strip() for word in part.partition("="))
        ours = SHORT.get(name, name)
        if not theirs or ours not in (*RATINGS_COLUMNS, "cluster_id"):
            raise InputError(
                f"--columns: {part.strip()!r} is not valid; write OURS=THEIRS, such as unit=item, "
                f"where OURS is one of {', '.join((*SHORT, *RATINGS_COLUMNS[5:]))}"
            )
        found[ours] = theirs
    return found


def columns_option(columns: Mapping[str, str]) -> str:
    """Return the command-line option for `{ours: theirs}`.

    >>> columns_option({"unit_id": "item", "p_positive": "P yes"})
    "--columns 'unit=item,p_positive=P yes'"
    """
    short = {ours: name for name, ours in SHORT.items()}
    parts = [f"{short.get(ours, ours)}={theirs}" for ours, theirs in columns.items()]
    return f"--columns {shlex.quote(','.join(parts))}"


def likely_columns(
    given: Iterable[str],
    missing: Iterable[str],
    fits: Callable[[str, str], bool] = lambda ours, theirs: True,
) -> dict[str, str]:
    """Guess which of the given columns are the missing ones: `{ours: theirs}`. `fits` returns False
    where the cells of theirs show that it is not ours.

    >>> likely_columns(["Item", "topic", "rateri_d"], ["unit_id", "rater_id", "label"])
    {'unit_id': 'Item', 'rater_id': 'rateri_d'}
    """
    from difflib import get_close_matches

    free = {_plain(name): name for name in given if "," not in name}
    found: dict[str, str] = {}
    for ours in missing:
        known = [ours, *_ELSEWHERE.get(ours, "").split()]
        able = [name for name, theirs in free.items() if fits(ours, theirs)]
        same = [name for name in known if name in able] or get_close_matches(ours, able, 1, 0.8)
        if same:
            found[ours] = free.pop(same[0])
    return found


def sure_columns(
    given: Iterable[str], missing: Iterable[str], fits: Callable[[str, str], bool]
) -> dict[str, str]:
    """Return which of the given columns are the missing ones, `{ours: theirs}`, of those for which
    one column alone has a usual name and `fits`; of several columns of items the most usual.

    >>> sure_columns(["item", "id", "worker", "rating", "score"],
    ...              ["unit_id", "rater_id", "label"], lambda ours, theirs: True)
    {'unit_id': 'item', 'rater_id': 'worker'}
    """
    columns, found = list(given), {}
    for ours in missing:
        usual = _ELSEWHERE[ours].split()
        able = [name for name in columns if _plain(name) in usual and fits(ours, name)]
        if ours == "unit_id":
            able = sorted(able, key=lambda name: usual.index(_plain(name)))[:1]
        if len(able) == 1:
            found[ours] = able[0]
            columns.remove(able[0])
    return found


def unit_columns(given: Iterable[str]) -> list[str]:
    """Return the given columns with a usual name for items, the most usual first."""
    usual = _ELSEWHERE["unit_id"].split()
    named = [name for name in given if _plain(name) in usual]
    return sorted(named, key=lambda name: usual.index(_plain(name)))


def people_column(name: str) -> bool:
    """Return True if a column of raters has a usual name for one of annotators."""
    return bool(_PEOPLE.search(_plain(name)))


def names_items(column: str) -> bool:
    """Return True if a column has a usual name for a column of items.

    >>> [names_items(column) for column in ("Prompt ID", "item", "topic")]
    [True, True, False]
    """
    return _plain(column) in _ITEMS


def _plain(name: str) -> str:
    """
    >>> _plain(" Unit ID "), _plain("raterId")
    ('unit_id', 'rater_id')
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^0-9a-z]+", "_", words.casefold()).strip("_")
