"""The OpenAI Batch API: a file of requests, one batch over it, a file of replies, one of errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from evenhand.graders.clients.batch_service import UNREADABLE, BatchLimits, BatchResult, BatchState
from evenhand.graders.failures import Transient, failure_of, refused, told
from evenhand.graders.scrub import Scrubber
from evenhand.graders.spec import GraderSpec
from evenhand.study.store.logs.batches import Chunk

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_ENDPOINT: Final = "/v1/chat/completions"
_NAME = "evenhand_chunk"
_ENDED = ("completed", "expired", "cancelled", "failed")


class OpenAIBatches:
    """The batch service behind one client."""

    limits = BatchLimits(requests=10_000, size=150_000_000)

    def __init__(self, client: AsyncOpenAI, spec: GraderSpec, scrubber: Scrubber) -> None:
        self._client = client
        self._spec = spec
        self._scrubber = scrubber

    async def submit(self, chunk: str, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        from openai import OpenAIError

        lines = [
            {"custom_id": name, "method": "POST", "url": _ENDPOINT, "body": body}
            for name, body in requests
        ]
        content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
        try:
            file = await self._client.files.create(
                file=(f"{chunk}.jsonl", content), purpose="batch"
            )
            batch = await self._client.batches.create(
                input_file_id=file.id,
                endpoint=_ENDPOINT,
                completion_window="24h",
                metadata={_NAME: chunk},
            )
            return batch.id
        except (OpenAIError, *UNREADABLE) as error:
            raise failure_of(error, self._spec, self._scrubber) from None

    async def find(self, chunk: Chunk, known: set[str]) -> str | None:
        from openai import OpenAIError

        try:
            async for batch in self._client.batches.list(limit=100):
                if (batch.metadata or {}).get(_NAME) == chunk.chunk:
                    return batch.id
        except (OpenAIError, *UNREADABLE) as error:
            raise failure_of(error, self._spec, self._scrubber) from None
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
        from openai import OpenAIError

        batch = await self._batch(batch_id)
        found = []
        for file_id in (batch.output_file_id, batch.error_file_id):
            if not file_id:
                continue
            try:
                text = (await self._client.files.content(file_id)).text
            except (OpenAIError, *UNREADABLE) as error:
                raise failure_of(error, self._spec, self._scrubber) from None
            found += [self._line(line) for line in text.splitlines() if line.strip()]
        return found

    async def cancel(self, batch_id: str) -> None:
        from openai import OpenAIError

        try:
            await self._client.batches.cancel(batch_id)
        except (OpenAIError, *UNREADABLE) as error:
            raise failure_of(error, self._spec, self._scrubber) from None

    async def _batch(self, batch_id: str) -> Any:
        from openai import OpenAIError

        try:
            batch = await self._client.batches.retrieve(batch_id)
            _ = batch.status  # a page in place of a batch has none
            return batch
        except (OpenAIError, *UNREADABLE) as error:
            raise failure_of(error, self._spec, self._scrubber) from None

    def _line(self, text: str) -> BatchResult:
        try:
            line = json.loads(self._scrubber.text(text))
            name, response = str(line["custom_id"]), _fields(line.get("response"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Transient("a line of the batch's results cannot be read") from None
        status, body = response.get("status_code"), response.get("body")
        if status == 200 and isinstance(body, Mapping):
            return BatchResult(
                custom_id=name, body=body, request_id=str(response.get("request_id") or "")
            )
        codes, message = told(line.get("error") or body)
        status = status if isinstance(status, int) else None
        failure = refused(status, codes, message or "no reason given", self._spec, self._scrubber)
        return BatchResult(custom_id=name, failure=failure)


def _fields(value: object) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}
