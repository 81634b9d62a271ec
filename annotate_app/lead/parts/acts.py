"""Acts on the lead's pages, stored as `annotate_app.acts` says, by who may."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from evenhand.annotate_app import acts
from evenhand.annotate_app.logins.lead_login import LOGIN, visitor_of
from evenhand.study import Study
from evenhand.study.access.accounts import Role


def storing(
    study: Study,
    place: str,
    store: Callable[..., acts.Outcome],
    *arguments: object,
    roles: tuple[Role, ...] = ("lead",),
) -> Callable[[], None]:
    """Return the callback of `acts.storing` for `store(study, who, *arguments)`."""
    admit = partial(visitor_of, study, LOGIN.known(), *roles)
    return acts.storing(place, admit, partial(store, study), *arguments)
