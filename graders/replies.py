"""From a grader's reply, or a failed request, to its outcome, whichever provider it came from.

`failure_of` classifies failed requests, and `retrying` is the policy by which they are tried again.
`read_options` turns token probabilities into those of the rubric's options. The grader is asked for
a bare option key. One key may be any of several tokens ("C", " C", "(C", "C)"), which are merged on
their decoded bytes; the rest of the 20 most probable tokens is mass outside the options, kept as a
measure of trust. Where a token may still become one key or another ("1" of 1 and 10), the next
position shows which, but only for the token that was chosen.

`outcome_of` reads a whole reply: a label with its tokens' probabilities, a distribution that the
model states in words, or a reason and then a label. `as_draw` reads one of several draws. A gateway
may cache replies and return the same one to every draw; requests decline such replies, and
`reply_identity` recognises those that come all the same.

Failed requests:

GraderFailure
|-- Transient   worth another attempt: a busy or broken server, no connection, no readable reply
|-- Rejected    this request would fail again
|   `-- Filtered    because of what the unit's text says
`-- Stopped     every request of this grader would: credit, key, model, address, a long wait

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

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, WrapValidator

from evenhand.graders.options import REASON_FIRST, GraderSettings
from evenhand.graders.providers import GraderSpec, Scrubber
from evenhand.rubrics import PromptText, Rubric, RubricParser, answer_of
from evenhand.rubrics.parsing import json_fields
from evenhand.texts import table_of, written

if TYPE_CHECKING:
    from pydantic import ValidatorFunctionWrapHandler
    from tenacity import AsyncRetrying, RetryCallState

ATTEMPTS = 8  # of one request, at most
MAX_TIMEOUTS = 2  # the number of times that a request may time out before it counts as failed
SPARE = 5.0  # seconds that the SDKs wait beyond our own time limit, so that ours ends a request
CONNECT = 7.0  # seconds for a connection, so that an unreachable server is reported within ten
FILTERED = "content_filter"  # unscored reason
LONGEST_WAIT = 60.0  # seconds between two attempts, if the server does not ask for another wait
LONGEST_RETRY_AFTER = 900.0  # seconds; a grader whose server asks for a longer wait is stopped

_NEVER_REACHED = ("ClientConnectorError", "ConnectionTimeoutError")
"""aiohttp's errors for connections never made; the SDKs' own error is also for broken ones."""
_HTML_PAGE = re.compile(r"\s*<(?:!doctype|html)", re.IGNORECASE)


class GraderFailure(Exception):  # noqa: N818 - a failed request is no fault of the program
    """A request that brought no reply. The message has no secrets in it. `may_be_billed` is True if
    the server may have done the work all the same; `means` is the cause by `refusals.toml`, or "".
    """

    status: int | None = None
    may_be_billed: bool = False
    means: str = ""  # such as "credit" or "key"

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        vars(self).update(facts)  # over the defaults of the class


class Transient(GraderFailure):
    """A failure worth another attempt. `advice` is a sentence for the user, shown if the server has
    never answered; `retry_after` is the wait in seconds that it asks for.
    """

    may_be_billed = True
    means = "passing"
    retry_after: float | None = None
    is_timeout: bool = False
    advice: str = ""


class Rejected(GraderFailure):
    """A request that will fail again."""


class Filtered(Rejected):
    """A request that a content filter refused."""


class Stopped(GraderFailure):
    """A failure of every request of this grader; the message is a sentence for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A row of `refusals.toml`, whose head describes all fields."""

    means: str  # the cause, such as "credit"
    source: str
    status: tuple[int | str, ...] = ()  # such as 429 or "4xx"; empty for any
    words: str = ""  # a regular expression
    billed: bool = False
    who: str = ""
    recorded: str = ""

    def matches(self, status: int | None, complaint: str) -> bool:
        """Return True if the row is about this status and wording."""
        names_of_status = {status, f"{(status or 0) // 100}xx"}  # 429 and "4xx"
        if self.status and names_of_status.isdisjoint(self.status):
            return False
        return not self.words or re.search(self.words, complaint, re.IGNORECASE) is not None


@cache
def refusals() -> tuple[Refusal, ...]:
    """Return the rows of `refusals.toml`, in their order."""
    rows = table_of("evenhand.graders", "refusals.toml")["refusal"]
    return tuple(Refusal(**row | {"status": tuple(row.get("status", ()))}) for row in rows)


def refusal_of(status: int | None, complaint: str) -> Refusal:
    """Return the first row that matches a refusal's status and its wording (codes and message).

    >>> refusal_of(429, "insufficient_quota You exceeded your current quota").means
    'credit'
    >>> refusal_of(429, "slow down").means, refusal_of(418, "a teapot").means
    ('passing', 'unit')
    """
    return next((row for row in refusals() if row.matches(status, complaint)), _UNKNOWN_REFUSAL)


_UNKNOWN_REFUSAL = Refusal(means="passing", source="", billed=True)
_STOP_MEANINGS = ("credit", "key", "permission", "model", "path", "redirect")
"""Meanings of refusals after which no request of a grader is sent, each with its sentence."""


def failure_of(error: Exception, spec: GraderSpec, scrubber: Scrubber) -> GraderFailure:
    """Return the failure for an exception of either SDK; both have `status_code` and `body`."""
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    if not isinstance(status, int):
        return _connection_failure(error, spec, scrubber)
    codes, message = error_words(body)
    headers: Mapping[str, str] = error.response.headers  # type: ignore[attr-defined]
    return refused(status, codes, message or str(error), spec, scrubber, _retry_after(headers))


def refused(
    status: int | None,
    codes: str,  # of the error, separated by spaces
    message: str,
    spec: GraderSpec,
    scrubber: Scrubber,
    retry_after: float | None = None,
) -> GraderFailure:
    """Return the failure for a refusal, live or in a batch; `retry_after` is in seconds."""
    row = refusal_of(status, f"{codes} {message}".strip())
    message = scrubber.message(message)
    facts: dict[str, Any] = {"status": status, "may_be_billed": row.billed, "means": row.means}
    if row.means == "filter":
        return Filtered(message, **facts)
    if row.means == "unit":
        return Rejected(message, **facts)
    if row.means in _STOP_MEANINGS:
        means, variable, host = row.means, spec.endpoint.key_env, spec.endpoint.host
        key = f"the key in {variable}" if variable else f"the credentials for {host}"
        if means in ("model", "path") and status == 404 and not spec.base_url:
            means = "model"  # the address is the provider's own, so the fault is in the name
        at_address = f" at {spec.base_url}" if spec.base_url else ""
        fields = {"key": key, "model": spec.model, "where": at_address}
        sentence = written(f"provider.stop_{means}", **fields, **_address_fields(spec))
        if means == "key" and variable and not os.environ.get(variable):
            sentence = written("provider.no_key", host=host, variable=variable)
        return Stopped(f"{sentence} (the server says: {message})", **facts)
    if retry_after is not None and retry_after > LONGEST_RETRY_AFTER:
        return Stopped(written("provider.long_wait", minutes=math.ceil(retry_after / 60)), **facts)
    return Transient(message, retry_after=retry_after, **facts)


def json_object(body: str, spec: GraderSpec, scrubber: Scrubber) -> dict[str, Any]:
    """Return the JSON object in a reply of status 200, without secrets. Raises a GraderFailure if
    there is none: proxies answer 200 with a page, with half a reply, or with an error as the body.
    """
    body = scrubber.text(body)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        is_page = _HTML_PAGE.match(body)
        advice = written("provider.a_page", **_address_fields(spec)) if is_page else ""
        message = scrubber.message(body)
        raise Transient(f"the reply is not JSON: {message}", status=200, advice=advice) from None
    if not isinstance(value, dict) or value.get("error"):
        codes, message = error_words(value)
        error = value.get("error") if isinstance(value, dict) else None
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 200
        failure = refused(status, codes, message or body, spec, scrubber)
        if isinstance(failure, Transient):
            failure = Transient(f"the reply holds no answer: {scrubber.message(body)}", status=200)
        failure.may_be_billed = True  # as the status is 200
        raise failure
    return value


_CODE_FIELDS = ("code", "type", "status", "reason")
_MAX_DEPTH = 5  # levels of errors nested in one another


def error_words(body: object) -> tuple[str, str]:
    """Return (codes, message) of an error, in any of the forms that servers use.

    >>> busy = {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}
    >>> error_words([{"error": busy}])
    ('429 RESOURCE_EXHAUSTED', 'Slow down.')
    >>> error_words({"error": "Unexpected endpoint"}), error_words({"detail": "Not Found"})
    (('', 'Unexpected endpoint'), ('', 'Not Found'))
    """
    codes: list[str] = []
    message = ""
    for _ in range(_MAX_DEPTH):
        if isinstance(body, list):
            body = body[0] if body else None
        if isinstance(body, str):
            message = body or message
        if not isinstance(body, Mapping):
            break
        values = (body.get(name) for name in _CODE_FIELDS)
        codes += [str(code)[:60] for code in values if isinstance(code, (str, int))]
        words = (body.get(name) for name in ("message", "detail"))
        message = next((text for text in words if isinstance(text, str) and text), message)
        body = body.get("error") or body.get("innererror")
    return " ".join(codes), message


def retrying(
    *,
    wait_scale: float,
    sleep: Callable[[float], Awaitable[None]],
    on_retry: Callable[[GraderFailure, int, float], None],
) -> AsyncRetrying:
    """Return the retry policy: up to 8 attempts after transient failures, 2 after timeouts. Waits
    are as long as the server asks, else 1, 2, 4 ... 60 seconds with up to a random second added;
    `wait_scale` multiplies every wait. `on_retry` is called with a failure, the number of its
    attempt, and the seconds until the next attempt.
    """
    from tenacity import AsyncRetrying, retry_if_exception_type, wait_exponential_jitter

    backoff = wait_exponential_jitter(initial=1, max=LONGEST_WAIT, jitter=1)
    n_timeouts = 0

    def failure_of_attempt(state: RetryCallState) -> Transient:
        failure = state.outcome.exception() if state.outcome else None
        return failure if isinstance(failure, Transient) else Transient("")

    def wait(state: RetryCallState) -> float:
        retry_after = failure_of_attempt(state).retry_after
        return wait_scale * (backoff(state) if retry_after is None else retry_after)

    def stop(state: RetryCallState) -> bool:
        nonlocal n_timeouts
        n_timeouts += failure_of_attempt(state).is_timeout
        return n_timeouts >= MAX_TIMEOUTS or state.attempt_number >= ATTEMPTS

    def before_sleep(state: RetryCallState) -> None:
        if state.next_action:
            on_retry(failure_of_attempt(state), state.attempt_number, state.next_action.sleep)

    return AsyncRetrying(
        stop=stop,
        before_sleep=before_sleep,
        retry=retry_if_exception_type(Transient),
        wait=wait,
        sleep=sleep,
        reraise=True,
    )


def _connection_failure(error: Exception, spec: GraderSpec, scrubber: Scrubber) -> Transient:
    """Return the failure for a connection that was never made or broke off, by its cause."""
    causes: list[BaseException] = [error]
    for _ in range(9):  # a bound, as causes may form a circle
        if cause := causes[-1].__cause__ or causes[-1].__context__:
            causes.append(cause)
    messages = [str(cause) for cause in causes[1:] if str(cause)]
    message = scrubber.message(messages[0] if messages else str(error))
    class_names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if class_names.isdisjoint(_NEVER_REACHED):
        return Transient(message)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        advice = written("provider.unknown_name", **_address_fields(spec))
    elif any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        advice = written("provider.nothing_listens", **_address_fields(spec))
    else:
        host = spec.endpoint.base_url or spec.endpoint.host
        advice = written("provider.no_connection", host=host, why=message)
    return Transient(message, may_be_billed=False, advice=advice)


def _address_fields(spec: GraderSpec) -> dict[str, str]:
    """Return the fields of a sentence about an address. The advice is to add /v1 to the address of
    a chat server that has no path, else to check the path.
    """
    endpoint, url = spec.endpoint, spec.endpoint.base_url
    advice = written("provider.check_path")
    if url and spec.api_format == "chat" and not urlsplit(url).path.strip("/"):
        advice = written("provider.add_v1", url=f"{url.rstrip('/')}/v1")
    return {"address": url or endpoint.host, "host": endpoint.host, "with_v1": advice}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait (it may give a date), or None."""
    for name, per_second in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            if math.isfinite(seconds := float(headers[name]) / per_second):
                return max(seconds, 0.0)
    with suppress(KeyError, ValueError):
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
        return max(date.timestamp() - time.time(), 0.0)
    return None


