"""`streamlit run annotate_app/app.py -- STUDY_DIR`: the annotators' page, behind its checks."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from starlette.middleware import Middleware
from streamlit.starlette import App

# Not installed, but run from a checkout. A folder that is called evenhand by chance has no origin.
if getattr(find_spec("evenhand"), "origin", None) is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evenhand.annotate_app.door import Door
from evenhand.annotate_app.front import routes
from evenhand.annotate_app.health import telling_systemd
from evenhand.annotate_app.logins.single_sign_on import app_secrets
from evenhand.annotate_app.waiting import on_script_error

_secrets = app_secrets(sys.argv[1:])
app = App(
    Path(__file__).with_name("page_script.py"),
    secrets=_secrets,
    lifespan=telling_systemd,
    routes=routes(),
    middleware=[Middleware(Door, has_sign_on=bool(_secrets))],
    on_script_error=on_script_error,
)
