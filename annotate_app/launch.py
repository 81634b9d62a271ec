"""`python launch.py run app.py ... -- STUDY_DIR`: Streamlit's own command, with our bounds on
what it receives and what it writes to the log.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Not installed, but run from a checkout. A folder that is called evenhand by chance has no origin.
if getattr(find_spec("evenhand"), "origin", None) is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from streamlit.web import cli
from streamlit.web.server.starlette import starlette_server

from evenhand.annotate_app.line import UVICORN, Line
from evenhand.annotate_app.log_lines import keep_log_short

_usual = starlette_server._get_uvicorn_config_kwargs


def _bounded() -> dict[str, Any]:
    return _usual() | UVICORN | {"ws": Line}


if __name__ == "__main__":
    starlette_server._get_uvicorn_config_kwargs = _bounded
    keep_log_short()
    cli.main()
