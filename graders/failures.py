"""Failed requests, and the one policy by which they are tried again.

GraderFailure
|-- Transient   worth another attempt: a busy or broken server, no connection, no readable reply
|-- Rejected    this request never will be
|   `-- Filtered    because of what the unit's text says
`-- Stopped     no request of this grader will be: credit, key, model, address, a long wait

`refusals.toml` classifies servers' refusals by status and wording.
"""

from __future__ import annotations

import email.utils
import json
import math
import os
import re
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evenhand.graders.providers import GraderSpec, Scrubber
from evenhand.texts import table_of, written

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

ATTEMPTS = 8
HANGS = 2
"""The number of times that a request may time out before it counts as failed."""
SPARE = 5.0
"""Seconds that the SDKs wait beyond our own limit, which is the one that counts."""
CONNECT = 7.0
"""Seconds for a connection, so that a network that swallows requests is reported within ten."""
FILTERED = "content_filter"
LONGEST_WAIT = 60.0
LONGEST_RETRY_AFTER = 900.0
"""Seconds. A server that asks for a longer pause is asked again on another day, by another run."""

_NEVER_REACHED = ("ClientConnectorError", "ConnectionTimeoutError")
"""aiohttp's errors for a connection that was never made. The SDKs report broken ones alike."""
_PAGE = re.compile(r"\s*<(?:!doctype|html)", re.IGNORECASE)


class GraderFailure(Exception):  # noqa: N818 - a failed request is no fault of the program
    """A request that brought no reply. The message holds no secrets. `may_be_billed` is True where
    the server may have done the work all the same; `means` is that of the row in `refusals.toml`,
    or empty.
    """

    status: int | None = None
    may_be_billed: bool = False
    means: str = ""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        vars(self).update(facts)


class Transient(GraderFailure):
    """A failure worth another attempt. `mend` says what the user can do about it if nothing has
    ever come from this server.
    """

    may_be_billed = True
    means = "passing"
    retry_after: float | None = None
    hung: bool = False
    mend: str = ""


class Rejected(GraderFailure):
    pass


class Filtered(Rejected):
    pass


class Stopped(GraderFailure):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A row of `refusals.toml`."""

    means: str
    source: str
    status: tuple[int | str, ...] = ()
    words: str = ""
    billed: bool = False
    who: str = ""
    recorded: str = ""

    def holds(self, status: int | None, complaint: str) -> bool:
        statuses = {status, f"{(status or 0) // 100}xx"}
        if self.status and statuses.isdisjoint(self.status):
            return False
        return not self.words or re.search(self.words, complaint, re.IGNORECASE) is not None


@cache
def refusals() -> tuple[Refusal, ...]:
    """Return the rows of `refusals.toml`, in their order."""
    rows = table_of("evenhand.graders", "refusals.toml")["refusal"]
    return tuple(Refusal(**row | {"status": tuple(row.get("status", ()))}) for row in rows)


def refusal_of(status: int | None, complaint: str) -> Refusal:
    """Return the first row that matches a refusal's status and its words (codes and message).

    >>> refusal_of(429, "insufficient_quota You exceeded your current quota").means
    'credit'
    >>> refusal_of(429, "slow down").means, refusal_of(418, "a teapot").means
    ('passing', 'unit')
    """
    return next((row for row in refusals() if row.holds(status, complaint)), _UNKNOWN)


_UNKNOWN = Refusal(means="passing", source="", billed=True)
_STOPS = ("credit", "key", "permission", "model", "path", "redirect")
"""Meanings of refusals after which no request of a grader is sent, each with its sentence."""


def failure_of(error: Exception, spec: GraderSpec, scrubber: Scrubber) -> GraderFailure:
    """Return the failure for an SDK's exception. Both SDKs name status and body alike."""
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    if not isinstance(status, int):
        return _without_reply(error, spec, scrubber)
    codes, message = error_words(body)
    headers: Mapping[str, str] = error.response.headers  # type: ignore[attr-defined]
    return refused(status, codes, message or str(error), spec, scrubber, _retry_after(headers))


def refused(
    status: int | None,
    codes: str,
    message: str,
    spec: GraderSpec,
    scrubber: Scrubber,
    pause: float | None = None,
) -> GraderFailure:
    """Return the failure for a refusal, live or in a batch; `pause` is the wait in seconds that the
    server asks for.
    """
    row = refusal_of(status, f"{codes} {message}".strip())
    message = scrubber.message(message)
    facts: dict[str, Any] = {"status": status, "may_be_billed": row.billed, "means": row.means}
    if row.means == "filter":
        return Filtered(message, **facts)
    if row.means == "unit":
        return Rejected(message, **facts)
    if row.means in _STOPS:
        means, variable, host = row.means, spec.endpoint.key_env, spec.endpoint.host
        key = f"the key in {variable}" if variable else f"the credentials for {host}"
        if means in ("model", "path") and status == 404 and not spec.base_url:
            means = "model"  # the provider's own address is no slip of the user's
        where = f" at {spec.base_url}" if spec.base_url else ""
        named = {"key": key, "model": spec.model, "where": where}
        why = written(f"provider.stop_{means}", **named, **_address(spec))
        if means == "key" and variable and not os.environ.get(variable):
            why = written("provider.no_key", host=host, variable=variable)
        return Stopped(f"{why} (the server says: {message})", **facts)
    if pause is not None and pause > LONGEST_RETRY_AFTER:
        return Stopped(written("provider.long_wait", minutes=math.ceil(pause / 60)), **facts)
    return Transient(message, retry_after=pause, **facts)


