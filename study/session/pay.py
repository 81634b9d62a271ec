"""The amount that each person is owed when their part is over, and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study.settings.session import PaySettings

_PAID = ("complete", "screened_out", "nothing_left")
"""Ends with an amount of their own in [pay]."""
_NOTHING = ("no_consent", "returned", "rejected")
_TO_DECIDE = ("excluded", "timed_out")
"""Ends for which nothing is paid until a person has decided."""


@dataclass(frozen=True)
class Owed:
    """`amount` in the study's currency; None where [pay] sets none or a person has to decide."""

    amount: float | None
    why: str


def owed(state: str, units: int, whole: int, pay: PaySettings | None) -> Owed:
    """Return the amount owed to a rater in this state with `units` answered of the `whole` of a
    part.

    `whole` is 0 where it is not known yet.
    """
    if state == "stopped":
        return _for_stopped(units, whole, pay)
    if state in _TO_DECIDE:
        return Owed(None, written(f"pay.{state}"))
    end = state if state in (*_PAID, *_NOTHING) else "at_work"
    why = written(f"pay.{end}")
    if pay is None:
        return Owed(None, why)
    return Owed(getattr(pay, end) if end in _PAID else 0.0, why)


def _for_stopped(units: int, whole: int, pay: PaySettings | None) -> Owed:
    if pay is not None and pay.stopped == "full":
        return Owed(pay.complete, written("pay.stopped_full"))
    if not whole:
        return Owed(None, written("pay.stopped_unknown", units=units))
    share = min(units / whole, 1.0)
    amount = None if pay is None else round(pay.complete * share, 2)
    return Owed(amount, written("pay.stopped", units=units, whole=whole))
