"""What a request carries of keys and headers, by the address that it goes to."""

from __future__ import annotations

import os
from typing import Any

from evenhand.errors import InputError
from evenhand.graders.providers import Place
from evenhand.graders.providers.place import filled_from_environment
from evenhand.graders.scrub import Scrubber, key_from_environment
from evenhand.graders.spec import GraderSpec
from evenhand.study.settings.providers import NAMED
from evenhand.texts import written


def key_for(spec: GraderSpec) -> str | None:
    """Return the key for the grader's address, or None. Raises InputError where one is required."""
    place = spec.at
    key = key_from_environment(place.key_env) if place.key_env else None
    if key is None and place.needs_key:
        said = {"host": place.host, "variable": place.key_env}
        raise InputError(written("provider.needs_key", grader=spec.text, **said))
    return key


def headers_for(place: Place, scrubber: Scrubber, variable: str, omit: Any) -> dict[str, Any]:
    """Return the headers of every request: those that study.toml names for this address.

    The SDK adds those of its `variable` (ANTHROPIC_CUSTOM_HEADERS) wherever it goes. They are for
    its provider's own address; anywhere else they are left out, by the SDK's `omit`.
    """
    headers: dict[str, Any] = {}
    if place.provider.name != variable.partition("_")[0].lower() or not place.is_own:
        lines = os.environ.get(variable, "").splitlines()
        headers |= {line.partition(":")[0].strip(): omit for line in lines if ":" in line}
    for name, text in place.headers.items():
        headers[name] = filled_from_environment(text, f"the header {name!r} in study.toml")
        scrubber.learn([os.environ[each].strip() for each in NAMED.findall(text)])
    return headers


def told_by_study(spec: GraderSpec) -> list[str]:
    """Return one sentence for each secret that study.toml sends to an address, because a study may
    come from somebody else.
    """
    place = spec.at
    if not place.is_own:
        return []
    said = {"grader": spec.text, "host": place.host}
    sent = {name for text in place.headers.values() for name in NAMED.findall(text)}
    told = [written("provider.header_goes", variable=name, **said) for name in sorted(sent)]
    if place.provider.by_study and os.environ.get(place.key_env):
        told.insert(0, written("provider.key_goes", variable=place.key_env, **said))
    return told
