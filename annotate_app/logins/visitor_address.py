"""The address of the visitor who has the page open, as the server sees it."""

from __future__ import annotations

import streamlit as st

from evenhand.annotate_app import where


def visitor_address() -> str:
    """The address of the client, as reported by the peer or by a proxy that the study trusts."""
    peer = st.context.ip_address or "127.0.0.1"  # Streamlit: None for local clients
    return where.visitor_address(peer, st.context.headers.get_all("X-Forwarded-For"))
