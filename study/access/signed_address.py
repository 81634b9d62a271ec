"""Addresses that Prolific has signed: who comes with one is the participant that it names.

Facts: docs.prolific.com, "Retrieve JSON Web Key Set (JWKS)": RS256, the page's origin as `aud`, an
`exp`, and what the address asks for under `prolific`.
"""

from __future__ import annotations

import json
import math
import threading
import time
import urllib.request
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.study.refused import Refused
from evenhand.texts import written

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

    from evenhand.study.settings.session import ProlificSettings

TOKEN = "prolific_token"  # noqa: S105 - the name of a parameter

_LONGEST_TOKEN = 8_000
_LARGEST_KEYS = 1_000_000
_DAY, _MINUTE = 86_400.0, 60.0
_PATIENCE = 5.0
"""Seconds to wait for the keys."""
_CLOCKS = 60
"""Seconds by which Prolific's clock may differ from this machine's."""


def check_signing() -> None:
    """Raise InputError where signatures cannot be checked, as the library is not installed."""
    if find_spec("joserfc") is None:
        raise InputError(written("single_sign_on.no_signing"))


def signed_ids(settings: ProlificSettings, token: str) -> dict[str, str]:
    """The ids of the participant whom a token names, by the names that an address has for them.

    Raises Refused where Prolific has not signed it for this page, or its time is over.
    """
    from joserfc import jwt
    from joserfc.errors import JoseError

    if not token or len(token) > _LONGEST_TOKEN:
        raise Refused("prolific_unsigned")
    must_have = jwt.JWTClaimsRegistry(
        aud={"essential": True, "values": [settings.signed_for, f"{settings.signed_for}/"]},
        exp={"essential": True},
        leeway=_CLOCKS,
    )
    try:
        keys = _KEYS.of(settings.signing_keys, token)
        read = jwt.decode(token, keys, algorithms=["RS256"])
        must_have.validate(read.claims)
    except Refused:
        raise
    except (JoseError, ValueError, TypeError, AttributeError) as error:  # any text may come
        raise Refused("prolific_unsigned") from error
    said = read.claims.get("prolific")
    ids = said if isinstance(said, Mapping) else {}
    return {str(name): value for name, value in ids.items() if isinstance(value, str)}


class _Keys:
    """Prolific's public keys, asked for once a day, and when a token names one that is new; once a
    minute at most, whether they could be had or not.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, KeySet | None]] = {}

    def of(self, url: str, token: str) -> KeySet:
        """The keys at an address. Raises Refused where there are none and none can be had."""
        with self._lock:
            asked, keys = self._known.get(url, (-math.inf, None))
            age = time.monotonic() - asked
            wanted = keys is None or age > _DAY or not _has_key_of(keys, token)
            if wanted and age > _MINUTE:
                keys = _fetched(url) or keys
                self._known[url] = (time.monotonic(), keys)
            if keys is None:
                raise Refused("prolific_keys_away")
            return keys


_KEYS = _Keys()


def _has_key_of(keys: KeySet, token: str) -> bool:
    from joserfc.jws import extract_compact

    named = extract_compact(token.encode()).headers().get("kid")
    return any(key.kid == named for key in keys.keys)


def _fetched(url: str) -> KeySet | None:
    """The keys at an address; None where they cannot be had."""
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    try:
        with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:  # noqa: S310 - see settings
            held: Any = json.loads(answer.read(_LARGEST_KEYS))
        return KeySet.import_key_set(held)
    except (OSError, ValueError, KeyError, TypeError, JoseError):
        return None
