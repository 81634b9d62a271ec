"""How requests travel: the SDKs' clients over aiohttp, which spend a third less time on each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

from rubrics.errors import InputError

if TYPE_CHECKING:
    import httpx2

__all__ = ["pooled"]


def pooled(client_class: type[httpx2.AsyncClient]) -> httpx2.AsyncClient:
    """One SDK's `DefaultAioHttpClient`, whose every fault of the connection is httpx2's.

    The SDKs' own translation leaves some out, such as a reply that is no HTTP, and what it leaves
    out would end the whole run. Raises InputError where the environment names a SOCKS proxy.
    """
    import aiohttp
    import httpx2

    if any(proxy.startswith("socks") for proxy in getproxies().values()):
        raise InputError(
            "the environment names a SOCKS proxy, which cannot be used; name an HTTP proxy in "
            "HTTPS_PROXY, or unset ALL_PROXY"
        )

    class Client(client_class):  # type: ignore[misc, valid-type]
        async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            url = request.url
            if url.userinfo:  # aiohttp takes credentials in the header only
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
