"""From what a reply says to its outcome: the one reader, whichever provider's form it came in.

A reply gives a label, with its tokens' probabilities where there are some; a distribution that the
model states in words, which is another measurement; or a reason first, and then the label. Of
repeated draws it is said how often each option came. A gateway may keep replies and give one of
them to every later request of the same words. For a draw that is no answer: a hundred draws would
be one. Such replies are declined, and noticed where they come.

Token probabilities become those of the rubric's options. The grader is asked for a bare option key.
The same key comes as several tokens ("C", " C", "(C", "C)"), which are merged on their decoded
bytes; what remains of the 20 most probable tokens is mass outside the options, kept as a measure of
trust. Where a token may still become one key or another ("1" of 1 and 10), its mass is known only
along the tokens that were chosen, place by place.

Failed requests, and the one policy by which they are tried again:

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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from evenhand.graders.options import REASON_FIRST, GraderSettings
from evenhand.graders.providers import GraderSpec, Scrubber
from evenhand.rubrics import PromptText, Rubric, RubricParser, answer_of
from evenhand.rubrics.parsing import json_fields
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
    if url and spec.api_format == "chat" and not urlsplit(url).path.strip("/"):
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


LOW_MASS = 0.8
"""Below this mass inside the options a reading is flagged."""
MOST_UNSEEN = 0.2
"""A reading is discarded where any option's probability could be off by more than this."""
MOST_BEGUN = 0.1
"""It is also discarded where mere beginnings of an answer, such as a bracket on a path that was
not taken, could move it by more than this. The possible shift is kept with the grade."""
MOST_SPLIT = 1e-9
"""It is also discarded where more than this mass belongs to one of two options, unknown which."""

# Marks that some servers leave in token texts for a space or a line break.
_SPACE_MARKS = str.maketrans({"\u0120": " ", "\u2581": " ", "\u010a": "\n"})
_OPENING = " \t\r\n([{<\"'`*_"
_NOT_LISTED = -9000.0
_ROUNDING = 0.01
_CLOSING = " \t\r\n)]}>\"'`*_.:,;"


T = TypeVar("T")
Json = Mapping[str, Any]
"""A JSON object."""
Facts = dict[str, Any]
"""What is kept with a grade: a reply's evidence, and the grade's provenance."""


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:
        return None


OrNone = Annotated[T | None, WrapValidator(_or_none)]
"""A field that is None where the value has another type."""


class Token(BaseModel):
    """A token as the API gives it; `bytes`, where present, takes precedence over `token`."""

    token: str
    logprob: float
    bytes: OrNone[list[int]] = None

    @property
    def text(self) -> str:
        if self.bytes is not None and all(0 <= byte < 256 for byte in self.bytes):
            return bytes(self.bytes).decode("utf-8", "replace")
        return self.token.translate(_SPACE_MARKS)

    @property
    def probability(self) -> float:
        """The probability, 0 to 1. The API's -9999.0 for "not among the most probable" gives 0."""
        return 0.0 if math.isnan(self.logprob) else math.exp(min(self.logprob, 0.0))


class Position(Token):
    """A place in the answer: the token that was chosen and the most probable ones there."""

    top_logprobs: OrNone[list[OrNone[Token]]] = None

    def candidates(self) -> list[Token]:
        """Return the listed tokens, and the chosen one where the list leaves it out."""
        listed = [token for token in self.top_logprobs or () if token]
        if any(token.text == self.text for token in listed):
            return listed
        return [*listed, self]


@dataclass(frozen=True, slots=True)
class OptionReading:
    """Option probabilities read at one position; they sum to 1 over all options."""

    probabilities: dict[str, float]
    in_option_mass: float
    position: int
    top: list[tuple[str, float]]
    unseen: float
    """The most that any of these probabilities can be off, given the mass not listed."""
    begun: float = 0.0
    """The part of `unseen` on beginnings that name no option yet, such as a bracket."""
    split: float = 0.0
    """The mass on beginnings that two options share, on paths that were not taken."""

    @property
    def label(self) -> str:
        """The most probable option; the earlier one on the scale in case of a tie."""
        return max(self.probabilities, key=lambda key: self.probabilities[key])


