"""A grader behind a network, as a run sees it, whoever provides it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from evenhand.graders.clients.batches import BatchService
from evenhand.graders.grader_settings import GraderSettings
from evenhand.graders.replies.outcome import Outcome
from evenhand.graders.spec import GraderSpec
from evenhand.rubrics import PromptText, Rubric


@dataclass(frozen=True, slots=True)
class Identity:
    """The service that answers for a grader: part of every grade's key and provenance."""

    provider: str
    base_url: str
    endpoint: str
    api_version: str
    sdk: str


@dataclass(frozen=True, slots=True)
class Reply:
    """An answered request: the request as finally sent, and the outcome of its reply."""

    request: Mapping[str, Any]
    request_id: str
    outcome: Outcome
    more: tuple[Outcome, ...] = ()
    """The further outcomes, where several draws came in one reply."""
    charged: float | None = None
    """The cost in US dollars that a gateway reported, if any."""


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
        """The most draws of one prompt that a request may ask for."""
        ...

    @property
    def settled(self) -> bool:
        """True once it is known how to ask the model; until then questions go one at a time."""
        ...

    def request(self, prompt: PromptText) -> dict[str, Any]:
        """Return the request as `ask` would send it now."""
        ...

    def read(
        self, reply: Mapping[str, Any], rubric: Rubric | None, draws: int = 1
    ) -> list[Outcome]:
        """Return the outcomes in a reply, live or from a batch: one for each draw that came, at
        most `draws`. Without a rubric the outcome is the reply's text.
        """
        ...

    def batches(self, pause: Callable[[], Awaitable[None]]) -> BatchService:
        """The provider's batch service; `pause` waits between two looks at a batch."""
        ...

    async def lifecycle(self) -> list[str]:
        """Warnings about the model's life; never raises."""
        ...

    def constrains(self, request: Mapping[str, Any]) -> bool:
        """Return True if an unreadable answer can be asked for again, constrained to the keys."""
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
        """Ask one prompt and return the reply, with several `draws` where `draws_at_once` allows
        them. With `constrained` the server itself holds the answer to the rubric's keys.
        """
        ...

    async def close(self) -> None: ...
