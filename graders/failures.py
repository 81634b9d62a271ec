"""Failed requests, and the one policy by which they are tried again.

GraderFailure
|-- Transient   worth another attempt: 408, 409, 429, 5xx, no connection, no readable reply
|-- Rejected    this request never will be: any other 4xx
|   `-- Filtered    because of what the unit's text says
`-- Stopped     no request of this grader will be: key, model, credit, a long wait
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from evenhand.graders.scrub import Scrubber
from evenhand.graders.spec import GraderSpec
from evenhand.texts import written

if TYPE_CHECKING:
    from tenacity import AsyncRetrying, RetryCallState

ATTEMPTS = 8
HANGS = 2
"""So many times a server may leave a request without an answer, each for as long as may be."""
SPARE = 5.0
"""Seconds that the SDKs wait beyond our own limit, which is the one that counts."""
FILTERED = "content_filter"
LONGEST_WAIT = 60.0
LONGEST_RETRY_AFTER = 900.0
"""Seconds. A server that asks for a longer pause is asked again on another day, by another run."""

_TRANSIENT = (408, 409, 429)
_ELSEWHERE = (301, 302, 303, 307, 308)
_MAY_BE_FILTERED = (400, 403, 422, 451)
_FILTER = re.compile(
    r"content[ _-]?(?:filter|policy|management|moderation)|responsible ?ai|prohibited[ _]content"
    r"|(?:blocked|flagged|rejected) (?:by|as|for|due to)[^.]{0,60}(?:safety|moderation|guardrail)"
    r"|moderation_blocked|data_inspection_failed|guardrail_intervened",
    re.IGNORECASE,
)
_NO_CREDIT = ("insufficient_quota", "billing_error", "billing_hard_limit_reached")


class GraderFailure(Exception):  # noqa: N818 - a failed request is no fault of the program
    """A request that brought no reply. The message holds no secrets."""

    may_be_billed = False

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Transient(GraderFailure):
    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        hung: bool = False,
    ) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after
        self.hung = hung
        self.may_be_billed = status is None or status == 200  # it may have been answered


class Rejected(GraderFailure):
    pass


class Filtered(Rejected):
    pass


class Stopped(GraderFailure):
    pass


def failure_of(error: Exception, spec: GraderSpec, scrubber: Scrubber) -> GraderFailure:
    """What an SDK's exception means for the run. Both SDKs name status, code and response alike."""
    status = getattr(error, "status_code", None)
    message = scrubber.message(_said(error))
    if not isinstance(status, int):
        # The SDKs call a refused or cut connection a timeout; what caused it says which it was.
        return Transient(scrubber.message(str(error.__cause__ or "")) or message)
    headers: Mapping[str, str] = error.response.headers  # type: ignore[attr-defined]
    if status in _MAY_BE_FILTERED and is_filtered(f"{_codes(error)} {message}"):
        return Filtered(message, status=status)
    if reason := _why_stop(status, error, spec):
        return Stopped(f"{reason} (the server says: {message})", status=status)
    if status not in _TRANSIENT and status < 500:
        return Rejected(message, status=status)
    pause = _retry_after(headers)
    if pause is not None and pause > LONGEST_RETRY_AFTER:
        return Stopped(
            f"the server asks to wait {math.ceil(pause / 60)} minutes; run again after that",
            status=status,
        )
    return Transient(message, status=status, retry_after=pause)


def json_object(body: str, scrubber: Scrubber) -> dict[str, Any]:
    """The JSON object that a successful reply holds, free of secrets. Raises Transient if none.

    Proxies answer 200 with a page, with half a reply, or with an error as its body.
    """
    body = scrubber.text(body)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        said = scrubber.message(body)
        raise Transient(f"the reply is not JSON: {said}", status=200) from None
    if not isinstance(value, dict) or value.get("error"):
        raise Transient(f"the reply holds no answer: {scrubber.message(body)}", status=200)
    return value


