"""OpenAI's Chat Completions, and every server that speaks them: token probabilities of one token.

Which parameters a server takes differs between models and servers, and none says so beforehand. A
request therefore has a shape that a rejection can teach: a parameter is renamed or dropped, and
what was learnt holds for all later requests of this grader.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from evenhand.graders.batch_service import BatchService
from evenhand.graders.capabilities import about_retirement
from evenhand.graders.extract import LOW_MASS, Position, read_options
from evenhand.graders.failures import failure_of, json_object
from evenhand.graders.grader_settings import GraderSettings
from evenhand.graders.keys import headers_for, key_for, told_by_study
from evenhand.graders.outcome import BeforeSending, Identity, Outcome, Reply
from evenhand.graders.scrub import Scrubber
from evenhand.graders.spec import GraderSpec
from evenhand.graders.transport import pooled
from evenhand.graders.verbalised import asking_for_percent, percent_schema, read_percent
from evenhand.rubrics import PromptText, Rubric

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MAX_TOKENS = 4_096  # one token is wanted, but thinking counts too

LONG_ANSWER = 16_000

_USUAL = GraderSettings("logprobs")
_PLACEHOLDER_KEY = "none"  # servers without keys still want the header
_TEACHING = (400, 403, 422)  # what servers answer to a parameter that they do not take
_TOO_MUCH = re.compile(r"too (?:large|many|long|high)|at most|less than|maximum|exceed|<=|between")


@dataclass(frozen=True, slots=True)
class Shape:
    """Which parameters a request carries besides the model and the messages.

    Each field is what is left to try, the present choice first; empty means the parameter is left
    out. Temperature 1 keeps reported probabilities the model's own, even on servers that report
    them after temperature. Some models give probabilities only with effort "none".
    """

    limit_names: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    top_logprobs: tuple[int, ...] = (20, 5)
    efforts: tuple[str, ...] = ("", "none")
    temperatures: tuple[int, ...] = (1,)
    formats: tuple[str, ...] = ()

    @classmethod
    def for_server(cls) -> Shape:
        """What to begin with on a compatible server: the older name, and no reasoning effort."""
        return cls(limit_names=("max_tokens", "max_completion_tokens"), efforts=())

    def for_method(self, method: str) -> Shape:
        """Token probabilities only where they are the method, a schema where it is a statement."""
        if method == "logprobs":
            return self
        formats = ("json_schema",) if method == "verbalised" else ()
        return replace(self, **_HARD_LABEL, formats=formats)


_HARD_LABEL = {"top_logprobs": (), "efforts": (), "temperatures": ()}


def build_request(
    model: str, prompt: PromptText, shape: Shape, settings: GraderSettings = _USUAL
) -> dict[str, Any]:
    """The arguments of `chat.completions.create`."""
    method = settings.method
    if method == "verbalised":
        prompt = asking_for_percent(prompt)
    turns = [{"role": "system", "content": prompt.system}] if prompt.system else []
    request: dict[str, Any] = {
        "model": model,
        "messages": [*turns, {"role": "user", "content": prompt.user}],
    }
    if shape.limit_names:
        request[shape.limit_names[0]] = LONG_ANSWER if method == "text" else MAX_TOKENS
    if shape.top_logprobs:
        request |= {"logprobs": True, "top_logprobs": shape.top_logprobs[0]}
    if shape.temperatures:
        request["temperature"] = shape.temperatures[0]
    if effort := settings.effort or next(iter(shape.efforts), ""):
        request["reasoning_effort"] = effort
    if method == "verbalised" and shape.formats:
        schema = {"name": "options", "strict": True, "schema": percent_schema(prompt.keys)}
        request["response_format"] = {"type": shape.formats[0], "json_schema": schema}
    return request


def learn(shape: Shape, complaint: str) -> Shape | None:
    """The shape to try after a server's complaint, or None where it says nothing about the shape.

    >>> learn(Shape(), "Unsupported parameter: 'max_completion_tokens'").limit_names
    ('max_tokens',)
    >>> learn(Shape(), "Invalid 'top_logprobs': must be less than or equal to 5").top_logprobs
    (5,)
    >>> refused = learn(Shape(), "'logprobs' is not supported with this model")
    >>> refused.efforts, learn(refused, "'reasoning_effort' does not support 'none'").top_logprobs
    (('none',), ())
    """
    complaint = complaint.casefold()
    too_much = bool(_TOO_MUCH.search(complaint))
    if shape.top_logprobs and "top_logprobs" in complaint and too_much:
        rest = shape.top_logprobs[1:]
        return replace(shape, top_logprobs=rest) if rest else replace(shape, **_HARD_LABEL)
    if shape.top_logprobs and re.search(r"log_?prob", complaint):
        rest_efforts = shape.efforts[1:]
        return (
            replace(shape, efforts=rest_efforts) if rest_efforts else replace(shape, **_HARD_LABEL)
        )
    if shape.efforts and re.search(r"reasoning|effort", complaint):
        return replace(shape, **_HARD_LABEL)
    if shape.formats and re.search(r"response_format|json_schema|structured", complaint):
        return replace(shape, formats=())
    if shape.temperatures and "temperature" in complaint:
        return replace(shape, temperatures=shape.temperatures[1:])
    if shape.limit_names and re.search(r"max_(?:completion_)?tokens|context length", complaint):
        # A limit that does not fit beside the prompt is left to the server, not renamed.
        return replace(shape, limit_names=() if too_much else shape.limit_names[1:])
    return None


class _Part(BaseModel):
    text: str = ""


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None

    @property
    def text(self) -> str:
        """What it says; some servers send it in parts."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class _Logprobs(BaseModel):
    content: list[Position] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(BaseModel):
    id: str | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    choices: list[_Choice]
    usage: dict[str, Any] | None = None


