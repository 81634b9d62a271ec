"""Permission to upload files and to download those that a page offers: for a study's leads, in the
browser in which they are logged in, for as long as the login is valid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamlit.runtime.scriptrunner import get_script_run_ctx

from evenhand.annotate_app.logins.browser import present_browser

_MOST = 200


@dataclass(frozen=True)
class _Pass:
    browser: str
    is_good: Callable[[], bool]


_passes: dict[str, _Pass] = {}
"""Passes by session of this process, the latest last."""


def give_pass(is_good: Callable[[], bool]) -> None:
    """Permit uploads and downloads in this session while `is_good`, which asks the store."""
    if session := _own_session():
        _passes.pop(session, None)
        _passes[session] = _Pass(present_browser(), is_good)
        while len(_passes) > _MOST:
            _passes.pop(next(iter(_passes)))


def take_pass() -> None:
    """Revoke this session's permission to upload and download."""
    _passes.pop(_own_session(), None)


def may_upload(session: str, browser: str) -> bool:
    """Return True if this browser may send a file to the session. Asks the store if there is a
    pass.
    """
    known = _passes.get(session)
    return known is not None and known.browser == browser and known.is_good()


def may_download(browser: str) -> bool:
    """Return True if this browser may fetch what a lead's page offers."""
    own = [known for known in _passes.values() if browser and known.browser == browser]
    return any(known.is_good() for known in own)


def _own_session() -> str:
    context = get_script_run_ctx()
    return context.session_id if context else ""