def json_object(body: str, spec: GraderSpec, scrubber: Scrubber) -> dict[str, Any]:
    """Return the JSON object in a reply of status 200, free of secrets. Raises a GraderFailure
    where it holds none.

    Proxies answer 200 with a page, with half a reply, or with an error as its body.
    """
    body = scrubber.text(body)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        mend = written("provider.a_page", **_address(spec)) if _PAGE.match(body) else ""
        words = scrubber.message(body)
        raise Transient(f"the reply is not JSON: {words}", status=200, mend=mend) from None
    if not isinstance(value, dict) or value.get("error"):
        codes, message = error_words(value)
        inner = value.get("error") if isinstance(value, dict) else None
        code = inner.get("code") if isinstance(inner, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 200
        failure = refused(status, codes, message or body, spec, scrubber)
        if isinstance(failure, Transient):
            failure = Transient(f"the reply holds no answer: {scrubber.message(body)}", status=200)
        failure.may_be_billed = True  # it says 200
        raise failure
    return value


_CODES = ("code", "type", "status", "reason")


def error_words(body: object) -> tuple[str, str]:
    """Return (codes, message) of an error, in any of the shapes that servers give it.

    >>> busy = {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}
    >>> error_words([{"error": busy}])
    ('429 RESOURCE_EXHAUSTED', 'Slow down.')
    >>> error_words({"error": "Unexpected endpoint"}), error_words({"detail": "Not Found"})
    (('', 'Unexpected endpoint'), ('', 'Not Found'))
    """
    codes: list[str] = []
    message = ""
    for _ in range(_DEEPEST):
        if isinstance(body, list):
            body = body[0] if body else None
        if isinstance(body, str):
            message = body or message
        if not isinstance(body, Mapping):
            break
        values = (body.get(name) for name in _CODES)
        codes += [str(code)[:60] for code in values if isinstance(code, (str, int))]
        words = (body.get(name) for name in ("message", "detail"))
        message = next((text for text in words if isinstance(text, str) and text), message)
        body = body.get("error") or body.get("innererror")
    return " ".join(codes), message


_DEEPEST = 5  # levels of errors nested in one another


def retrying(
    *,
    wait_scale: float,
    sleep: Callable[[float], Awaitable[None]],
    on_retry: Callable[[GraderFailure, int, float], None],
) -> AsyncRetrying:
    """The retry policy: up to 8 attempts at what is transient, waiting as the server says.

    Where it does not say: 1, 2, 4 ... 60 seconds, each with up to a second at random on top.
    `wait_scale` multiplies every wait. A server that hangs is tried twice. `on_retry` is called
    with a failure, the number of its attempt, and the seconds until the next attempt.
    """
    from tenacity import AsyncRetrying, retry_if_exception_type, wait_exponential_jitter

    backoff = wait_exponential_jitter(initial=1, max=LONGEST_WAIT, jitter=1)
    hangs = 0

    def failed(state: RetryCallState) -> Transient:
        failure = state.outcome.exception() if state.outcome else None
        return failure if isinstance(failure, Transient) else Transient("")

    def wait(state: RetryCallState) -> float:
        asked = failed(state).retry_after
        return wait_scale * (backoff(state) if asked is None else asked)

    def stop(state: RetryCallState) -> bool:
        nonlocal hangs
        hangs += failed(state).hung
        return hangs >= HANGS or state.attempt_number >= ATTEMPTS

    def before_sleep(state: RetryCallState) -> None:
        if state.next_action:
            on_retry(failed(state), state.attempt_number, state.next_action.sleep)

    return AsyncRetrying(
        stop=stop,
        before_sleep=before_sleep,
        retry=retry_if_exception_type(Transient),
        wait=wait,
        sleep=sleep,
        reraise=True,
    )


def _without_reply(error: Exception, spec: GraderSpec, scrubber: Scrubber) -> Transient:
    """Return the failure for a connection that was never made, or that ended without a reply.

    The SDKs call both a timeout; what caused it says which it was.
    """
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) and len(causes) < 2 * _DEEPEST:
        causes.append(cause)
    words = scrubber.message(next((str(cause) for cause in causes[1:] if str(cause)), str(error)))
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if names.isdisjoint(_NEVER_REACHED):
        return Transient(words)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        mend = written("provider.unknown_name", **_address(spec))
    elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        mend = written("provider.nothing_listens", **_address(spec))
    else:
        host = spec.endpoint.base_url or spec.endpoint.host
        mend = written("provider.no_connection", host=host, why=words)
    return Transient(words, may_be_billed=False, mend=mend)


def _address(spec: GraderSpec) -> dict[str, str]:
    """Return an endpoint's address and host for a sentence, with advice: to add /v1 where a chat
    server's address has no path, or else to check the path.
    """
    endpoint, url = spec.endpoint, spec.endpoint.base_url
    with_v1 = written("provider.check_path")
    if url and spec.speaks == "chat" and not urlsplit(url).path.strip("/"):
        with_v1 = written("provider.add_v1", url=f"{url.rstrip('/')}/v1")
    return {"address": url or endpoint.host, "host": endpoint.host, "with_v1": with_v1}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, given as milliseconds, seconds or a date; None
    where it does not say.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            if math.isfinite(seconds := float(headers[name]) / unit):
                return max(seconds, 0.0)
    with suppress(KeyError, ValueError):
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
        return max(date.timestamp() - time.time(), 0.0)
    return None
