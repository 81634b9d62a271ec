"""What people do on the pages (consent, a decision, a change of settings), stored by the callback
of the button that they press.

Once another event arrives, Streamlit ends a run of the script at its next call, even one that reads
a value of `st.session_state`: an act that a run stores could be lost. Acts are therefore stored by
callbacks, which read all fields at once and call nothing else of Streamlit before.
"""

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
"""What the next run shows of an act: a sentence, what a function draws, or nothing."""
_OUTCOMES = "outcomes"  # key in the session


def storing_callback(
    act_name: str, admit: Callable[[], Any], store: Callable[..., Outcome], *arguments: object
) -> Callable[[], None]:
    """Return a callback that calls `store(admit(), *arguments, NAME=value, ...)` with the values of
    all fields with the key `ACT.NAME`. `show_outcome(act_name)` then shows what `store` returned,
    or the InputError that it raised. If `admit` raises one, nothing is stored, and the page that is
    drawn next refuses the visitor.
    """
    outcomes = present_outcomes()

    def store_act() -> None:
        values = st.session_state.to_dict()  # ends no run, unlike reading a single value
        keys = {str(key) for key in values if str(key).startswith(f"{act_name}.")}
        fields = {key.removeprefix(f"{act_name}."): values[key] for key in keys}
        try:
            admitted = admit()
        except InputError:
            return
        try:
            outcomes[act_name] = store(admitted, *arguments, **fields)
        except InputError as error:
            outcomes[act_name] = partial(show_complaint, str(error))

    return store_act


def lead_callback(
    study: Study,
    act_name: str,
    store: Callable[..., Outcome],
    *arguments: object,
    roles: tuple[Role, ...] = ("lead",),
) -> Callable[[], None]:
    """Return the callback of `store(study, visitor, *arguments)`, for a visitor of these roles."""
    admit = partial(visitor_of, study, LOGIN.held(), *roles)
    return storing_callback(act_name, admit, partial(store, study), *arguments)


@contextmanager
def act_form(
    study: Study,
    act_name: str,
    label: str,
    store: Callable[..., Outcome],
    *arguments: object,
    clears: bool = False,
    is_primary: bool = False,
) -> Iterator[None]:
    """Draw a form on the lead's pages around the fields drawn in this context, whose keys are
    `ACT.NAME`; then the button that stores them, and the outcome of the last time. `clears`
    empties the fields once they are sent; `is_primary` is for the page's main act.
    """
    with st.form(act_name, border=False, clear_on_submit=clears):
        yield
        act = lead_callback(study, act_name, store, *arguments)
        st.form_submit_button(label, on_click=act, type="primary" if is_primary else "secondary")
    show_outcome(act_name)


def show_outcome(act_name: str) -> None:
    """Show the outcome of the last act of this name, once."""
    outcome = present_outcomes().get(act_name)
    if isinstance(outcome, str):
        st.text(outcome)
    elif outcome is not None:
        outcome()
    present_outcomes().pop(act_name, None)  # last: a run that ends before leaves it to the next


def present_outcomes() -> MutableMapping[str, Outcome]:
    """Return the outcomes of this session's acts, by name; callbacks add theirs."""
    outcomes: dict[str, Outcome] = st.session_state.setdefault(_OUTCOMES, {})
    return outcomes