def fault_of(positions: Sequence[Position]) -> str:
    """Return the reason why figures cannot be natural logarithms of probabilities, else "".

    >>> def place(*figures):
    ...     top = [Token(token=str(n), logprob=figure) for n, figure in enumerate(figures)]
    ...     return [Position(token="0", logprob=figures[0], top_logprobs=top)]
    >>> [fault_of(place(*row)) for row in ((-0.1, -3.0), (0.6, 0.2), (-0.1, -0.1), (-3, -3, -3))]
    ['', 'above zero', 'more than one in all', 'all the same']
    """
    for position in positions:
        figures = [token.logprob for token in position.candidates()]
        if any(math.isnan(figure) or figure > _ROUNDING for figure in figures):
            return "above zero"
        if math.fsum(token.probability for token in position.candidates()) > 1 + _ROUNDING:
            return "more than one in all"
        if len(figures) > 2 and len(set(figures)) == 1:
            return "all the same"
        if all(figure <= _NOT_LISTED for figure in figures):
            return "all the same"
    return ""


def read_options(
    positions: Sequence[Position],
    text: str,
    label: str | None,
    keys: Sequence[str],
    *,
    whole_numbers: bool = False,
) -> OptionReading | None:
    """Return the option probabilities of an answer, or None where the tokens do not give them.

    `label` is the option that the text as a whole names, if any. Reading starts where the answer
    begins and follows the chosen tokens as long as they may become one key or another, or are only
    an opening bracket. Where the answer begins with other words ("Answer: C") and few of the likely
    tokens there are options, the position of `label` is read instead. `whole_numbers` says that
    the tokenizer has a token of its own for every number.
    """
    start = _answer_start(positions, text)
    first = next((at for at in range(start, len(positions)) if _bare(positions[at].text)), None)
    if first is None:
        return None
    reading = _read(positions, start, keys, whole_numbers)
    if chosen := _key_at(positions, start, keys):
        # They differ where a word ("A fair ...") begins like an option.
        return reading if chosen == label else None
    if reading and reading.in_option_mass >= LOW_MASS:
        return reading
    for at in range(first, len(positions)):
        if label is not None and _key_at(positions, at, keys) == label:
            return _read(positions, at, keys, whole_numbers)
    # Few of the likely tokens are options and the text names another one, or none: trusting the
    # little mass there is would invent an answer.
    return reading if reading and reading.label == label else None


@dataclass(frozen=True, slots=True)
class _Spelled:
    """The reading of an answer's text so far: the option `key` that it spells, if any; `may` is
    True if further text may turn it into another option, `begun` if it is only the beginning of an
    answer.
    """

    key: str | None = None
    may: bool = False
    begun: bool = False


def _read(
    positions: Sequence[Position], at: int, keys: Sequence[str], whole_numbers: bool
) -> OptionReading | None:
    masses = dict.fromkeys(keys, 0.0)
    split = unlisted = begun = 0.0
    so_far, reach, place = "", 1.0, at
    for here in range(at, len(positions)):
        position, followed = positions[here], 0.0
        tokens = position.candidates()
        unlisted += reach * max(1.0 - math.fsum(token.probability for token in tokens), 0.0)
        ended = here + 1 == len(positions)
        goes_on = False
        for token in tokens:
            mass = reach * token.probability
            spelled = _spelled(so_far, token.text, keys)
            if whole_numbers and spelled.key and spelled.key.isdigit():
                spelled = _Spelled(spelled.key)
            # A longer word may follow where a text ends as a key ends.
            ended_in_key = spelled.key and re.search(r"[^\W_]\Z|[+-]\Z", so_far + token.text)
            open_ended = spelled.may or spelled.begun or ended_in_key
            if token.text == position.text and token.text and open_ended and not ended:
                followed, goes_on = followed + mass, True
            elif spelled.may:
                split += mass
            elif spelled.key:
                masses[spelled.key] += mass
            elif spelled.begun:
                begun += mass
        if not _bare(so_far):
            place = here
        if not goes_on:
            break
        so_far, reach = so_far + position.text, followed
    total = math.fsum(masses.values())
    if total + split <= 0:
        return None
    # All that is not listed could be one option's: p_k lies between m_k / (M + u) and
    # (m_k + u) / (M + u), which is u / (M + u) wide.
    unknown = unlisted + begun
    top = positions[place].candidates()
    return OptionReading(
        probabilities={key: mass / total if total else 0.0 for key, mass in masses.items()},
        in_option_mass=min(total + split, 1.0),
        position=place,
        top=[(token.token, token.logprob) for token in top],
        unseen=unknown / (total + split + unknown),
        begun=begun / (total + split + unknown),
        split=split,
    )


