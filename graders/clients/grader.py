"""A grader behind a network, as a run sees it, whoever provides it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from evenhand.graders.clients.batch_service import BatchService
from evenhand.graders.grader_settings import GraderSettings
from evenhand.graders.replies.outcome import Outcome
from evenhand.graders.spec import GraderSpec
from evenhand.rubrics import PromptText, Rubric


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the grader asks: part of every grade's key and provenance."""

    provider: str
    base_url: str
    endpoint: str
    api_version: str
    sdk: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One answered request: what was sent in the end, and what came back."""

    request: Mapping[str, Any]
    request_id: str
    outcome: Outcome
    more: tuple[Outcome, ...] = ()
    """The further ones, where several draws came in one reply."""
    charged: float | None = None
    """What a gateway says that it cost, in US dollars."""


BeforeSending = Callable[[dict[str, Any]], Awaitable[None]]
"""Awaited with every request just before it is sent. It may lower the limit on output, and raises
where the request must not be sent.
"""


class Grader(Protocol):
    """A grader behind a network. `ask` raises a `failures.GraderFailure`."""

    spec: GraderSpec
    identity: Identity

    settings: GraderSettings

    @property
    def draws_at_once(self) -> int:
        """For how many draws of one prompt a request may ask."""
        ...

    @property
    def settled(self) -> bool:
        """Whether it is known how the model is to be asked; until then one question at a time."""
        ...

    def request(self, prompt: PromptText) -> dict[str, Any]:
        """The final request, as `ask` would send it now."""
        ...

    def read(
        self, reply: Mapping[str, Any], rubric: Rubric | None, draws: int = 1
    ) -> list[Outcome]:
        """The outcome in a reply that came by whichever way, or those of at most so many draws;
        without a rubric, its text.
        """
        ...

    def batches(self, pause: Callable[[], Awaitable[None]]) -> BatchService:
        """The provider's batch service; `pause` waits between two looks at a batch."""
        ...

    async def lifecycle(self) -> list[str]:
        """Warnings about the model's life; never raises."""
        ...

    def constrains(self, request: Mapping[str, Any]) -> bool:
        """Whether an answer that could not be read can be asked for again, held to the keys."""
        ...

    async def ask(
        self,
        rubric: Rubric | None,
        prompt: PromptText,
        before: BeforeSending,
        draws: int = 1,
        *,
        constrained: bool = False,
    ) -> Reply:
        """One answered request, for so many draws where it takes `draws_at_once`; `constrained` to
        the rubric's keys by the server's own means.
        """
        ...

    async def close(self) -> None: ...