# ---- token probabilities ------------------------------------------------------------------------

LOW_MASS = 0.8  # a reading with less mass inside the options is flagged
MAX_UNSEEN = 0.2  # a reading is discarded if an option's probability could be off by more than this
MAX_UNFINISHED = 0.1
"""A reading is discarded if tokens that only begin an answer, such as an unchosen bracket, could
move a probability by more than this. The possible shift is kept with the grade."""
MAX_AMBIGUOUS = 1e-9  # no more than rounding
"""A reading is discarded if it is unknown to which of two options more than this mass belongs."""

# Marks that some servers leave in token texts for a space or a line break.
_SPACE_MARKS = str.maketrans({"\u0120": " ", "\u2581": " ", "\u010a": "\n"})
_OPENING = " \t\r\n([{<\"'`*_"
_CLOSING = " \t\r\n)]}>\"'`*_.:,;"
_NOT_LISTED = -9000.0  # a log-probability below this says that a token is not among the likely ones
_ROUNDING = 0.01  # how far rounded values may be above 0 in the logarithm, or above 1 in all

T = TypeVar("T")
Json = Mapping[str, Any]
"""A JSON object."""
Facts = dict[str, Any]
"""A grade's provenance or a reply's evidence, as stored with the grade."""


def _or_none(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Return a field's value, or None if it is not valid."""
    try:
        return validate(value)
    except ValidationError:
        return None


OrNone = Annotated[T | None, WrapValidator(_or_none)]
"""A field that is None if the value has another type."""


class Token(BaseModel):
    """A token as the API gives it; `bytes`, if present, take precedence over `token`."""

    token: str
    logprob: float
    bytes: OrNone[list[int]] = None

    @property
    def text(self) -> str:
        """The token's text, without the marks that some servers leave for spaces."""
        if self.bytes is not None and all(0 <= byte < 256 for byte in self.bytes):
            return bytes(self.bytes).decode("utf-8", "replace")
        return self.token.translate(_SPACE_MARKS)

    @property
    def probability(self) -> float:
        """The probability, 0 to 1. The API's -9999.0 for "not among the most probable" gives 0."""
        return 0.0 if math.isnan(self.logprob) else math.exp(min(self.logprob, 0.0))


class Position(Token):
    """A position in the answer: the token chosen there and the most probable ones."""

    top_logprobs: OrNone[list[OrNone[Token]]] = None

    def candidates(self) -> list[Token]:
        """Return the listed tokens, and the chosen token if the list leaves it out."""
        listed = [token for token in self.top_logprobs or () if token]
        return listed if any(token.text == self.text for token in listed) else [*listed, self]


@dataclass(frozen=True, slots=True)
class OptionReading:
    """Option probabilities read at one `position` of the answer, which sum to 1. Masses are
    probabilities of tokens; `in_option_mass` is their sum over the options. `top_tokens` are the
    tokens listed there, each with its log-probability.
    """

    probabilities: dict[str, float]
    in_option_mass: float
    position: int
    top_tokens: list[tuple[str, float]]
    unseen: float
    """The most that any of these probabilities can be off, given the mass not listed."""
    unfinished: float = 0.0
    """The part of `unseen` for answers that were not followed, such as those in a bracket."""
    ambiguous: float = 0.0
    """The mass on unchosen tokens that begin two options; which of these follows is not known."""

    @property
    def label(self) -> str:
        """The most probable option; the earlier one on the scale in case of a tie."""
        return max(self.probabilities, key=lambda key: self.probabilities[key])


def logprob_fault(positions: Sequence[Position]) -> str:
    """Return the reason why reported values cannot be log-probabilities, else "".

    >>> def answer(*logprobs):
    ...     top = [Token(token=str(n), logprob=logprob) for n, logprob in enumerate(logprobs)]
    ...     return [Position(token="0", logprob=logprobs[0], top_logprobs=top)]
    >>> rows = ((-0.1, -3.0), (0.6, 0.2), (-0.1, -0.1), (-3, -3, -3))
    >>> [logprob_fault(answer(*row)) for row in rows]
    ['', 'above zero', 'more than one in all', 'all the same']
    """
    for position in positions:
        logprobs = [token.logprob for token in position.candidates()]
        if any(math.isnan(logprob) or logprob > _ROUNDING for logprob in logprobs):
            return "above zero"
        if math.fsum(token.probability for token in position.candidates()) > 1 + _ROUNDING:
            return "more than one in all"
        are_equal = len(logprobs) > 2 and len(set(logprobs)) == 1
        if are_equal or all(logprob <= _NOT_LISTED for logprob in logprobs):
            return "all the same"
    return ""


def read_options(
    positions: Sequence[Position],
    text: str,
    label: str | None,
    keys: Sequence[str],
    *,
    unsplit_numbers: bool = False,
) -> OptionReading | None:
    """Return the option probabilities of an answer, or None if the tokens do not give them. `label`
    is the option that the text as a whole names, if any. Reading starts where the answer begins and
    follows the chosen tokens while they may become one key or another, or are only an opening
    bracket. If the answer begins with other words ("Answer: C") and few of the likely tokens there
    are options, `label` is read where it stands. `unsplit_numbers`: every number is one token.
    """
    start = _answer_start(positions, text)
    if not any(_stripped(position.text) for position in positions[start:]):  # brackets alone
        return None
    reading = _read_from(positions, start, keys, unsplit_numbers)
    if chosen_key := _spelled_key(positions, start, keys):
        # Tokens and text name different options where a word ("A fair ...") begins like an option.
        return reading if chosen_key == label else None
    if reading and reading.in_option_mass >= LOW_MASS:
        return reading
    early_mass = 0.0  # of options in the place of words before the label: answers not followed
    for index in range(start, len(positions)):
        key = _spelled_key(positions, index, keys)
        if label is not None and key == label:
            return _read_from(positions, index, keys, unsplit_numbers, early_mass)
        if key is None:
            tokens = positions[index].candidates()
            options = [token for token in tokens if _spelling("", token.text, keys).key]
            mass = min(math.fsum(token.probability for token in options), 1.0)
            early_mass += (1 - early_mass) * mass
    # Few of the likely tokens are options and the text names another one, or none: trusting the
    # little mass there is would invent an answer.
    return reading if reading and reading.label == label else None


@dataclass(frozen=True, slots=True)
class _Spelling:
    """The option `key` that the beginning of an answer spells, if any. `may_change` is True if
    further text may turn it into another option, `is_prefix` if it may yet come to spell one.
    """

    key: str | None = None
    may_change: bool = False
    is_prefix: bool = False


def _read_from(
    positions: Sequence[Position],
    start: int,
    keys: Sequence[str],
    unsplit_numbers: bool,
    early_mass: float = 0.0,  # of answers that begin before `start`
) -> OptionReading | None:
    """Return the option probabilities of the answer that begins at position `start`, or None if no
    listed token is an option. Follows the chosen tokens while the answer's key may change. At each
    position on this path, a token's mass counts for the option that it spells, as unfinished if it
    only begins an answer, or as ambiguous if it begins two keys; the rest is unlisted.
    """
    masses = dict.fromkeys(keys, 0.0)
    ambiguous_mass, unlisted_mass, unfinished_mass = 0.0, 0.0, early_mass
    beginning, path_probability, read_at = "", 1.0 - early_mass, start
    for index in range(start, len(positions)):
        position, next_probability = positions[index], 0.0
        tokens = position.candidates()
        unlisted = 1.0 - math.fsum(token.probability for token in tokens)
        unlisted_mass += path_probability * max(unlisted, 0.0)
        is_last = index + 1 == len(positions)
        continues = False
        for token in tokens:
            mass = path_probability * token.probability
            spelling = _spelling(beginning, token.text, keys)
            if unsplit_numbers and spelling.key and spelling.key.isdigit():
                spelling = _Spelling(spelling.key)  # no further digit will follow
            # The next token may make a key that ends the text into a longer word: "A" into "Apart".
            may_grow = spelling.key and re.search(r"(?:[^\W_]|[+-])\Z", beginning + token.text)
            is_open = spelling.may_change or spelling.is_prefix or may_grow
            is_chosen = token.text == position.text and bool(token.text)
            if is_chosen and is_open and not is_last:
                next_probability, continues = next_probability + mass, True
            elif spelling.may_change:
                ambiguous_mass += mass
            elif spelling.key:
                masses[spelling.key] += mass
            elif spelling.is_prefix:
                unfinished_mass += mass
        if not _stripped(beginning):
            read_at = index
        if not continues:
            break
        beginning, path_probability = beginning + position.text, next_probability
    option_mass = math.fsum(masses.values())
    if option_mass + ambiguous_mass <= 0:
        return None
    # All unseen mass u could be one option's: of the total mass M + u, its probability p_k is
    # between m_k / (M + u) and (m_k + u) / (M + u), an interval of width u / (M + u).
    unseen_mass = unlisted_mass + unfinished_mass
    total_mass = option_mass + ambiguous_mass + unseen_mass
    return OptionReading(
        probabilities={key: mass / (option_mass or 1.0) for key, mass in masses.items()},
        in_option_mass=min(option_mass + ambiguous_mass, 1.0),
        position=read_at,
        top_tokens=[(token.token, token.logprob) for token in positions[read_at].candidates()],
        unseen=unseen_mass / total_mass,
        unfinished=unfinished_mass / total_mass,
        ambiguous=ambiguous_mass,
    )


def _spelling(beginning: str, text: str, keys: Sequence[str]) -> _Spelling:
    """Return what an answer spells that has this `beginning` and then a token with this `text`.

    >>> stances = ("agree", "disagree")
    >>> [_spelling("", text, stances).key for text in (" Agree", "dis", "(", "a", "ag")]
    ['agree', 'disagree', None, None, 'agree']
    >>> ten = tuple(str(n) for n in range(1, 11))
    >>> _spelling("", "1", ten), _spelling("1", "0", ten).key, _spelling("1", ".", ten).key
    (_Spelling(key='1', may_change=True, is_prefix=False), '10', '1')
    """
    if not (answer := (beginning + text).lstrip(_OPENING)):
        return _Spelling(is_prefix=True)
    folded = answer.casefold()
    for key in sorted(keys, key=len, reverse=True):
        # A lower-case letter may be a word ("a"), so single letters must match as they are.
        matches_key = answer.startswith(key) if len(key) == 1 else folded.startswith(key.casefold())
        following_text = answer[len(key) :]
        if not matches_key or re.match(r"[A-Za-z0-9_+-]", following_text):
            continue
        n_with_prefix = sum(other.casefold().startswith(key.casefold()) for other in keys)
        has_ended = bool(following_text) or not text  # a token without text ends an answer
        return _Spelling(key, may_change=n_with_prefix > 1 and not has_ended)  # 1: the key itself
    longer_keys = [key for key in keys if len(key) > 1 and key.casefold().startswith(folded)]
    if not text or not longer_keys:
        return _Spelling()
    # Two letters can name a key; a single one may begin any word.
    is_one_letter = folded.isalpha() and len(folded) == 1
    if folded.isalpha() and not is_one_letter and len(longer_keys) == 1:
        return _Spelling(longer_keys[0])
    return _Spelling(may_change=not is_one_letter, is_prefix=True)


def _spelled_key(positions: Sequence[Position], start: int, keys: Sequence[str]) -> str | None:
    """Return the option that the chosen tokens spell from position `start` on, or None."""
    answer = "".join(position.text for position in positions[start:]).lstrip(_OPENING)
    key = _spelling("", answer, keys).key
    # A shortened key, such as "ag" for "agree", does not count.
    return key if key and answer[: len(key)].casefold() == key.casefold() else None


def _stripped(text: str) -> str:
    """Return a token's text without brackets, quotes, marks and spaces around it."""
    return text.lstrip(_OPENING).rstrip(_CLOSING)


def _answer_start(positions: Sequence[Position], text: str) -> int:
    """Return the index of the answer's first token; some servers list thinking before it. Blank
    tokens before the answer belong to it, as other answers may begin in their place.
    """
    texts, answer = [position.text for position in positions], text.strip()
    before = "".join(texts).rpartition(answer)[0] if answer else ""
    ends = accumulate(map(len, texts))
    start = next((index for index, end in enumerate(ends) if end > len(before)), 0)
    while start and not texts[start - 1].strip():
        start -= 1
    return start


# ---- what a store can keep ----------------------------------------------------------------------

_MAX_INTEGER = 2**63 - 1  # an integer as databases know it
_MAX_DIGITS = 100
# In JSON's own writing: half a character, NUL, and an integer of 19 digits or more.
_NOT_PLAIN = re.compile(r"\\u(?:d[89a-f]|0000)|(?<![\d.])\d{19}")


def storable(value: Any) -> Any:
    """Return a server's data in a form that every database can store: no lone surrogates, NUL,
    infinities or integers beyond 64 bits.

    >>> storable({"text": "a" + chr(0xD800) + "b", "p": float("inf"), "n": [1, None]})
    {'text': 'a?b', 'p': 'inf', 'n': [1, None]}
    """
    with suppress(TypeError, ValueError, RecursionError):
        json_text = json.dumps(value, allow_nan=False)
        if _NOT_PLAIN.search(json_text) is None:  # nearly always, and much faster
            return value
    try:
        return _storable(value)
    except RecursionError:
        return "[too deeply nested]"


def _storable(value: Any) -> Any:
    """Return a value of any type of JSON as `storable` does, without its quick check."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value.isascii() and "\0" not in value:  # most texts
            return value
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and abs(value) > _MAX_INTEGER:
        return str(value) if abs(value) < 10**_MAX_DIGITS else "[too large]"
    return value


# ---- outcomes -----------------------------------------------------------------------------------

MAX_RAW_CHARS = 20_000  # characters kept of a reply that could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A label with its evidence, or the reason why there is none. Labels and probabilities are for
    the order that was shown: the runner maps them back. `prob_method` is the method that gave the
    probabilities. A reply without a valid label has an `unscored_reason` (`refusal`, `truncated`,
    `unparseable`, `content_filter`), never a default label.
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
        """Return the outcome of a malformed reply, with up to `MAX_RAW_CHARS` of its text."""
        return cls(unscored_reason="unparseable", raw=json.dumps(storable(reply))[:MAX_RAW_CHARS])


# ---- answers of more than a label ---------------------------------------------------------------

_PERCENTAGES = TypeAdapter(
    dict[str, Annotated[float, Field(strict=True, ge=0, le=100, allow_inf_nan=False)]]
)
_MAX_SUM_ERROR = 5.0  # percentages whose sum misses 100 by more than this are not a distribution
REASON = "reason"  # key in a grade's provenance: the grader's reason, in its own words
_REASON_FIELDS = [REASON, "label"]


def prompt_for_method(
    prompt: PromptText, settings: GraderSettings
) -> tuple[PromptText, dict[str, Any]]:
    """Return a prompt adapted to the method, and the JSON schema of its answer. The prompt's last
    paragraph asks for a label, for a probability of every option, or for a reason and then a label.
    The schema's fields are in the order in which the answer has them.
    """
    kind, keys, last_paragraph = prompt.kind, ", ".join(prompt.kind.keys), ""
    fields: dict[str, Any] = {"label": kind.schema()}
    if settings.method == "verbalised":
        last_paragraph = (
            "Answer with a JSON object that gives for every option the probability, in percent, "
            "that a careful rater would choose it; the numbers add up to 100. Its keys are: "
            f"{keys}."
        )
        fields = {key: {"type": "number"} for key in kind.keys}
    elif settings.reason:
        last_paragraph = (
            f"First give your reason, in at most three sentences. Then give {kind.answer_form}, "
            "alone on the last line." + (f" The keys are: {keys}." if kind.listed else "")
        )
        fields = {REASON: {"type": "string"}, **fields}
    if last_paragraph:
        other_paragraphs = prompt.system.rpartition("\n\n")[0]
        prompt = replace(prompt, system=f"{other_paragraphs}\n\n{last_paragraph}")
    object_rules = {"required": list(fields), "additionalProperties": False}
    return prompt, {"type": "object", "properties": fields, **object_rules}


def read_percent(text: str, keys: Sequence[str], evidence: dict[str, Any]) -> Outcome:
    """Return the outcome of stated percentages, scaled to sum to 1; its label is the likeliest one.

    >>> outcome = read_percent('{"A": 20, "B": 79}', ("A", "B"), {})
    >>> outcome.label, round(outcome.probabilities["B"], 3), outcome.evidence["stated_sum"]
    ('B', 0.798, 99.0)
    >>> read_percent('{"A": 50, "B": 20}', ("A", "B"), {}).unscored_reason
    'unparseable'
    """
    try:
        percentages = _PERCENTAGES.validate_json(text[text.find("{") : text.rfind("}") + 1])
    except ValueError:
        percentages = {}
    total = math.fsum(percentages.values())
    if set(percentages) != set(keys) or abs(total - 100) > _MAX_SUM_ERROR:
        return Outcome(unscored_reason="unparseable", raw=text, evidence=evidence)
    probabilities = {key: percentages[key] / total for key in keys}
    return Outcome(
        label=max(keys, key=lambda key: probabilities[key]),
        probabilities=probabilities,
        prob_method="verbalised",
        raw=text,
        evidence=evidence | {"stated_sum": total},
    )


def read_reason(text: str, parser: RubricParser, evidence: dict[str, Any]) -> Outcome:
    """Return the outcome of a reason and then a label. A label alone, or before it, does not count.

    >>> parser = RubricParser({"A": "First", "B": "Second"})
    >>> outcome = read_reason('{"reason": "A is vague.", "label": "B"}', parser, {})
    >>> outcome.label, outcome.evidence["reason"]
    ('B', 'A is vague.')
    >>> [read_reason(text, parser, {}).label for text in ("A is vague.\\n\\nB", "B", "B\\nVague.")]
    ['B', '', '']
    """
    reason, answer = _split_reason(answer_of(text) or "")
    if not reason.strip() or (label := parser.label(answer)) is None:
        return Outcome(unscored_reason="unparseable", raw=text, evidence=evidence)
    return Outcome(label=label, raw=text, evidence=evidence | {REASON: reason.strip()})


def _split_reason(text: str) -> tuple[str, str]:
    """Split a reply into (reason, answer): two fields of JSON, else the text and its last line.
    Return ("", "") for JSON with other fields or types.
    """
    if re.match(r"(?:```\w*\s*)?\{", text):  # JSON, perhaps in a block of code
        objects = json_fields(text)
        fields = objects[0] if len(objects) == 1 else []
        if [name for name, _ in fields] != _REASON_FIELDS:
            return "", ""
        reason, label = (value for _, value in fields)
        if isinstance(label, int | float) and not isinstance(label, bool):
            label = f"{label:g}"
        if isinstance(label, list):
            label = json.dumps(label)
        return (reason, label) if isinstance(reason, str) and isinstance(label, str) else ("", "")
    reason_text, _, last_line = text.strip().rpartition("\n")
    return reason_text, last_line


# ---- any answer ---------------------------------------------------------------------------------

NOT_LOGPROBS = "not_logprobs"  # key in evidence: why reported values are no log-probabilities

PATTERN_SLOW = "pattern_too_slow"  # unscored reason: the prompt's own pattern took too long


def outcome_of(
    text: str,
    rubric: Rubric | None,
    method: str,
    evidence: dict[str, Any],
    *,
    unscored: str = "",
    positions: Sequence[Position] = (),
    unsplit_numbers: bool = False,
) -> Outcome:
    """Return the outcome of a reply's text by this method; without a rubric, the text, cut or not.
    `evidence` is kept with it. `unscored` is the reason if the reply holds no answer. `positions`
    are the answer's tokens with probabilities, if any; on `unsplit_numbers` see `read_options`.
    """
    if rubric is None:
        return Outcome(raw=text, evidence=evidence | {"truncated": unscored == "truncated"})
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
    if positions and rubric.kind.is_choice:  # other answers have many tokens
        if fault := logprob_fault(positions):
            evidence[NOT_LOGPROBS] = fault
        else:
            answer, keys = answer_of(text) or text, rubric.categories
            reading = read_options(positions, answer, label, keys, unsplit_numbers=unsplit_numbers)
    if reading:
        evidence |= _reading_evidence(reading, label)
        # Probabilities that are too uncertain are left out rather than scaled to 1.
        if "no_probabilities" not in evidence:
            return Outcome(
                label=reading.label,
                probabilities=reading.probabilities,
                prob_method="logprobs",
                raw=text,
                evidence=evidence,
            )
    reason = "" if label else "unparseable"
    return Outcome(label=label or "", unscored_reason=reason, raw=text, evidence=evidence)


def _reading_evidence(reading: OptionReading, label: str | None) -> dict[str, Any]:
    """Return the evidence of option probabilities, with the reason if they are not reliable."""
    facts: dict[str, Any] = {
        "text_label": label,  # what the text says can differ from the most probable option
        "in_option_mass": reading.in_option_mass,
        "low_mass": reading.in_option_mass < LOW_MASS,
        "logprob_position": reading.position,
        "top_logprobs": reading.top_tokens,
    }
    if reading.unfinished > MAX_AMBIGUOUS:  # more than a rounding error
        facts["may_be_off"] = reading.unseen
    # Of the reasons against the probabilities, the last that applies is kept.
    if reading.unfinished > MAX_UNFINISHED:
        facts |= {"unseen": reading.unseen, "no_probabilities": "not_followed"}
    if reading.unseen > MAX_UNSEEN:
        facts |= {"unseen": reading.unseen, "no_probabilities": "not_listed"}
    if reading.ambiguous > MAX_AMBIGUOUS:
        facts |= {"split": reading.ambiguous, "no_probabilities": "key_begins_another"}
    return facts


# ---- repeated draws -----------------------------------------------------------------------------

NO_CACHE_HEADERS = {
    "Cache-Control": "no-cache",
    "X-OpenRouter-Cache": "false",
    "Helicone-Cache-Enabled": "false",
    "cf-aig-skip-cache": "true",
    "x-portkey-cache-force-refresh": "true",
}
"""Request headers that decline cached answers; servers ignore those that they do not know."""
LITELLM_NO_CACHE = {"cache": {"no-cache": True}}
"""A field of the body that declines cached answers at LiteLLM; other servers would refuse it."""
REPEATED = "repeated_reply"  # unscored reason: the draw brought the reply of an earlier one


def as_draw(outcome: Outcome, rubric: Rubric) -> Outcome:
    """Return one draw's outcome, with all probability on the option that was drawn. The mean over a
    unit's draws, by which draws are combined, is then the share of each option. Numbers and sets
    of options are combined without probabilities.
    """
    if not outcome.label or not rubric.kind.is_choice:
        return outcome
    probabilities = {key: float(key == outcome.label) for key in rubric.categories}
    return replace(outcome, probabilities=probabilities, prob_method="draws")


def reply_identity(facts: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return (id, time, index of the answer in the reply), or None if the reply has no id. The id
    alone is not enough: some local servers draw ids from only a thousand.

    >>> reply_identity({"reply_id": "msg_1"}), reply_identity({"reply_id": ""})
    (('msg_1', None, 0), None)
    """
    if not facts.get("reply_id"):
        return None
    return facts["reply_id"], facts.get("created"), facts.get("choice") or 0
