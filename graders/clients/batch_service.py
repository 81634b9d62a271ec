"""What a provider's batch service looks like to a run, whichever provider it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evenhand.graders.failures import GraderFailure
from evenhand.study.store.logs.batches import Chunk

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
"""Errors that the SDKs raise where a proxy answers 200 with a page."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The largest batch to send: a number of requests and their size in bytes. The limits are below
    the providers' own, because the replies of a batch are held in memory, and because little should
    be lost when a batch expires or exceeds a budget.
    """

    requests: int
    size: int


@dataclass(frozen=True, slots=True)
class BatchState:
    """The progress of a batch; `failed` says why the provider refused it as a whole, if it did."""

    ended: bool
    done: int
    total: int
    failed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """A line of a batch's results: the reply in `body`, or the `failure` that a live request would
    have raised. A request that expired or was canceled is Transient.
    """

    custom_id: str
    body: Mapping[str, Any] | None = None
    request_id: str = ""
    failure: GraderFailure | None = None


class BatchService(Protocol):
    """The calls a run makes. Each raises a `failures.GraderFailure`."""

    limits: BatchLimits

    async def submit(self, chunk: str, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """Send (custom_id, request) pairs as one batch; returns the batch's id."""
        ...

    async def find(self, chunk: Chunk, known: set[str]) -> str | None:
        """Return the id of the batch that a chunk without an id was sent as, or None."""
        ...

    async def state(self, batch_id: str) -> BatchState: ...

    async def results(self, batch_id: str) -> list[BatchResult]: ...

    async def cancel(self, batch_id: str) -> None: ...
