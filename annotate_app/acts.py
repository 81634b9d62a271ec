"""Acts of people on the pages, each stored by the callback of a button.

Streamlit ends a run at its next call, a look at `st.session_state` among them, once another event
has come. So a callback asks nothing of Streamlit's until its act is stored, save what the fields of
the page hold, read all at once; and no run stores what somebody pressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import streamlit as st

from evenhand.annotate_app.html_texts import show_complaint
from evenhand.annotate_app.logins import LOGIN, visitor_of
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access import Role

Outcome = str | Callable[[], None] | None
"""What the next run shows: a sentence, or what a function draws."""
_OUTCOMES = "outcomes"


def storing_callback(
    place: str, admit: Callable[[], Any], store: Callable[..., Outcome], *arguments: object
) -> Callable[[], None]:
    """Return a callback that calls `store(admit(), *arguments)` with the values of the fields named
    `PLACE.NAME` by these names. Its outcome, or why the act is refused, is shown by `show_outcome`.
    Where `admit` refuses a visitor nothing is stored, and the page will refuse them too.
    """
    outcomes = present_outcomes()

    def carry_out() -> None:
        values = st.session_state.to_dict()  # unlike its items no call that ends a run
        keys = {str(key) for key in values if str(key).startswith(f"{place}.")}
        fields = {key.removeprefix(f"{place}."): values[key] for key in keys}
        try:
            admitted = admit()
        except InputError:
            return
        try:
            outcomes[place] = store(admitted, *arguments, **fields)
        except InputError as error:
            outcomes[place] = partial(show_complaint, str(error))

    return carry_out


def lead_callback(
    study: Study,
    place: str,
    store: Callable[..., Outcome],
    *arguments: object,
    roles: tuple[Role, ...] = ("lead",),
) -> Callable[[], None]:
    """Return the callback of `store(study, visitor, *arguments)`, for visitors of these roles."""
    admit = partial(visitor_of, study, LOGIN.held(), *roles)
    return storing_callback(place, admit, partial(store, study), *arguments)


@contextmanager
def act_form(
    study: Study,
    place: str,
    label: str,
    store: Callable[..., Outcome],
    *arguments: object,
    clears: bool = False,
    is_primary: bool = False,
) -> Iterator[None]:
    """Draw the form of an act on the lead's pages around its fields, `PLACE.NAME` by their keys,
    with the button that stores it and the outcome of the last one. `clears` empties the fields once
    they are sent; `is_primary` is for the page's main act.
    """
    with st.form(place, border=False, clear_on_submit=clears):
        yield
        act = lead_callback(study, place, store, *arguments)
        st.form_submit_button(label, on_click=act, type="primary" if is_primary else "secondary")
    show_outcome(place)


def show_outcome(place: str) -> None:
    """Show what came of the last act at a place, once."""
    outcome = present_outcomes().get(place)
    if isinstance(outcome, str):
        st.text(outcome)
    elif outcome is not None:
        outcome()
    present_outcomes().pop(place, None)  # which a run that has ended before shows again


def present_outcomes() -> MutableMapping[str, Outcome]:
    """Outcomes of the session's acts, by place; callbacks may add some, as they are ours."""
    outcomes: dict[str, Outcome] = st.session_state.setdefault(_OUTCOMES, {})
    return outcomes
