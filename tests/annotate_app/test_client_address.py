"""Who is believed about where a visitor comes from."""

from __future__ import annotations

import pytest

from evenhand.annotate_app.where import client_address

PROXY, INNER, CLIENT = "10.0.0.1", "10.0.0.2", "203.0.113.9"


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "found"),
    [
        (CLIENT, [], [], CLIENT),
        (CLIENT, ["6.6.6.6"], [], CLIENT),  # nobody is believed
        (CLIENT, ["6.6.6.6"], [PROXY], CLIENT),  # nor is he who is no proxy
        (PROXY, [CLIENT], [PROXY], CLIENT),
        (PROXY, [f"6.6.6.6, {CLIENT}"], [PROXY], CLIENT),  # what the client wrote itself
        (PROXY, ["6.6.6.6", CLIENT], [PROXY], CLIENT),
        (PROXY, [f"6.6.6.6, {CLIENT}, {INNER}"], [PROXY, INNER], CLIENT),
        (PROXY, ["<script>"], [PROXY], PROXY),
        (PROXY, [""], [PROXY], PROXY),
        (PROXY, [INNER], [PROXY, INNER], INNER),
        ("127.0.0.1", ["2001:db8::1"], ["127.0.0.1"], "2001:db8::1"),
    ],
)
def test_the_last_that_a_trusted_proxy_says(peer, forwarded, trusted, found):
    assert client_address(peer, forwarded, trusted) == found