def _spelled(so_far: str, text: str, keys: Sequence[str]) -> _Spelled:
    """Return the reading of an answer's text after one more token.

    >>> stances = ("agree", "disagree")
    >>> [_spelled("", text, stances).key for text in (" Agree", "dis", "(", "a", "ag")]
    ['agree', 'disagree', None, None, 'agree']
    >>> ten = tuple(str(n) for n in range(1, 11))
    >>> _spelled("", "1", ten), _spelled("1", "0", ten).key, _spelled("1", ".", ten).key
    (_Spelled(key='1', may=True, begun=False), '10', '1')
    """
    answer = (so_far + text).lstrip(_OPENING)
    if not answer:
        return _Spelled(begun=True)
    folded = answer.casefold()
    for key in sorted(keys, key=len, reverse=True):
        # A lower-case letter may be a word ("a"), so single letters must match as they are.
        is_it = answer.startswith(key) if len(key) == 1 else folded.startswith(key.casefold())
        rest = answer[len(key) :]
        if not is_it or re.match(r"[A-Za-z0-9_+-]", rest):
            continue
        longer = [
            other for other in keys if other != key and other.casefold().startswith(key.casefold())
        ]
        over = bool(rest) or not text  # a token without text ends an answer
        return _Spelled(key, may=bool(longer) and not over)
    if not text:
        return _Spelled()
    longer = [key for key in keys if len(key) > 1 and key.casefold().startswith(folded)]
    if not longer:
        return _Spelled()
    if folded.isalpha() and len(longer) == 1 and len(folded) > 1:
        return _Spelled(longer[0])
    return _Spelled(may=not folded.isalpha() or len(folded) > 1, begun=True)


def _key_at(positions: Sequence[Position], at: int, keys: Sequence[str]) -> str | None:
    """Return the option that the chosen tokens spell from position `at` on, if any."""
    answer = "".join(position.text for position in positions[at:]).lstrip(_OPENING)
    if not _bare(positions[at].text) and at:
        return None
    key = _spelled("", answer, keys).key
    return key if key and answer[: len(key)].casefold() == key.casefold() else None


def _bare(text: str) -> str:
    return text.lstrip(_OPENING).rstrip(_CLOSING)


def _answer_start(positions: Sequence[Position], text: str) -> int:
    """Return the index of the answer's first token: some servers list the thinking before it."""
    texts, answer = [position.text for position in positions], text.strip()
    at = "".join(texts).rfind(answer) if answer else 0
    if at <= 0:
        return 0
    ends = accumulate(map(len, texts))
    return next((index for index, end in enumerate(ends) if end > at), 0)


# ---- what a store can keep ----------------------------------------------------------------------
_LARGEST = 2**63 - 1  # an integer as databases know it
_DIGITS = 100
# In JSON's own writing: half a character, NUL, and an integer of 19 digits or more.
_NOT_PLAIN = re.compile(r"\\u(?:d[89a-f]|0000)|(?<![\d.])\d{19}")


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


# ---- outcomes -----------------------------------------------------------------------------------
MOST_KEPT = 20_000
"""Characters kept of a reply that could not be read."""

ASKED_AGAIN = "asked_again"
"""Marks, in the provenance of an unreadable attempt, that the same run asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A label with its evidence, or the reason why there is none.

    Labels and probabilities are in the order that was shown: the runner maps them back. A reply
    without a valid label is an outcome too (`refusal`, `truncated`, `unparseable`,
    `content_filter`), never a default label, and does not by itself make the runner ask again.
    """

    label: str = ""
    probabilities: dict[str, float] | None = None
    prob_method: str = ""
    unscored_reason: str = ""
    raw: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "raw", storable(self.raw))
        object.__setattr__(self, "evidence", storable(self.evidence))

    @classmethod
    def unreadable(cls, reply: Mapping[str, Any]) -> Outcome:
        """Return the outcome of a reply that does not fit the provider's interface; its text is
        kept up to `MOST_KEPT` characters.
        """
        return cls(unscored_reason="unparseable", raw=json.dumps(storable(reply))[:MOST_KEPT])


# ---- answers of more than a label ---------------------------------------------------------------
_PERCENT = TypeAdapter(
    dict[str, Annotated[float, Field(strict=True, ge=0, le=100, allow_inf_nan=False)]]
)
_FARTHEST_SUM = 5.0
"""Percentages whose sum misses 100 by more than this are not a distribution."""
REASON = "reason"
"""Key in a grade's provenance: the grader's reason, in its own words."""
_FIELDS = [REASON, "label"]


