"""Where whoever looks at the page comes from, as the server sees it."""

from __future__ import annotations

import streamlit as st

from evenhand.study import Study
from evenhand.study.access.addresses import client_address


def visitor_address(study: Study) -> str:
    """The address of the client, as far as the peer or a proxy that the study trusts says it."""
    peer = st.context.ip_address or "127.0.0.1"  # Streamlit says nothing of this machine's own
    forwarded = st.context.headers.get_all("X-Forwarded-For")
    return client_address(peer, forwarded, study.config.session.trusted_proxies)
