"""Which sessions may send files: those of a study's lead, while the login is good."""

from __future__ import annotations

from streamlit.runtime.scriptrunner import get_script_run_ctx

_MOST = 200
_sessions: dict[str, None] = {}
"""The sessions of this process that may, the latest last."""


def give_pass() -> None:
    """This session may send files from now on."""
    if session := _own_session():
        _sessions.pop(session, None)
        _sessions[session] = None
        while len(_sessions) > _MOST:
            _sessions.pop(next(iter(_sessions)))


def take_pass() -> None:
    """This session may not, or no longer."""
    _sessions.pop(_own_session(), None)


def may_upload(session: str) -> bool:
    return session in _sessions


def _own_session() -> str:
    context = get_script_run_ctx()
    return context.session_id if context else ""
