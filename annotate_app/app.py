"""`python app.py STUDY_DIR ... --port PORT`: the annotators' pages, behind their checks."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from streamlit import config
from streamlit.starlette import App

# Not installed, but run from a checkout. A folder that is called evenhand by chance has no origin.
if getattr(find_spec("evenhand"), "origin", None) is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evenhand.annotate_app.entry import app_secrets
from evenhand.annotate_app.page import on_script_error
from evenhand.annotate_app.routes import (
    RequestFilter,
    answer_health_of_all,
    keep_log_short,
    routes,
    telling_systemd,
    to_front_page,
)
from evenhand.annotate_app.sites import MOST_BYTES, add_study, sites
from evenhand.texts import written


def main() -> None:
    """Serve the studies until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--public-host", default="")
    parser.add_argument("--path", help="of one study alone; others have their folders' names")
    given = parser.parse_args()
    host = os.environ.get("STREAMLIT_SERVER_ADDRESS", "127.0.0.1")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, given.port), family=family).close()
    except OSError:
        print(written("several.port_taken", port=given.port), file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None
    keep_log_short()
    for folder in given.folders:
        add_study(folder, given.path)
    app = make_app(given.path)
    config.set_option("server.baseUrlPath", given.path or "")
    if given.public_host:
        config.set_option("browser.serverAddress", given.public_host)
    uvicorn.run(
        app,
        host=host,
        port=given.port,
        ws="websockets-sansio",
        ws_max_size=MOST_BYTES,
        # Shorter than nginx waits for an answer: a process that hangs is left soon, one at work is
        # not.
        ws_ping_interval=2,
        ws_ping_timeout=60,  # a slow line may take long to answer
        ws_per_message_deflate=False,
        # An annotator who reads for a minute sends over the connection that is there.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
        # Any process on this machine could give a visitor's address: study.toml names who may.
        forwarded_allow_ips="",
        access_log=False,
        use_colors=False,
    )


def make_app(path: str | None = None) -> Starlette:
    """The app of one study alone at this path; without one, of all that there are."""
    streamlit = pages()
    above = [Route("/health", answer_health_of_all), Route(path or "/{study}", to_front_page)]
    below = Mount("/{study}" if path is None else "", streamlit)
    return Starlette(
        routes=[*(above if path != "" else ()), below],
        lifespan=streamlit.lifespan(),
        middleware=[Middleware(RequestFilter, has_sign_on=bool(_secrets()))],
    )


@cache
def pages() -> App:
    """Streamlit's app, of which there can be one in a process."""
    return App(
        Path(__file__).with_name("page.py"),
        secrets=_secrets(),
        lifespan=telling_systemd,
        routes=routes("".join(site.path for site in sites() if site.alone)),
        on_script_error=on_script_error,
    )


@cache
def _secrets() -> dict[str, Any]:
    alone = next((site for site in sites() if site.alone), None)
    return app_secrets(alone.folder) if alone else {}


if __name__ == "__main__":
    main()