def is_filtered(said: str) -> bool:
    """Whether a refusal's words or codes, of whichever provider, are those of a content filter.

    >>> is_filtered("Output blocked by content filtering policy"), is_filtered("prompt is too long")
    (True, False)
    """
    return bool(_FILTER.search(said))


@asynccontextmanager
async def answered_within(seconds: float) -> AsyncIterator[None]:
    """A whole answer must come in this time. Raises Transient where it does not."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Transient(f"no answer within {seconds:g} s", hung=True) from None


Told = Callable[[GraderFailure, int, float], None]
"""Told of a failure, which attempt it was, and in how many seconds the next one follows."""


def retrying(
    *,
    wait_scale: float,
    sleep: Callable[[float], Awaitable[None]],
    told: Told | None = None,
) -> AsyncRetrying:
    """The retry policy: up to 8 attempts at what is transient, waiting as the server says.

    Where it does not say: 1, 2, 4 ... 60 seconds, each with up to a second at random on top.
    `wait_scale` multiplies every wait. A server that hangs is tried twice.
    """
    from tenacity import (
        AsyncRetrying,
        retry_if_exception_type,
        wait_exponential_jitter,
    )

    backoff = wait_exponential_jitter(initial=1, max=LONGEST_WAIT, jitter=1)

    def wait(state: RetryCallState) -> float:
        failure = state.outcome.exception() if state.outcome else None
        asked = failure.retry_after if isinstance(failure, Transient) else None
        return wait_scale * (backoff(state) if asked is None else asked)

    hangs = 0

    def stop(state: RetryCallState) -> bool:
        nonlocal hangs
        failure = state.outcome.exception() if state.outcome else None
        hangs += isinstance(failure, Transient) and failure.hung
        return hangs >= HANGS or state.attempt_number >= ATTEMPTS

    def before_sleep(state: RetryCallState) -> None:
        failure = state.outcome.exception() if state.outcome else None
        if told and isinstance(failure, GraderFailure) and state.next_action:
            told(failure, state.attempt_number, state.next_action.sleep)

    return AsyncRetrying(
        stop=stop,
        before_sleep=before_sleep,
        retry=retry_if_exception_type(Transient),
        wait=wait,
        sleep=sleep,
        reraise=True,
    )


def _said(error: Exception) -> str:
    """The server's own words, without the SDK's frame around them where they can be told apart."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    said = inner.get("message") if isinstance(inner, Mapping) else None
    return said if isinstance(said, str) and said else str(error)


def _codes(error: Exception) -> str:
    """What an error calls itself, Azure's inner one included."""
    body = getattr(error, "body", None)
    body = body if isinstance(body, Mapping) else {}
    inner = body.get("error", body)
    inner = inner if isinstance(inner, Mapping) else {}
    innermost = inner.get("innererror")
    parts = (inner, innermost if isinstance(innermost, Mapping) else {})
    return " ".join(str(part.get(name) or "")[:60] for part in parts for name in ("code", "type"))


def _why_stop(status: int, error: Exception, spec: GraderSpec) -> str | None:
    place = spec.at
    key = f"the key in {place.key_env}" if place.key_env else f"the credentials for {place.host}"
    codes = (getattr(error, "code", None), getattr(error, "type", None))
    if status == 402 or any(code in _NO_CREDIT for code in codes):
        return f"the account behind {key} has no credit left; add credit and run again"
    if status == 401 and place.key_env and not os.environ.get(place.key_env):
        return written("provider.no_key", host=place.host, variable=place.key_env)
    if status == 401:
        return f"{key} was refused; set a valid one and run again"
    if status == 403:
        return f"{key} may not use {spec.model}; use another key or model"
    if status in _ELSEWHERE:
        return written("provider.redirects", host=place.host)
    if status == 404:
        where = f" at {spec.base_url}" if spec.base_url else ""
        return f"there is no model {spec.model!r}{where}; check the model's name" + (
            ", and that BASE_URL ends before /chat/completions" if spec.base_url else ""
        )
    return None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, given as milliseconds, as seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return max(date.timestamp() - time.time(), 0.0)
