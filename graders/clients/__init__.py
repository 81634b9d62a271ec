"""A grader behind a network as a run sees it, whoever provides it: with which keys and headers it
is asked, how its answer is held to the rubric's keys, how requests travel - by the SDKs' clients
over aiohttp, which spend a third less time on each - and its batch service, Anthropic's Message
Batches or OpenAI's Batch API.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.request import getproxies

from evenhand.errors import InputError
from evenhand.graders.failures import (
    CONNECT,
    GraderFailure,
    Transient,
    failure_of,
    json_object,
    refused,
    told,
)
from evenhand.graders.money import charged_by
from evenhand.graders.options import GraderSettings
from evenhand.graders.providers import GraderSpec, Place, filled_from_environment
from evenhand.graders.replies import Outcome
from evenhand.graders.scrub import Scrubber, key_from_environment
from evenhand.rubrics import PromptText, Rubric
from evenhand.study.settings.study_toml import NAMED
from evenhand.study.store.logs.replies import Chunk
from evenhand.texts import table_of, written

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
"""Errors that the SDKs raise where a proxy answers 200 with a page."""
_CLOCKS_DIFFER = timedelta(minutes=10)
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


class BatchService:
    """A provider's batch service. Each call raises a `failures.GraderFailure`."""

    limits: BatchLimits

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

    async def submit(self, chunk: str, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """Send (custom_id, request) pairs as one batch; returns the batch's id."""
        raise NotImplementedError

    async def find(self, chunk: Chunk, known: set[str]) -> str | None:
        """Return the id of the batch that a chunk without an id was sent as, or None."""
        raise NotImplementedError

    async def state(self, batch_id: str) -> BatchState:
        raise NotImplementedError

    async def results(self, batch_id: str) -> list[BatchResult]:
        raise NotImplementedError

    async def cancel(self, batch_id: str) -> None:
        raise NotImplementedError


class ClaudeBatches(BatchService):
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
        live = table_of("evenhand.graders", "refusals.toml")["claude_status"]
        status = next((live[code] for code in codes.split() if code in live), None)
        failure = refused(status, codes, message or codes, self._spec, self._scrubber)
        return BatchResult(custom_id=name, failure=failure)


class OpenAIBatches(BatchService):
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
        name, response = str(line["custom_id"]), line.get("response")
        response = response if isinstance(response, Mapping) else {}
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


# ---- one grader ---------------------------------------------------------------------------------
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


@dataclass(frozen=True, slots=True)
class Ask:
    """A prompt to be asked, with several `draws` where `Grader.draws_at_once` allows them. Without
    a rubric the reply is read as a text. Where `constrained` the server itself holds the answer to
    the rubric's keys.
    """

    prompt: PromptText
    rubric: Rubric | None = None
    draws: int = 1
    constrained: bool = False


BeforeSending = Callable[[dict[str, Any]], Awaitable[None]]
"""Awaited with every request just before it is sent. It may lower the limit on output, and raises
where the request must not be sent.
"""


@dataclass(frozen=True, slots=True)
class Access:
    """What a client is opened with: the grader and its settings, and the seconds that a request may
    take. `way` is how the model took labels before (`WAYS`); `no_reasoning` says that it is known
    to give probabilities without reasoning.
    """

    spec: GraderSpec
    settings: GraderSettings
    scrubber: Scrubber
    timeout: float
    way: str = ""
    no_reasoning: bool = False


class Grader:
    """A grader behind a network, with one client for all requests. `ask` raises a
    `failures.GraderFailure`.
    """

    _id_header = "x-request-id"
    _path = ""
    """The path of requests behind the client's address."""

    def __init__(
        self,
        access: Access,
        client: AsyncAnthropic | AsyncOpenAI,
        errors: type[Exception],
        **identity: str,
    ) -> None:
        self._errors = errors
        self.spec, self.settings = access.spec, access.settings
        self._client, self._scrubber, self._timeout = client, access.scrubber, access.timeout
        address = str(client.base_url.copy_with(username=None, password=None))
        self.identity = Identity(provider=self.spec.provider, base_url=address, **identity)

    @property
    def draws_at_once(self) -> int:
        """The most draws of one prompt that a request may ask for."""
        return 1

    @property
    def settled(self) -> bool:
        """True once it is known how to ask the model; until then questions go one at a time."""
        return True

    def request(self, prompt: PromptText) -> dict[str, Any]:
        """Return the request as `ask` would send it now."""
        raise NotImplementedError

    def read(
        self, reply: Mapping[str, Any], rubric: Rubric | None, draws: int = 1
    ) -> list[Outcome]:
        """Return the outcomes in a reply, live or from a batch: one for each draw that came, at
        most `draws`. Without a rubric the outcome is the reply's text.
        """
        raise NotImplementedError

    def batches(self, pause: Callable[[], Awaitable[None]]) -> BatchService:
        """Return the provider's batch service; `pause` waits between two looks at a batch. Raises
        InputError where it has none.
        """
        raise InputError(written("provider.no_batches", provider=self.spec.provider))

    async def lifecycle(self) -> list[str]:
        """Return warnings about the model's retirement and about what study.toml sends; never
        raises.
        """
        return told_by_study(self.spec)

    def constrains(self, request: Mapping[str, Any]) -> bool:
        """Return True if an unreadable answer can be asked for again, constrained to the keys."""
        return False

    async def ask(self, ask: Ask, before: BeforeSending) -> Reply:
        """Ask one prompt and return the reply."""
        request = self.request(ask.prompt)
        await before(request)
        try:
            raw = await self._post(request)
        except self._errors as error:
            raise failure_of(error, self.spec, self._scrubber) from None
        return self._reply(raw, request, ask.rubric)

    async def _post(self, request: Mapping[str, Any], **more: Any) -> httpx2.Response:
        """Return the server's answer. The request goes out as it was built: the SDKs' methods would
        copy it by its types, which takes a third of a request's time.
        """
        import httpx2

        post: Any = self._client.post
        try:
            async with asyncio.timeout(self._timeout):
                answer: httpx2.Response = await post(
                    self._path, body=request, cast_to=httpx2.Response, **more
                )
        except TimeoutError:
            raise Transient(f"no answer within {self._timeout:g} s", hung=True) from None
        return answer

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    def _reply(
        self, raw: httpx2.Response, request: Mapping[str, Any], rubric: Rubric | None
    ) -> Reply:
        """Return the one answer in a server's reply."""
        (outcome,) = self.read(json_object(raw.text, self.spec, self._scrubber), rubric)
        request_id = raw.headers.get(self._id_header) or ""
        return Reply(request, request_id, outcome, charged=charged_by(raw.headers))


# ---- connections --------------------------------------------------------------------------------


def key_for(spec: GraderSpec) -> str | None:
    """Return the key for the grader's address, or None. Raises InputError where one is required."""
    place = spec.at
    key = key_from_environment(place.key_env) if place.key_env else None
    if key is None and place.needs_key:
        said = {"host": place.host, "variable": place.key_env}
        raise InputError(written("provider.needs_key", grader=spec.text, **said))
    return key


def headers_for(place: Place, scrubber: Scrubber, variable: str, omit: Any) -> dict[str, Any]:
    """Return the headers of every request: those that study.toml names for this address.

    The SDK adds those of its `variable` (ANTHROPIC_CUSTOM_HEADERS) wherever it goes. They are for
    its provider's own address; anywhere else they are left out, by the SDK's `omit`.
    """
    headers: dict[str, Any] = {}
    if place.provider.name != variable.partition("_")[0].lower() or not place.has_account:
        lines = os.environ.get(variable, "").splitlines()
        headers |= {line.partition(":")[0].strip(): omit for line in lines if ":" in line}
    for name, text in place.headers.items():
        headers[name] = filled_from_environment(text, f"the header {name!r} in study.toml")
        scrubber.learn([os.environ[each].strip() for each in NAMED.findall(text)])
    return headers


def told_by_study(spec: GraderSpec) -> list[str]:
    """Return one sentence for each secret that study.toml sends to an address, because a study may
    come from somebody else.
    """
    place = spec.at
    if not place.is_own:
        return []
    said = {"grader": spec.text, "host": place.host}
    sent = {name for text in place.headers.values() for name in NAMED.findall(text)}
    told = [written("provider.header_goes", variable=name, **said) for name in sorted(sent)]
    if place.provider.by_study and os.environ.get(place.key_env):
        told.insert(0, written("provider.key_goes", variable=place.key_env, **said))
    return told


def pooled(client_class: type[httpx2.AsyncClient], scrubber: Scrubber) -> httpx2.AsyncClient:
    """Return an SDK's `DefaultAioHttpClient` that raises every connection error as httpx2's.

    The SDKs' own translation leaves some out, such as a reply that is not HTTP, and any that it
    leaves out would end the whole run. Redirects are not followed: they would take keys and prompts
    to a host that the user did not name. `scrubber` learns the credentials that requests carry.
    Raises InputError where the environment names a SOCKS proxy.
    """
    import aiohttp
    import httpx2

    if any(proxy.startswith("socks") for proxy in getproxies().values()):
        raise InputError(
            "the environment names a SOCKS proxy, which cannot be used; name an HTTP proxy in "
            "HTTPS_PROXY, or unset ALL_PROXY"
        )

    class Resolver(aiohttp.ThreadedResolver):
        """A resolver with a time limit, since no other limit covers the lookup of a name."""

        async def resolve(self, *arguments: Any, **options: Any) -> Any:
            try:
                async with asyncio.timeout(CONNECT):
                    return await super().resolve(*arguments, **options)
            except TimeoutError:
                raise socket.gaierror(socket.EAI_AGAIN, "no answer about this name") from None

    class Client(client_class):  # type: ignore[misc, valid-type]
        def _init_transport(self, *arguments: Any, **options: Any) -> Any:
            transport = super()._init_transport(*arguments, **options)
            transport.client = lambda: aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    resolver=Resolver(),
                    limit=transport.limits.max_connections or 0,
                    keepalive_timeout=transport.limits.keepalive_expiry,
                    ssl=transport.ssl_context,
                    socket_factory=_kept_alive,
                )
            )
            return transport

        async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            options["follow_redirects"] = False
            scrubber.learn_from(request.headers)
            url = request.url
            if url.userinfo:  # aiohttp takes credentials in the header only
                scrubber.learn([url.password, f"{url.username}:{url.password}"])
                request.url = url.copy_with(username=None, password=None)
                options.setdefault("auth", httpx2.BasicAuth(url.username, url.password))
            try:
                response: httpx2.Response = await super().send(request, **options)
            except (aiohttp.ClientError, ValueError) as error:
                # Its own text holds the address, and with it what an address may hold of secrets.
                said = getattr(error, "message", type(error).__name__)
                raise httpx2.RemoteProtocolError(said, request=request) from None
            return response

    return Client()


