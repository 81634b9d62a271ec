"""Who is believed about where a visitor comes from."""

from __future__ import annotations

import pytest

from evenhand.annotate_app.neighbours import VARIABLE
from evenhand.annotate_app.where import as_sent, client_address

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
def test_the_last_that_a_trusted_proxy_says(peer, forwarded, trusted, found) -> None:
    assert client_address(peer, forwarded, trusted) == found


def test_only_a_router_says_whom_it_speaks_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has gone before they were let in has no address either."""
    forged = {"client": None, "headers": [(b"x-forwarded-for", b"203.0.113.5, 127.0.0.9")]}
    monkeypatch.delenv(VARIABLE, raising=False)
    assert as_sent(forged) == forged
    monkeypatch.setenv(VARIABLE, "/anywhere")
    told = as_sent(forged)
    assert told["client"] == ("127.0.0.9", 0)
    assert told["headers"] == [(b"x-forwarded-for", b"203.0.113.5")]
