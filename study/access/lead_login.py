"""Logins of a study's lead and experts: by a link that works once, by their account, or by single
sign-on.

All give a login: a signed token that the browser keeps for one window and sends again on a reload.
Neither the link nor the login opens anything that an annotator's rater code or invite could open.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.access.accounts import (
    Role,
    copy_account,
    end_login,
    make_login,
    make_token,
    read_login,
    read_open_login,
    read_token,
    sign_in,
    sign_in_vouched,
    sign_out,
)
from evenhand.study.refused import Refused
from evenhand.study.settings.study_toml import FILE_NAME, OidcSettings, with_values
from evenhand.study.store.database import append
from evenhand.study.store.logs.decisions import note_settings
from evenhand.study.store.meta import study_secret
from evenhand.study.store.schema import lead_events
from evenhand.study.store.store import Store
from evenhand.study.tables.files import atomic_write
from evenhand.study.workspace import Study
from evenhand.texts import written

LINK_PARAMETER = "lead"
"""The query parameter of the app's address that holds a link's token."""
LINK_MINUTES = 60.0
LOGIN_MINUTES = 8 * 60.0

_LINK = "lead-link"
_BY_LINK = "lead-by-link"
_USED = "used"


@dataclass(frozen=True)
class Visitor:
    """The person logged in. `name` is recorded with every decision of theirs; who came by a link
    `has_account` no more than a name.
    """

    name: str
    role: Role
    has_account: bool = True


def new_link_token(store: Store) -> str:
    """Return the token of a link to the lead's pages, valid for an hour and for one use."""
    return make_token(store, _LINK, {"nonce": secrets.token_hex(8)}, LINK_MINUTES)


def open_link(store: Store, token: str) -> str:
    """The login that a link gives. Raises InputError where it is none, is over, or was used."""
    claims = read_token(store, _LINK, token)
    if not use_once(store, claims["nonce"]):
        raise InputError("this link was used already; ask for a new one")
    return make_login(store, _BY_LINK, {}, LOGIN_MINUTES)


def log_in(store: Store, name: str, password: str, address: str = "", browser: str = "") -> str:
    """The login of an account. Raises InputError where name or password is wrong."""
    return sign_in(store, name, password, LOGIN_MINUTES, address, browser)


def log_out(store: Store, login: str) -> None:
    """End a login on the server. One that is none or over is left."""
    end_login(store, _BY_LINK, login)
    sign_out(store, login)


def visitor(store: Store, login: str) -> Visitor:
    """Return the person of a login. Raises InputError where it is invalid or expired, or its
    account has ended.
    """
    with contextlib.suppress(InputError):
        read_open_login(store, _BY_LINK, login)
        return Visitor("lead", "lead", has_account=False)
    try:
        account = read_login(store, login)
    except InputError:
        raise InputError("this login is not valid or is over; log in again") from None
    return Visitor(account.name, account.role)


def use_once(store: Store, nonce: str) -> bool:
    """Return True at the first use of a link's or an ID token's nonce, and record the use."""
    used = sa.select(lead_events.c.event_id).where(
        lead_events.c.kind == _USED, lead_events.c.reason == nonce
    )
    with store.write() as connection:
        if connection.execute(used).first():
            return False
        event = {"kind": _USED, "rater_id": "", "reason": nonce, "done_by": ""}
        append(connection, lead_events, event)
    return True


# A study made beside the one whose lead made it, to be served at the same address.

_LIKE_HERE = ("entry", "trusted_proxies", "hosts")
"""What says who gets in: the world reaches the new study as it does this one."""


def settle_beside(study: Study, made: Study, lead: Visitor) -> bool:
    """Give a new study this one's ways in, and its lead's account. True if they have one here: who
    came by a link has none.
    """
    ways_in = study.config.session.model_dump(mode="json", include={*_LIKE_HERE})
    path = made.folder / FILE_NAME
    text = with_values(path.read_text("utf-8"), {"session": ways_in})
    atomic_write(path, text.encode())
    note_settings(made.store, text, lead.name)
    return lead.has_account and copy_account(study.store, made.store, lead.name)


# Single sign-on (OpenID Connect): the people whom an organisation vouches for, and their roles. An
# ID token counts once: it gives a login of the study's own, which ends as every other does. Its
# signature is checked before, by Streamlit and Authlib; its audience and expiry are checked here
# too.


def sign_on(study: Study, word: Mapping[str, Any], minutes: float) -> str | None:
    """Return a login for the subject of an ID token's claims (OpenID Connect Core 1.0, section 2).

    None where the token is not for this study, has expired, or was used before. Raises InputError,
    with a sentence for the visitor, where the study does not let them in.
    """
    settings = study.config.oidc
    issuer, subject, nonce = (word.get(name) for name in ("iss", "sub", "nonce"))
    if settings is None or not _is_for(settings.client_id, word):
        return None
    if not all(isinstance(each, str) and each for each in (issuer, subject, nonce)):
        return None
    if not use_once(study.store, str(nonce)):
        return None
    role, person = _role(settings, word), f"{issuer}\n{subject}".encode()
    # A rater code that stays the same for a person and does not reveal their address.
    digest = hmac.new(study_secret(study.store), person, hashlib.sha256).hexdigest()
    return sign_in_vouched(study.store, f"sso-{digest[:12]}", role, minutes)


def client_secret(settings: OidcSettings) -> str:
    """The app's secret at the provider. Raises InputError where single sign-on cannot work: the
    file may not send the secret, the library is not installed, or the environment has none.
    """
    name = settings.client_secret[2:-1]
    settings.check("[oidc] client_secret", name, settings.server_metadata_url)
    if find_spec("authlib") is None:
        raise InputError(written("single_sign_on.no_extra"))
    if not (secret := os.environ.get(name)):
        raise InputError(written("single_sign_on.no_secret", name=name))
    return secret


def cookie_secret(store: Store) -> str:
    """Return the study's own key that signs the cookies in which a browser carries the ID token."""
    return hmac.new(study_secret(store), b"single sign-on", hashlib.sha256).hexdigest()


def _is_for(client: str, word: Mapping[str, Any]) -> bool:
    meant, until = word.get("aud"), word.get("exp")
    audience = meant if isinstance(meant, list) else [meant]
    return client in audience and isinstance(until, int | float) and time.time() < until


def _role(settings: OidcSettings, word: Mapping[str, Any]) -> Role:
    """Return the role of the token's subject, lead before expert. An unverified email address may
    be anyone's, so it is not looked up, and the refusal does not reveal whether it is listed.
    """
    verified = word.get("email_verified") is True
    email = str(word.get("email", "")) if verified else ""
    lists: dict[Role, tuple[str, ...]] = {"lead": settings.leads, "expert": settings.experts}
    for role, people in lists.items():
        if f"sub:{word['sub']}" in people or any(_same_address(email, each) for each in people):
            return role
    raise Refused("not_invited" if verified else "email_not_verified")


def _same_address(email: str, listed: str) -> bool:
    """Capital letters make no other address; other scripts' look-alikes do."""
    return email.isascii() and not listed.startswith("sub:") and email.lower() == listed.lower()
