"""The login to the lead's pages as this session holds it: the visitor, and the way out.

Below the door (`annotate_app.lead_entry`) and the pages (`annotate_app.lead`), which both ask here.
"""

from __future__ import annotations

from evenhand.annotate_app.logins.browser import give_pass, take_pass
from evenhand.annotate_app.logins.kept_login import KeptLogin
from evenhand.errors import InputError, StoreAway
from evenhand.study import Study
from evenhand.study.access.accounts import Role
from evenhand.study.access.lead_login import Visitor, log_out, visitor
from evenhand.texts import written

LOGIN = KeptLogin("lead")
WAITED = "waited"
"""Set in a session that has been shown, in place of its page, that the store is away."""


def leave(study: Study) -> None:
    """Log out: the login is no longer valid, here or anywhere."""
    log_out(study.store, LOGIN.known())
    LOGIN.forget(also_at_provider=True)
    take_pass()


def require(study: Study, *roles: Role) -> Visitor:
    """Return the visitor. Raises InputError unless their login is valid, and for one of these
    roles.

    Every page checks, on every run: an expired login, or an account that has ended, closes it.
    """
    try:
        found = visitor(study.store, LOGIN.known())
    except InputError:
        take_pass()
        raise
    if found.role == "lead":
        login = LOGIN.known()
        give_pass(lambda: _is_good(study, login))
    if found.role not in roles:
        raise InputError(written("lead_door.not_yours"))
    return found


def _is_good(study: Study, login: str) -> bool:
    try:
        return visitor(study.store, login).role == "lead"
    except (InputError, StoreAway):
        return False


def admitted(study: Study, *roles: Role) -> Visitor | None:
    """As `require`, for a callback, which runs before the page checks: None where that will refuse.

    An act is carried out in a callback so that it is never lost: what a run reads is gone where
    another event interrupts the run before, and no event comes before the callbacks.
    """
    try:
        return require(study, *roles)
    except InputError:
        return None
