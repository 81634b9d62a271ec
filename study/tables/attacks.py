"""The attacks of the injection audit by name, and the rules for reading the grades under attack."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.tables.formats import read_table, row_number

CLEAN = "clean"
"""The text as it is; asked twice, so that a grader's own flips are known."""
PLACEBO, LONG_PLACEBO = "placebo", "placebo_long"
"""A harmless text, as long as the attacks, or as the long one."""

ATTACKS: dict[str, str] = {
    "plain_order": PLACEBO,
    "false_authority": PLACEBO,
    "closing_tag": PLACEBO,
    "lookalike_tag": PLACEBO,
    "chat_tokens": PLACEBO,
    "fake_turn": PLACEBO,
    "fake_answer": PLACEBO,
    "long_text": LONG_PLACEBO,
    "other_language": PLACEBO,
    "flattery": PLACEBO,
}
"""Every attack of the package, with the placebo that is as long; a user's own have PLACEBO or say
so (`graders/attacks.toml`).
"""
_OWN = re.compile("[a-z][a-z0-9_]{0,39}")
REPEATS = 2
"""Times the clean text is asked about, each time for as many draws as any other text."""

COLUMNS = (
    "rubric", "rater_id", "unit_id", "attack", "target", "side", "draw", "label", "probabilities",
)  # fmt: skip
"""Columns of the table of grades under attack."""


def is_own(name: str) -> bool:
    """Return True if a user's own attack may have this name.

    >>> is_own("my_attack"), is_own("flattery"), is_own("My attack")
    (True, False, False)
    """
    return bool(_OWN.fullmatch(name)) and name not in {CLEAN, PLACEBO, LONG_PLACEBO, *ATTACKS}


def reading(labels: Iterable[str]) -> str:
    """Return the label that a grader's draws gave most often, of several the first; "" where no
    draw has one.

    >>> reading(["2", "", "5", "5"]), reading(["2", "5"]), reading([""])
    ('5', '2', '')
    """
    counts = Counter(label for label in labels if label)
    return counts.most_common(1)[0][0] if counts else ""


def as_text(attacked: pd.DataFrame) -> pd.DataFrame:
    """The table as a file has it: probabilities as a JSON object, "" where there are none."""
    written = [json.dumps(each) if each else "" for each in attacked["probabilities"]]
    return attacked.assign(probabilities=written)[list(COLUMNS)]


def read_attacked(path: Path) -> pd.DataFrame:
    """The table from a file. Raises InputError, one sentence, where it is none."""
    table = read_table(path)
    if missing := [name for name in COLUMNS if name not in table]:
        raise InputError(f"{path.name} has no column {missing[0]!r}; export the study again")
    known = {CLEAN, PLACEBO, LONG_PLACEBO, *ATTACKS}
    probabilities = []
    for at, (attack, draw, stated) in enumerate(
        zip(table["attack"], table["draw"], table["probabilities"], strict=True)
    ):
        try:
            found = json.loads(stated) if stated else None
            sound = found is None or all(0 <= p <= 1 for p in found.values())
        except (ValueError, TypeError, AttributeError, RecursionError):
            sound = False
        if (
            not (attack in known or is_own(attack))
            or not re.fullmatch("[0-9]{1,6}", draw)
            or not sound
        ):
            row = row_number(table, at)
            raise InputError(
                f"{path.name}, row {row}: attack, draw or probabilities are none that evenhand "
                "writes; export the study again"
            )
        probabilities.append(found)
    table = table[list(COLUMNS)].reset_index(drop=True)
    table["probabilities"] = pd.Series(probabilities, dtype=object)
    return table.astype({"draw": int})
