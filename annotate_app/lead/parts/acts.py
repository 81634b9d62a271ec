"""Acts on the lead's pages: stored in a callback (see `annotate_app.acts`), by who may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from evenhand.annotate_app.acts import Outcome, carry_out, present_outcomes
from evenhand.annotate_app.logins.lead_login import LOGIN
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.access.accounts import Role
from evenhand.study.access.lead_login import visitor


def storing(
    study: Study,
    place: str,
    store: Callable[..., Outcome],
    *arguments: object,
    roles: Sequence[Role] = ("lead",),
) -> Callable[[], None]:
    """Return a callback that calls `store(study, who, *arguments)`, with the values of the fields
    named `PLACE.NAME` by these names. Of who may not, nothing is stored: the page will refuse them.
    """
    own = partial(_store, study, LOGIN.known(), roles, store, arguments)
    return partial(carry_out, place, present_outcomes(), own)


def _store(
    study: Study,
    login: str,
    roles: Sequence[Role],
    store: Callable[..., Outcome],
    arguments: Sequence[object],
    /,
    **fields: Any,
) -> Outcome:
    try:
        who = visitor(study.store, login)
    except InputError:
        return None
    return store(study, who, *arguments, **fields) if who.role in roles else None