def parse_reply(reply: Mapping[str, Any], rubric: Rubric, method: str = "logprobs") -> Outcome:
    """The outcome in a reply (a chat completion as JSON), with the text as it came."""
    try:
        completion = _Completion.model_validate(reply)
        choice = completion.choices[0]
    except (ValidationError, IndexError):
        return Outcome.unreadable(reply)
    text = choice.message.text
    evidence = completion.model_dump(include={"model", "id", "system_fingerprint", "usage"})
    evidence["stop_reason"] = choice.finish_reason
    if reason := _why_unscored(choice):
        raw = text or choice.message.refusal or ""
        return Outcome(unscored_reason=reason, raw=raw, evidence=evidence)
    if method == "verbalised":
        return read_percent(text.rpartition("</think>")[2], rubric.categories, evidence)
    return _read(choice, text, rubric, evidence)


def read_text(reply: Mapping[str, Any]) -> Outcome:
    """A subject's response: whatever it says, a refusal too.

    >>> read_text({"choices": [{"message": {"content": None, "refusal": "No."}}]}).raw
    'No.'
    """
    try:
        completion = _Completion.model_validate(reply)
        choice = completion.choices[0]
    except (ValidationError, IndexError):
        return Outcome.unreadable(reply)
    evidence = completion.model_dump(include={"model", "id", "system_fingerprint", "usage"})
    evidence["stop_reason"] = choice.finish_reason
    return Outcome(raw=choice.message.text or choice.message.refusal or "", evidence=evidence)


def _why_unscored(choice: _Choice) -> str:
    if choice.message.refusal:
        return "refusal"
    return {"content_filter": "content_filter", "length": "truncated"}.get(
        choice.finish_reason or "", ""
    )


def _read(choice: _Choice, text: str, rubric: Rubric, evidence: dict[str, Any]) -> Outcome:
    answer = text.rpartition("</think>")[2]  # local servers may leave the thinking in the text
    label = rubric.parser().label(answer)
    positions = (choice.logprobs and choice.logprobs.content) or []
    reading = read_options(positions, answer, label, rubric.categories)
    if reading is None:
        reason = "" if label else "unparseable"
        return Outcome(label=label or "", unscored_reason=reason, raw=text, evidence=evidence)
    evidence |= {
        "text_label": label,  # what the text says can differ from the most probable option
        "in_option_mass": reading.in_option_mass,
        "low_mass": reading.in_option_mass < LOW_MASS,
        "logprob_position": reading.position,
        "top_logprobs": reading.top,
    }
    return Outcome(
        label=reading.label,
        probabilities=reading.probabilities,
        prob_method="logprobs",
        raw=text,
        evidence=evidence,
    )


