"""The panel: one components-v2 element that shows a unit, holds the answer and sees it stored.

The answer lives in the browser until the server acknowledges it, because a Streamlit rerun is too
slow, and too easily lost, to follow someone who works by keyboard.
"""

from __future__ import annotations

from pathlib import Path

from streamlit.components.v2 import component

__all__ = ["mount_panel"]

_HERE = Path(__file__).parent


def _asset(*names: str) -> str:
    return "\n".join((_HERE / name).read_text("utf-8") for name in names)


mount_panel = component(
    "evenhand.panel",
    html=_asset("panel.html"),
    css=_asset("panel.css"),
    js=_asset("shelf.js", "view.js", "panel.js"),  # one module; the parts share its scope
)
