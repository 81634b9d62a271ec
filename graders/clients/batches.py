"""Batch services: what a run sees of one, Anthropic's Message Batches, and OpenAI's Batch API."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from evenhand.graders.failures import GraderFailure, Transient, failure_of, refused, told
from evenhand.graders.scrub import Scrubber
from evenhand.graders.spec import GraderSpec
from evenhand.study.store.logs.replies import Chunk

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
"""Errors that the SDKs raise where a proxy answers 200 with a page."""
_CLOCKS_DIFFER = timedelta(minutes=10)
_LIVE_STATUS = {
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
_CHAT_ENDPOINT: Final = "/v1/chat/completions"
_CHUNK_NAME = "evenhand_chunk"
_ENDED = ("completed", "expired", "cancelled", "failed")


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


class _Service:
    """What both services share: whose errors they raise, and what these become."""

    def __init__(
        self, errors: tuple[type[Exception], ...], spec: GraderSpec, scrubber: Scrubber
    ) -> None:
        self._errors: tuple[type[Exception], ...] = (*errors, *UNREADABLE)
        self._spec = spec
        self._scrubber = scrubber

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise the SDK's errors within as a GraderFailure."""
        try:
            yield
        except self._errors as error:
            raise failure_of(error, self._spec, self._scrubber) from None


