"""Where whoever looks at the page comes from, as the server sees it."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app import where


def visitor_address() -> str:
    """The address of the client, as far as the peer or a proxy that the study trusts says it."""
    peer = st.context.ip_address or "127.0.0.1"  # Streamlit says nothing of this machine's own
    return where.visitor_address(peer, st.context.headers.get_all("X-Forwarded-For"))
