"""The address of a client, behind a proxy or not."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable


def client_address(peer: str, forwarded: Iterable[str], trusted: Collection[str]) -> str:
    """Return the address that a connection comes from: the peer's, unless the peer is a trusted
    proxy.

    `forwarded` are the `X-Forwarded-For` headers. Each proxy appends the address of its client, so
    they are read from the end, as long as the proxies are trusted: anyone can write the rest.

    >>> client_address("10.0.0.1", ["1.2.3.4"], [])
    '10.0.0.1'
    >>> client_address("10.0.0.1", ["6.6.6.6, 1.2.3.4"], ["10.0.0.1"])
    '1.2.3.4'
    """
    address = peer
    hops = [hop.strip() for header in forwarded for hop in header.split(",")]
    for hop in reversed(hops):
        if address not in trusted or not _is_address(hop):
            break
        address = hop
    return address


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