def asked(prompt: PromptText, settings: GraderSettings) -> tuple[PromptText, dict[str, Any]]:
    """Return the prompt as the method words it, and the JSON schema of its answer, whose fields are
    in the order in which they are written.

    By its last paragraph the prompt asks for a label; or for a probability of every option; or for
    a reason, and then a label.
    """
    kind, keys, ask = prompt.kind, ", ".join(prompt.kind.keys), ""
    fields: dict[str, Any] = {"label": kind.schema()}
    if settings.method == "verbalised":
        ask = (
            "Answer with a JSON object that gives for every option the probability, in percent, "
            "that a careful rater would choose it; the numbers add up to 100. Its keys are: "
            f"{keys}."
        )
        fields = {key: {"type": "number"} for key in kind.keys}
    elif settings.reason:
        ask = (
            f"First give your reason, in at most three sentences. Then give {kind.asked}, "
            "alone on the last line." + (f" The keys are: {keys}." if kind.listed else "")
        )
        fields = {REASON: {"type": "string"}, **fields}
    if ask:
        others = prompt.system.rpartition("\n\n")[0]
        prompt = replace(prompt, system=f"{others}\n\n{ask}")
    of_object = {"required": list(fields), "additionalProperties": False}
    return prompt, {"type": "object", "properties": fields, **of_object}


def read_percent(text: str, keys: Sequence[str], evidence: dict[str, Any]) -> Outcome:
    """Return the stated distribution, scaled to sum to 1; the label is its most probable option.

    >>> outcome = read_percent('{"A": 20, "B": 79}', ("A", "B"), {})
    >>> outcome.label, round(outcome.probabilities["B"], 3), outcome.evidence["stated_sum"]
    ('B', 0.798, 99.0)
    >>> read_percent('{"A": 50, "B": 20}', ("A", "B"), {}).unscored_reason
    'unparseable'
    """
    try:
        stated = _PERCENT.validate_json(text[text.find("{") : text.rfind("}") + 1])
    except ValueError:
        stated = {}
    total = math.fsum(stated.values())
    if set(stated) != set(keys) or abs(total - 100) > _FARTHEST_SUM:
        return Outcome(unscored_reason="unparseable", raw=text, evidence=evidence)
    probabilities = {key: stated[key] / total for key in keys}
    return Outcome(
        label=max(keys, key=lambda key: probabilities[key]),
        probabilities=probabilities,
        prob_method="verbalised",
        raw=text,
        evidence=evidence | {"stated_sum": total},
    )


def read_reason(text: str, parser: RubricParser, evidence: dict[str, Any]) -> Outcome:
    """Return the label that follows a reason. A label without a reason, or before it, does not
    count.

    >>> parser = RubricParser({"A": "First", "B": "Second"})
    >>> outcome = read_reason('{"reason": "A is vague.", "label": "B"}', parser, {})
    >>> outcome.label, outcome.evidence["reason"]
    ('B', 'A is vague.')
    >>> [read_reason(text, parser, {}).label for text in ("A is vague.\\n\\nB", "B", "B\\nVague.")]
    ['B', '', '']
    """
    reason, answer = _parts(answer_of(text) or "")
    if not reason.strip() or (label := parser.label(answer)) is None:
        return Outcome(unscored_reason="unparseable", raw=text, evidence=evidence)
    return Outcome(label=label, raw=text, evidence=evidence | {REASON: reason.strip()})


def _parts(text: str) -> tuple[str, str]:
    """Split a reply into reason and answer: two fields of JSON, else the last line and the rest."""
    if re.match(r"(?:```\w*\s*)?\{", text):
        objects = json_fields(text)
        fields = objects[0] if len(objects) == 1 else []
        if [name for name, _ in fields] != _FIELDS:
            return "", ""
        reason, label = (value for _, value in fields)
        if isinstance(label, int | float) and not isinstance(label, bool):
            label = f"{label:g}"
        if isinstance(label, list):
            label = json.dumps(label)
        both = isinstance(reason, str) and isinstance(label, str)
        return (reason, label) if both else ("", "")
    before, _, last = text.strip().rpartition("\n")
    return before, last


