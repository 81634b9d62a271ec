"""The clients of the Anthropic SDK: Anthropic itself, and Claude on Bedrock, Vertex and Foundry.

A cloud's credentials are those that its own tools use - a profile or a role with AWS, the
application default with Google - unless the environment holds a token.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.graders.clients.keys import headers_for, key_for
from evenhand.graders.clients.transport import pooled
from evenhand.graders.failures import CONNECT, SPARE
from evenhand.graders.scrub import Scrubber
from evenhand.graders.spec import GraderSpec
from evenhand.texts import written

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_NO_KEY = "none"  # servers without keys still want the header
_LIBRARIES = {"bedrock": "boto3", "vertex": "google.auth"}


def claude_client(spec: GraderSpec, scrubber: Scrubber, timeout: float) -> AsyncAnthropic:
    """Return the SDK client for a grader's address. Raises InputError where a key, a region, a
    project or the cloud's own library is missing.
    """
    import anthropic

    place = spec.at
    options: dict[str, Any] = {
        "base_url": place.address,
        "max_retries": 0,
        "timeout": anthropic.Timeout(timeout + SPARE, connect=CONNECT),
        "http_client": pooled(anthropic.DefaultAioHttpClient, scrubber),
        "default_headers": headers_for(
            place, scrubber, "ANTHROPIC_CUSTOM_HEADERS", anthropic.Omit()
        ),
    }
    cloud = place.provider.client
    key = key_for(spec)
    if key is None and not (cloud in _LIBRARIES and place.is_own):
        key = _NO_KEY  # the SDK must not look for one itself, which would be for another address
    if key is None:
        _check_library(spec, cloud)
    options["access_token" if cloud == "vertex" else "api_key"] = key
    client_class: Any = {
        "": anthropic.AsyncAnthropic,
        "bedrock": anthropic.AsyncAnthropicBedrock,
        "vertex": anthropic.AsyncAnthropicVertex,
        "foundry": anthropic.AsyncAnthropicFoundry,
    }[cloud]
    try:
        client: AsyncAnthropic = client_class(**options)
    except ValueError as error:  # such as a region that nothing names
        raise InputError(f"grader {spec.text!r}: {scrubber.message(str(error))}") from None
    if cloud == "vertex" and not getattr(client, "project_id", None):
        raise InputError(written("provider.no_project", grader=spec.text))
    return client


def _check_library(spec: GraderSpec, cloud: str) -> None:
    """Check now that the cloud's library is installed; the SDK would fail only at the first
    request. Raises InputError where it is missing.
    """
    try:
        import_module(_LIBRARIES[cloud])
    except ImportError:
        sentence = written("provider.no_library", grader=spec.text, extra=cloud)
        raise InputError(sentence) from None
