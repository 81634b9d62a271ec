"""A provider whose requests have a form of their own: a file in `providers/forms`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from evenhand.errors import InputError
from evenhand.graders.clients.batches import BatchService
from evenhand.graders.clients.connection import told_by_study
from evenhand.graders.clients.constraint import asked
from evenhand.graders.clients.grader import BeforeSending, Identity, Reply
from evenhand.graders.clients.openai_chat import chat_client
from evenhand.graders.failures import answered_within, failure_of, json_object
from evenhand.graders.grader_settings import GraderSettings
from evenhand.graders.money import charged_by
from evenhand.graders.providers.forms import Question, form_of
from evenhand.graders.replies.draws import DECLINED
from evenhand.graders.replies.outcome import Outcome
from evenhand.graders.replies.reading import Said, outcome_of
from evenhand.graders.scrub import Scrubber
from evenhand.graders.spec import GraderSpec
from evenhand.rubrics import PromptText, Rubric
from evenhand.texts import written

MAX_TOKENS = 16_000

_NOT_AS_PROMISED = (LookupError, TypeError, ValueError, AttributeError, RecursionError)


def build_request(spec: GraderSpec, prompt: PromptText, settings: GraderSettings) -> dict[str, Any]:
    """Return the request in the provider's form."""
    prompt, schema = asked(prompt, settings)
    question = Question(
        model=spec.model,
        system=prompt.system,
        user=prompt.user,
        max_tokens=settings.max_tokens or MAX_TOKENS,
        schema=schema if settings.method == "verbalised" else None,
    )
    return form_of(spec.speaks).request(question)


def parse_reply(
    speaks: str, reply: Mapping[str, Any], rubric: Rubric | None, method: str
) -> Outcome:
    """Return the outcome in a reply; without a rubric, its text."""
    try:
        answer = form_of(speaks).read(reply)
        text, usage = str(answer.text), dict(answer.usage)
    except _NOT_AS_PROMISED:
        return Outcome.unreadable(reply)
    evidence = {"model": str(answer.model), "id": str(answer.id), "usage": usage}
    said = Said(text=text, unscored=answer.unscored, evidence=evidence)
    return outcome_of(said, rubric, method)


class OtherGrader:
    """Asks one model in its provider's own form. OpenAI's client carries the requests, since keys,
    connections and errors do not depend on the form.
    """

    draws_at_once = 1
    settled = True

    def __init__(
        self, spec: GraderSpec, settings: GraderSettings, scrubber: Scrubber, *, timeout: float
    ) -> None:
        self.spec = spec
        self.settings = settings
        self._scrubber = scrubber
        self._timeout = timeout
        self._path = form_of(spec.speaks).PATH
        self._client = chat_client(spec, scrubber, timeout)
        self.identity = Identity(
            provider=spec.provider,
            base_url=str(self._client.base_url),
            endpoint=self._path.strip("/"),
            api_version="",
            sdk=spec.speaks,
        )

    def request(self, prompt: PromptText) -> dict[str, Any]:
        return build_request(self.spec, prompt, self.settings)

    def read(
        self, reply: Mapping[str, Any], rubric: Rubric | None, draws: int = 1
    ) -> list[Outcome]:
        return [parse_reply(self.spec.speaks, reply, rubric, self.settings.reading)]

    def constrains(self, request: Mapping[str, Any]) -> bool:
        return False  # a form says nothing of that

    async def ask(
        self,
        rubric: Rubric | None,
        prompt: PromptText,
        before: BeforeSending,
        draws: int = 1,
        *,
        constrained: bool = False,
    ) -> Reply:
        import httpx2
        from openai import OpenAIError

        request = self.request(prompt)
        await before(request)
        try:
            async with answered_within(self._timeout):
                raw = await self._client.post(
                    self._path,
                    body=request,
                    cast_to=httpx2.Response,
                    options={"headers": DECLINED},
                )
        except OpenAIError as error:
            raise failure_of(error, self.spec, self._scrubber) from None
        reply = json_object(raw.text, self.spec, self._scrubber)
        request_id = raw.headers.get("x-request-id") or ""
        (outcome,) = self.read(reply, rubric)
        return Reply(request, request_id, outcome, charged=charged_by(raw.headers))

    def batches(self, pause: Callable[[], Awaitable[None]]) -> BatchService:
        raise InputError(written("provider.no_batches", provider=self.spec.provider))

    async def lifecycle(self) -> list[str]:
        return told_by_study(self.spec)

    async def close(self) -> None:
        await self._client.close()
