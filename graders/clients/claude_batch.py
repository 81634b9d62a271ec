"""Anthropic Message Batches. Their batches carry no name of ours, so one whose id was never noted
is recognised by its time, its size and, once it has ended, by its custom ids.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from evenhand.graders.clients.batch_service import UNREADABLE, BatchLimits, BatchResult, BatchState
from evenhand.graders.failures import Transient, failure_of, refused, told
from evenhand.graders.scrub import Scrubber
from evenhand.graders.spec import GraderSpec
from evenhand.study.store.logs.batches import Chunk

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_CLOCKS_DIFFER = timedelta(minutes=10)
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}
"""With which status each error would have come live (platform.claude.com/docs/en/api/errors)."""


class ClaudeBatches:
    """The batch service behind one client. `pause` waits between looks at a batch."""

    limits = BatchLimits(requests=10_000, size=200_000_000)

    def __init__(
        self,
        client: AsyncAnthropic,
        spec: GraderSpec,
        scrubber: Scrubber,
        pause: Callable[[], Awaitable[None]],
    ) -> None:
        self._batches = client.messages.batches
        self._spec = spec
        self._scrubber = scrubber
        self._pause = pause

    async def submit(self, chunk: str, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        from anthropic import AnthropicError

        lines: Any = [{"custom_id": name, "params": params} for name, params in requests]
        try:
            return (await self._batches.create(requests=lines)).id
        except (AnthropicError, *UNREADABLE) as error:
            raise failure_of(error, self._spec, self._scrubber) from None

    async def find(self, chunk: Chunk, known: set[str]) -> str | None:
        names = {request.custom_id for request in chunk.requests}
        for batch_id in await self._candidates(chunk, known):
            while not (await self.state(batch_id)).ended:
                await self._pause()  # custom ids are readable only in the results
            if {result.custom_id for result in await self.results(batch_id)} == names:
                return batch_id
        return None

    async def _candidates(self, chunk: Chunk, known: set[str]) -> list[str]:
        from anthropic import AnthropicError

        earliest = datetime.fromisoformat(chunk.created_at) - _CLOCKS_DIFFER
        found = []
        try:
            async for batch in self._batches.list(limit=100):  # newest first
                if batch.created_at < earliest:
                    break
                total = sum(batch.request_counts.model_dump().values())
                if batch.id not in known and total == len(chunk.requests):
                    found.append(batch.id)
        except (AnthropicError, *UNREADABLE) as error:
            raise failure_of(error, self._spec, self._scrubber) from None
        return found

    async def state(self, batch_id: str) -> BatchState:
        from anthropic import AnthropicError

        try:
            batch = await self._batches.retrieve(batch_id)
            counts = batch.request_counts
            total = sum(counts.model_dump().values())
            ended = batch.processing_status == "ended"
            return BatchState(ended=ended, done=total - counts.processing, total=total)
        except (AnthropicError, *UNREADABLE) as error:
            raise failure_of(error, self._spec, self._scrubber) from None

    async def results(self, batch_id: str) -> list[BatchResult]:
        from anthropic import AnthropicError

        try:
            lines = await self._batches.results(batch_id)
            return [self._read(line.model_dump(exclude_unset=True)) async for line in lines]
        except (AnthropicError, *UNREADABLE) as error:
            raise failure_of(error, self._spec, self._scrubber) from None

    async def cancel(self, batch_id: str) -> None:
        from anthropic import AnthropicError

        try:
            await self._batches.cancel(batch_id)
        except (AnthropicError, *UNREADABLE) as error:
            raise failure_of(error, self._spec, self._scrubber) from None

    def _read(self, line: Mapping[str, Any]) -> BatchResult:
        name, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            return BatchResult(custom_id=name, body=self._scrubber.tree(result["message"]))
        if result["type"] != "errored":  # expired or canceled
            return BatchResult(custom_id=name, failure=Transient(result["type"]))
        codes, message = told(result.get("error"))
        status = next((_STATUS[code] for code in codes.split() if code in _STATUS), None)
        failure = refused(status, codes, message or codes, self._spec, self._scrubber)
        return BatchResult(custom_id=name, failure=failure)