# ---- any answer ---------------------------------------------------------------------------------
NOT_LOGPROBS = "not_logprobs"
"""Key in a reply's evidence: the reason why its figures cannot be log-probabilities."""

PATTERN_SLOW = "pattern_too_slow"
"""Unscored: the pattern of the user's own prompt did not come to an end over this reply."""


def outcome_of(
    text: str,
    rubric: Rubric | None,
    method: str,
    evidence: dict[str, Any],
    *,
    unscored: str = "",
    positions: Sequence[Position] = (),
    whole_numbers: bool = False,
) -> Outcome:
    """Return the outcome of a reply by this method, whichever provider's form it came in; without a
    rubric, its text. It has the `evidence` to keep, the reason `unscored` if it holds no answer,
    and the tokens' probabilities; `whole_numbers` is True if every number is one token.
    """
    if rubric is None:
        return Outcome(raw=text, evidence=evidence)
    if unscored:
        return Outcome(unscored_reason=unscored, raw=text, evidence=evidence)
    if method == "verbalised":
        return read_percent(text, rubric.categories, evidence)
    if method == REASON_FIRST:
        return read_reason(text, rubric.parser, evidence)
    try:
        label = rubric.parser.label(text)
    except TimeoutError:
        return Outcome(unscored_reason=PATTERN_SLOW, raw=text, evidence=evidence)
    reading = None
    if positions and rubric.kind.is_choice:  # others have several tokens, each of many answers
        if fault := fault_of(positions):
            evidence[NOT_LOGPROBS] = fault
        else:
            answer, keys = answer_of(text) or text, rubric.categories
            reading = read_options(positions, answer, label, keys, whole_numbers=whole_numbers)
    if reading:
        evidence |= _evidence(reading, label)
        if "no_probabilities" not in evidence:
            # Scaled to 1, the little that is known would claim to know what it does not.
            return Outcome(
                label=reading.label,
                probabilities=reading.probabilities,
                prob_method="logprobs",
                raw=text,
                evidence=evidence,
            )
    reason = "" if label else "unparseable"
    return Outcome(label=label or "", unscored_reason=reason, raw=text, evidence=evidence)


def _evidence(reading: OptionReading, label: str | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "text_label": label,  # what the text says can differ from the most probable option
        "in_option_mass": reading.in_option_mass,
        "low_mass": reading.in_option_mass < LOW_MASS,
        "logprob_position": reading.position,
        "top_logprobs": reading.top,
    }
    if reading.begun > MOST_SPLIT:
        facts["may_be_off"] = reading.unseen
    if reading.begun > MOST_BEGUN:
        facts |= {"unseen": reading.unseen, "no_probabilities": "not_followed"}
    if reading.unseen > MOST_UNSEEN:
        facts |= {"unseen": reading.unseen, "no_probabilities": "not_listed"}
    if reading.split > MOST_SPLIT:
        facts |= {"split": reading.split, "no_probabilities": "key_begins_another"}
    return facts


# ---- repeated draws -----------------------------------------------------------------------------
DECLINED = {
    "Cache-Control": "no-cache",
    "X-OpenRouter-Cache": "false",
    "Helicone-Cache-Enabled": "false",
    "cf-aig-skip-cache": "true",
    "x-portkey-cache-force-refresh": "true",
}
"""Request headers that decline cached answers; servers ignore those that they do not know."""
LITELLM_DECLINED = {"cache": {"no-cache": True}}
"""LiteLLM's way of declining them, in the body, where other servers would refuse it."""
REPEATED = "repeated_reply"


def as_draw(outcome: Outcome, rubric: Rubric) -> Outcome:
    """Return one draw's outcome, with all probability on the option that was drawn.

    The mean over a unit's draws, which is how repeats are combined everywhere, is then the share of
    each option. Of numbers the median is taken, and of several options each one's majority, which
    need no probabilities.
    """
    if not outcome.label or not rubric.kind.is_choice:
        return outcome
    drawn = {key: float(key == outcome.label) for key in rubric.categories}
    return replace(outcome, probabilities=drawn, prob_method="draws")


def reply_identity(facts: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return (id, time, index of the answer in the reply), or None where the reply has no id: some
    local servers draw ids from only a thousand.

    >>> reply_identity({"reply_id": "msg_1"}), reply_identity({"reply_id": ""})
    (('msg_1', None, 0), None)
    """
    if not facts.get("reply_id"):
        return None
    return facts["reply_id"], facts.get("created"), facts.get("choice") or 0