def first_shape(spec: GraderSpec, settings: GraderSettings) -> Shape:
    """What the first request looks like."""
    is_openai = spec.provider == "openai" and spec.at.is_own
    return (Shape() if is_openai else Shape.for_server()).for_method(settings.method)


def chat_client(spec: GraderSpec, scrubber: Scrubber, timeout: float) -> AsyncOpenAI:
    """A client of OpenAI's SDK for whatever server the grader names. Raises InputError where its
    key is missing.
    """
    import openai

    place = spec.at
    headers = headers_for(place, scrubber, "OPENAI_CUSTOM_HEADERS", openai.Omit())
    if spec.provider != "openai" or not place.is_own:  # the account's names are OpenAI's business
        headers |= dict.fromkeys(("OpenAI-Organization", "OpenAI-Project"), openai.Omit())
    return openai.AsyncOpenAI(
        api_key=key_for(spec) or _PLACEHOLDER_KEY,
        base_url=place.address,
        default_headers=headers,
        max_retries=0,
        timeout=openai.Timeout(timeout, connect=10.0),
        http_client=pooled(openai.DefaultAioHttpClient, scrubber),
    )


class OpenAIGrader:
    """Asks one model at OpenAI or a compatible server, with one client for all requests."""

    def __init__(
        self, spec: GraderSpec, settings: GraderSettings, scrubber: Scrubber, *, timeout: float
    ) -> None:
        import openai

        self.spec = spec
        self.settings = settings
        self._scrubber = scrubber
        self._shape = first_shape(spec, settings)
        self._client = chat_client(spec, scrubber, timeout)
        self.identity = Identity(
            provider=spec.provider,
            base_url=str(self._client.base_url.copy_with(username=None, password=None)),
            endpoint="chat/completions",
            api_version="v1",
            sdk=f"openai {openai.__version__}",
        )

    async def ask(self, rubric: Rubric | None, prompt: PromptText, before: BeforeSending) -> Reply:
        """One answered request; a rejection of a parameter is learnt from and asked anew.

        The request goes out as it was built: `chat.completions.create` would copy it by its types,
        which takes a third of a request's time.
        """
        import httpx2
        from openai import APIStatusError, OpenAIError

        shape = self._shape
        while True:
            request = build_request(self.spec.model, prompt, shape, self.settings)
            await before(request)
            try:
                raw = await self._client.post(
                    "/chat/completions", body=request, cast_to=httpx2.Response
                )
            except APIStatusError as error:
                taught = _lesson(error.status_code, f"{error} {error.body}", shape)
                if taught is None:
                    raise failure_of(error, self.spec, self._scrubber) from None
                shape = taught
            except OpenAIError as error:
                raise failure_of(error, self.spec, self._scrubber) from None
            else:
                break
        reply = json_object(raw.text, self._scrubber)
        self._shape = shape  # only what led to a reply is remembered
        request_id = raw.headers.get("x-request-id") or ""
        return Reply(request, request_id, self.parse(reply, rubric))

    def request(self, prompt: PromptText) -> dict[str, Any]:
        return build_request(self.spec.model, prompt, self._shape, self.settings)

    def parse(self, reply: Mapping[str, Any], rubric: Rubric | None) -> Outcome:
        if rubric is None:
            return read_text(reply)
        return parse_reply(reply, rubric, self.settings.method)

    def batches(self, pause: Callable[[], Awaitable[None]]) -> BatchService:
        from evenhand.graders.openai_batch import OpenAIBatches

        return OpenAIBatches(self._client, self.spec, self._scrubber)

    async def lifecycle(self) -> list[str]:
        # The API says nothing about a model's life.
        return told_by_study(self.spec) + about_retirement(self.spec)

    async def close(self) -> None:
        await self._client.close()


def _lesson(status: int, complaint: str, shape: Shape) -> Shape | None:
    return learn(shape, complaint) if status in _TEACHING else None
