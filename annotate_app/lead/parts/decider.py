"""The options, the reason and the keys of a decision, as a part of the page of its own.

A choice stays in the browser until it is sent, with the unit that it is about: keys pressed faster
than the page is drawn never decide the next unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlit.components.v2 import component

from evenhand.rubrics.options import Option

LONGEST_REASON = 4000
_KEY = "decision.decider"
_HERE = Path(__file__).parent
_mount = component(
    "evenhand_decider",
    html=(_HERE / "decider.html").read_text("utf-8"),
    css=(_HERE / "decider.css").read_text("utf-8"),
    js=(_HERE / "decider.js").read_text("utf-8"),
)


@dataclass(frozen=True)
class Sent:
    """A decision on the unit of this token, or the wish to pass it over."""

    token: str
    label: str = ""
    reason: str = ""
    passes: bool = False


def show_decider(
    token: str,
    options: Sequence[Option],
    number: str,
    complaint: str,
    take: Callable[[], None],
    *,
    several: bool = False,
) -> None:
    """Draw the part for the unit of this token. Without options a number is typed, `number` in
    words; `several` options may apply. `take` is called before the run that follows a decision, on
    whichever unit; the field `decision.decider` holds it then, as `sent`.
    """
    data = {
        "token": token,
        "options": option_rows(options),
        "number": number,
        "several": several,
        "complaint": complaint,
    }
    _mount(key=_KEY, data=data, on_sent_change=take)


def option_rows(options: Sequence[Option]) -> list[dict[str, str]]:
    """The options as the page draws them, each with the digit that chooses it, if there is one.

    Options whose keys are digits have these; else the first nine are numbered.
    """
    own = any(option.key.isdecimal() and len(option.key) == 1 for option in options)
    rows = []
    for place, option in enumerate(options, start=1):
        digit = option.key if own else str(place)
        rows.append(
            {
                "key": option.key,
                "name": option.name,
                "description": option.description,
                "digit": digit if digit in "123456789" or (own and digit == "0") else "",
            }
        )
    return rows


def read_decision(sent: Any) -> Sent | None:
    """Read a decision from the page; None if malformed, since any client may send one."""
    if not isinstance(sent, dict):
        return None
    texts = [sent.get(name, "") for name in ("token", "label", "reason")]
    if not all(isinstance(text, str) and len(text) <= LONGEST_REASON for text in texts):
        return None
    token, label, reason = texts
    return Sent(token, label, reason, passes=sent.get("passes") is True)
