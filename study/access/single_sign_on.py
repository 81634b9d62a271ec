"""Single sign-on (OpenID Connect): the people whom an organisation vouches for, and their roles.

An ID token counts once: it gives a login of the study's own, which ends as every other does. Its
signature is checked before, by Streamlit and Authlib; its audience and expiry are checked here too.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from evenhand.errors import InputError
from evenhand.study.access.accounts import Role, sign_in_vouched
from evenhand.study.access.lead_login import use_once
from evenhand.study.refused import Refused
from evenhand.study.settings.session import OidcSettings
from evenhand.study.store.meta import study_secret
from evenhand.study.store.store import Store
from evenhand.study.workspace import Study
from evenhand.texts import written


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
    role = _role(settings, word)
    return sign_in_vouched(study.store, _code(study.store, f"{issuer}\n{subject}"), role, minutes)


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


def _code(store: Store, person: str) -> str:
    """Return a rater code that stays the same for a person and does not reveal their address."""
    digest = hmac.new(study_secret(store), person.encode(), hashlib.sha256).hexdigest()
    return f"sso-{digest[:12]}"