def _kept_alive(address: tuple[Any, ...]) -> socket.socket:
    """A socket that shows life every minute: routers forget connections on which nothing moves, and
    a long answer would then be paid for and never come.
    """
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


# ---- a provider's own means of holding an answer to the rubric's keys ---------------------------
WAYS = ("json_schema", "tool")
"""Tried in this order: a strict JSON schema whose field is an enumeration, then a forced tool."""
PLAIN = "plain"
"""The bare question, whose answer is read as free text."""

TOOL = "rate"
_REFUSED = re.compile(
    r"response_format|output_config|output_format|json_?schema|structured|schema|guided|grammar|"
    r"tool|function|enum\b"
)


def ways_from(known: str) -> tuple[str, ...]:
    """Return the ways still to be tried with a server, from the one known to work; all if none is.

    >>> ways_from(""), ways_from("tool"), ways_from("plain")
    (('json_schema', 'tool'), ('tool',), ())
    """
    if known == PLAIN:
        return ()
    return WAYS[WAYS.index(known) :] if known in WAYS else WAYS


def way_of(request: Mapping[str, Any]) -> str:
    """Return the way in which a request, to any provider, constrains its answer, or "plain".

    >>> way_of({"response_format": {}}), way_of({"tools": []}), way_of({"logprobs": True})
    ('json_schema', 'tool', 'plain')
    """
    output = request.get("output_config")
    if "response_format" in request or (isinstance(output, Mapping) and "format" in output):
        return WAYS[0]
    return WAYS[1] if "tools" in request else PLAIN


def refuses_constraint(complaint: str) -> bool:
    """Return True if a server's complaint is about the constraint on the answer."""
    return bool(_REFUSED.search(complaint.casefold()))