class ClaudeBatches(_Service):
    """Anthropic's batch service behind one client. `pause` waits between looks at a batch.

    These batches carry no name of ours, so one whose id was never noted is recognised by its time,
    its size and, once it has ended, by its custom ids.
    """

    limits = BatchLimits(requests=10_000, size=200_000_000)

    def __init__(
        self,
        client: AsyncAnthropic,
        spec: GraderSpec,
        scrubber: Scrubber,
        pause: Callable[[], Awaitable[None]],
    ) -> None:
        import httpx2
        from anthropic import AnthropicError

        super().__init__((AnthropicError, httpx2.HTTPError), spec, scrubber)
        self._batches = client.messages.batches
        self._pause = pause

    async def submit(self, chunk: str, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        lines: Any = [{"custom_id": name, "params": params} for name, params in requests]
        with self._failures():
            return (await self._batches.create(requests=lines)).id

    async def find(self, chunk: Chunk, known: set[str]) -> str | None:
        names = {request.custom_id for request in chunk.requests}
        for batch_id in await self._candidates(chunk, known):
            while not (await self.state(batch_id)).ended:
                await self._pause()  # custom ids are readable only in the results
            read = {result.custom_id for result in await self.results(batch_id)}
            if read and read <= names:  # a line that cannot be read names no request
                return batch_id
        return None

    async def _candidates(self, chunk: Chunk, known: set[str]) -> list[str]:
        earliest = datetime.fromisoformat(chunk.created_at) - _CLOCKS_DIFFER
        found = []
        with self._failures():
            async for batch in self._batches.list(limit=100):  # newest first
                if batch.created_at < earliest:
                    break
                total = sum(batch.request_counts.model_dump().values())
                if batch.id not in known and total == len(chunk.requests):
                    found.append(batch.id)
        return found

    async def state(self, batch_id: str) -> BatchState:
        with self._failures():
            batch = await self._batches.retrieve(batch_id)
            counts = batch.request_counts
            total = sum(counts.model_dump().values())
            ended = batch.processing_status == "ended"
            return BatchState(ended=ended, done=total - counts.processing, total=total)

    async def results(self, batch_id: str) -> list[BatchResult]:
        with self._failures():
            # The SDK's own reading ends at the first line that is no JSON.
            content = await (await self._batches.results(batch_id)).http_response.aread()
        return _read_lines(content, self._read)

    async def cancel(self, batch_id: str) -> None:
        with self._failures():
            await self._batches.cancel(batch_id)

    def _read(self, line: Mapping[str, Any]) -> BatchResult:
        name, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            return BatchResult(custom_id=name, body={**self._scrubber.tree(result["message"])})
        if result["type"] != "errored":  # expired or canceled
            return BatchResult(custom_id=name, failure=Transient(result["type"]))
        codes, message = told(result.get("error"))
        status = next((_LIVE_STATUS[code] for code in codes.split() if code in _LIVE_STATUS), None)
        failure = refused(status, codes, message or codes, self._spec, self._scrubber)
        return BatchResult(custom_id=name, failure=failure)


class OpenAIBatches(_Service):
    """OpenAI's batch service behind one client: a file of requests, one batch over it, a file of
    replies, one of errors.
    """

    limits = BatchLimits(requests=10_000, size=150_000_000)

    def __init__(self, client: AsyncOpenAI, spec: GraderSpec, scrubber: Scrubber) -> None:
        from openai import OpenAIError

        super().__init__((OpenAIError,), spec, scrubber)
        self._client = client

    async def submit(self, chunk: str, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        lines = [
            {"custom_id": name, "method": "POST", "url": _CHAT_ENDPOINT, "body": body}
            for name, body in requests
        ]
        content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
        with self._failures():
            file = await self._client.files.create(
                file=(f"{chunk}.jsonl", content), purpose="batch"
            )
            batch = await self._client.batches.create(
                input_file_id=file.id,
                endpoint=_CHAT_ENDPOINT,
                completion_window="24h",
                metadata={_CHUNK_NAME: chunk},
            )
            return batch.id

    async def find(self, chunk: Chunk, known: set[str]) -> str | None:
        with self._failures():
            async for batch in self._client.batches.list(limit=100):
                if (batch.metadata or {}).get(_CHUNK_NAME) == chunk.chunk:
                    return batch.id
        return None

    async def state(self, batch_id: str) -> BatchState:
        batch = await self._batch(batch_id)
        counts = batch.request_counts
        failed = ""
        if batch.status == "failed":
            errors = (batch.errors and batch.errors.data) or []
            said = "; ".join(error.message or "" for error in errors)
            failed = self._scrubber.message(said) or "no reason given"
        return BatchState(
            ended=batch.status in _ENDED,
            done=counts.completed + counts.failed if counts else 0,
            total=counts.total if counts else 0,
            failed=failed,
        )

    async def results(self, batch_id: str) -> list[BatchResult]:
        batch = await self._batch(batch_id)
        found = []
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            with self._failures():
                content = (await self._client.files.content(file_id)).content
            found += _read_lines(content, self._read)
        return found

    async def cancel(self, batch_id: str) -> None:
        with self._failures():
            await self._client.batches.cancel(batch_id)

    async def _batch(self, batch_id: str) -> Any:
        with self._failures():
            batch = await self._client.batches.retrieve(batch_id)
            _ = batch.status  # a page in place of a batch has none
            return batch

    def _read(self, line: Mapping[str, Any]) -> BatchResult:
        line = self._scrubber.tree(line)
        name, response = str(line["custom_id"]), _fields(line.get("response"))
        status, body = response.get("status_code"), response.get("body")
        if status == 200 and isinstance(body, Mapping):
            return BatchResult(
                custom_id=name, body=body, request_id=str(response.get("request_id") or "")
            )
        codes, message = told(line.get("error") or body)
        status = status if isinstance(status, int) else None
        failure = refused(status, codes, message or "no reason given", self._spec, self._scrubber)
        return BatchResult(custom_id=name, failure=failure)


def _read_lines(
    content: bytes, read: Callable[[Mapping[str, Any]], BatchResult]
) -> list[BatchResult]:
    r"""Return the results in a file of JSON lines, without those that cannot be read: their
    requests count as not answered. Only a line feed ends a line; texts may hold U+2028 and such.

    Raises Transient where nothing names a request, as in a page that a proxy sent instead.

    >>> lines = '{"custom_id": "a\u2028"}\n{"custom_id": "b", \n'.encode()
    >>> [each.custom_id for each in _read_lines(lines, lambda line: BatchResult(**line))]
    ['a\u2028']
    """
    results = []
    for line in filter(bytes.strip, content.split(b"\n")):
        with suppress(*UNREADABLE, RecursionError):
            results.append(read(json.loads(line.decode("utf-8", "replace"), strict=False)))
    if content.strip() and not results and b"custom_id" not in content:
        raise Transient("the results of the batch cannot be read")
    return results


def _fields(value: object) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}
