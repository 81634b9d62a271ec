"""What a request carries of keys and headers, by its address, and how it travels: the SDKs' clients
over aiohttp, which spend a third less time on each.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

from evenhand.errors import InputError
from evenhand.graders.failures import CONNECT
from evenhand.graders.providers import Place
from evenhand.graders.providers.table import filled_from_environment
from evenhand.graders.scrub import Scrubber, key_from_environment
from evenhand.graders.spec import GraderSpec
from evenhand.study.settings.providers import NAMED
from evenhand.texts import written

if TYPE_CHECKING:
    import httpx2


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
