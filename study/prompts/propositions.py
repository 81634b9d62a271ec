"""Propositions: one statement each, put to subjects as it is worded, paraphrased and repeated.

A proposition study is kept like a study of pairs whose prompts have one side: every prompt is a row
of its own, with the proposition as its cluster and its wording, paraphrase and repeat as columns,
so that sampling, the annotation page, graders and the analysis need no special case.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.study.prompts.pairs import PAIR_ID, RESERVED, numbered_ids
from evenhand.study.tables.columns import (
    first_repeat,
    refuse_columns,
    require_columns,
    require_rows,
)
from evenhand.study.tables.formats import FIRST_ROW, read_table, row_number

if TYPE_CHECKING:
    import pandas as pd

CLUSTER = "proposition"
STATEMENT = "statement"
VARIANTS = ("wording", "paraphrase", "repeat")
"""Columns that tell prompts on one proposition apart."""

PLAIN = {"plain": "{statement}\n\nDo you agree or disagree with this statement, and why?"}
_SLOT = "{statement}"


def read_propositions(
    path: str | Path, wordings: str | Path | None = None, repeats: int = 1
) -> pd.DataFrame:
    """Read the prompts of a propositions file, one row each: `pair_id, proposition, statement,
    wording, paraphrase, repeat, prompt_a`.

    The propositions file has `id` and `text`; rows that share an id are paraphrases of each other,
    and every other column (groups, topics) is carried along. The wordings file has `wording` (a
    name) and `template`, a text with {statement} in it; without one there is a plain wording. Each
    prompt is put `repeats` times. Raises InputError naming the first bad row.
    """
    import pandas as pd

    if repeats < 1:
        raise InputError(f"repeats is {repeats}; every prompt is put once at least")
    statements = _read_statements(path)
    templates = _read_wordings(wordings) if wordings else PLAIN
    own = [column for column in statements if column not in ("id", "text", "paraphrase")]
    rows = [
        {
            CLUSTER: statement["id"],
            STATEMENT: statement["text"],
            "wording": wording,
            "paraphrase": statement["paraphrase"],
            "repeat": str(repeat),
            "prompt_a": template.replace(_SLOT, statement["text"]),
            **{column: statement[column] for column in own},
        }
        for statement in statements.to_dict("records")
        for wording, template in templates.items()
        for repeat in range(1, repeats + 1)
    ]
    frame = pd.DataFrame(rows)
    frame.insert(0, "pair_id", numbered_ids(len(frame)))
    return frame


def _read_statements(path: str | Path) -> pd.DataFrame:
    frame = read_table(path)
    name = Path(path).name
    require_columns(frame, ("id", "text"), name, "; a propositions file needs id and text")
    taken = {"pair_id", CLUSTER, STATEMENT, "wording", "repeat", "prompt_a", *RESERVED}
    refuse_columns(frame, taken, name)
    require_rows(frame, name, "propositions")
    for row, proposition, text in zip(
        frame.index + FIRST_ROW, frame["id"], frame["text"], strict=True
    ):
        if not PAIR_ID.fullmatch(proposition):
            raise InputError(
                f"{name}, row {row}: id {proposition!r} must be 1-64 characters, no space or |"
            )
        if not text.strip():
            raise InputError(f"{name}, row {row}: text is empty; fill it in or take the row out")
    if again := first_repeat(frame, ["id", "text"]):
        row = row_number(frame, again[0])
        raise InputError(f"{name}, row {row}: the same text stands under this id further up")
    if "paraphrase" not in frame:
        frame["paraphrase"] = (frame.groupby("id").cumcount() + 1).astype(str)
    elif again := first_repeat(frame, ["id", "paraphrase"]):
        row = row_number(frame, again[0])
        raise InputError(f"{name}, row {row}: this paraphrase of the proposition is there already")
    return frame


def _read_wordings(path: str | Path) -> dict[str, str]:
    frame = read_table(path)
    name = Path(path).name
    needed = ("wording", "template")
    require_columns(frame, needed, name, "; a wordings file needs wording and template")
    require_rows(frame, name, "wordings")
    found: dict[str, str] = {}
    for row, wording, template in zip(
        frame.index + FIRST_ROW, frame["wording"], frame["template"], strict=True
    ):
        if not wording.strip() or wording in found:
            raise InputError(f"{name}, row {row}: give every wording a name of its own")
        if _SLOT not in template:
            raise InputError(f"{name}, row {row}: the template has no {_SLOT} to put the text in")
        found[wording] = template
    return found
