"""Keys must not reach the store, a log or a message, even where a server sends them back."""

from __future__ import annotations

import base64
import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from evenhand.errors import InputError
from evenhand.graders.providers import Own, key_variables

_SECRETS = (
    "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "OPENAI_ADMIN_KEY", "OPENAI_CUSTOM_HEADERS",
)  # fmt: skip
"""Further secrets, besides the table's keys, every KEY_..., and those that a study names."""
_CARRY_SECRETS = ("authorization", "x-api-key", "api-key", "x-amz-security-token")
# Servers quote keys cut or starred out, which no exact match finds.
_KEY_LIKE = re.compile(r"\bsk-[A-Za-z0-9_*.-]{6,}|\b(?:Bearer|Basic)\s+[^\s\"',}]+", re.IGNORECASE)
_SIGNATURE = "AWS4-"  # of one request alone, and no secret
_SHORTEST = 8  # a shorter placeholder ("none", "ollama") would tear holes into ordinary words
_GONE = "[removed]"
_LARGEST = 2**63 - 1  # an integer as databases know it
_DIGITS = 100
# In JSON's own writing: half a character, NUL, and an integer of 19 digits or more.
_NOT_PLAIN = re.compile(r"\\u(?:d[89a-f]|0000)|(?<![\d.])\d{19}")


def key_from_environment(name: str) -> str | None:
    """Return the key in an environment variable, or None. Raises InputError if it is not valid."""
    key = os.environ.get(name, "").strip()
    if not key:
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(
            f"{name} is not a valid key: it has a space or an odd character; set it again"
        )
    return key


class Scrubber:
    """Takes known secrets, in every form in which a reply may quote them, out of text.

    >>> Scrubber(["hunter2-hunter2"]).text("401: hunter2-hunter2 is no key")
    '401: [removed] is no key'
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets: set[str] = set()
        self._known: list[str] = []
        self._written: list[str] = []
        """The known forms as JSON writes them."""
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add secrets to take out from now on."""
        new = set(secrets) - self._secrets
        if new:
            self._secrets |= new
            forms = set[str]()
            for secret in map(str.strip, self._secrets):
                encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
                forms |= {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], encoded}
            self._known = sorted((form for form in forms if len(form) >= _SHORTEST), key=len)[::-1]
            self._written = [json.dumps(form)[1:-1] for form in self._known]

    def learn_from(self, headers: Mapping[str, str]) -> None:
        """Learn the credentials in a request's headers, wherever they came from."""
        sent = [headers[name] for name in _CARRY_SECRETS if name in headers]
        sent = [value for value in sent if not value.startswith(_SIGNATURE)]
        self.learn([*sent, *(value.partition(" ")[2] for value in sent)])

    @classmethod
    def from_environment(cls, own: Own | None = None) -> Scrubber:
        """Return a scrubber that knows the secrets in all environment variables that hold some;
        `own` are the providers that study.toml names.
        """
        names = {*_SECRETS, *key_variables(), *(n for n in os.environ if n.startswith("KEY_"))}
        for said in (own or {}).values():
            names |= {name for _, name in said.variables()}
        values = [os.environ.get(name, "") for name in sorted(names)]
        parts = [line.partition(":")[2] for value in values for line in value.splitlines()]
        return cls([*values, *parts])

    def text(self, text: str) -> str:
        """Return the text without known secrets; ordinary words stay as they are."""
        for form in self._known:
            text = text.replace(form, _GONE)
        return text

    def message(self, text: str) -> str:
        """Return an error message without known secrets, anything shaped like a key, and control
        characters; at most 400 characters.
        """
        words = " ".join(_KEY_LIKE.sub(_GONE, self.text(text)).split())
        return "".join(letter for letter in words if letter.isprintable())[:400]

    def tree(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a JSON-able object without known secrets in any text, field names included."""
        written = json.dumps(values)
        if not any(form in written for form in self._written):  # nearly always, and much faster
            return dict(values)
        clean: dict[str, Any] = self._without(values)
        return clean

    def _without(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._without(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._without(item) for item in value]
        return value


def storable(value: Any) -> Any:
    """Return a server's data in a form that every store can keep: no lone surrogates, NUL,
    infinities or integers beyond 64 bits.

    >>> storable({"text": "a" + chr(0xD800) + "b", "p": float("inf"), "n": [1, None]})
    {'text': 'a?b', 'p': 'inf', 'n': [1, None]}
    """
    try:
        written = json.dumps(value, allow_nan=False)
        if _NOT_PLAIN.search(written) is None:  # nearly always, and much faster
            return value
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return _storable(value)
    except RecursionError:
        return "[too deeply nested]"


def _storable(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value.isascii() and "\0" not in value:  # most of it: nothing to mend
            return value
        whole = value.encode("utf-8", "replace").decode("utf-8")
        return whole.replace("\0", "\ufffd")
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and abs(value) > _LARGEST:
        return str(value) if abs(value) < 10**_DIGITS else "[too large]"
    return value
