"""The server of the app, of one study or several: `python app.py STUDY_DIR ... --port PORT`.

A request passes the checks and our own routes (`routes.py`), then reaches Streamlit (`page.py`).
"""

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

# If evenhand is not installed, this file is in a checkout, which goes onto the path. An unrelated
# folder called evenhand is found as a namespace package, which has no origin.
if getattr(find_spec("evenhand"), "origin", None) is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evenhand.annotate_app import routes
from evenhand.annotate_app.entry import app_secrets
from evenhand.annotate_app.page import on_script_error
from evenhand.annotate_app.sites import MOST_BYTES, add_study, sites
from evenhand.texts import written


def main() -> None:
    """Serve the studies until SIGTERM or SIGINT; exit with 2 if the port is taken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--public-host", default="")
    parser.add_argument("--path", help="of one study alone; others have their folders' names")
    options = parser.parse_args()
    host = os.environ.get("STREAMLIT_SERVER_ADDRESS", "127.0.0.1")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, options.port), family=family).close()  # is the port free?
    except OSError:
        print(written("several.port_taken", port=options.port), file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None
    routes.keep_log_short()
    for folder in options.folders:
        add_study(folder, options.path)
    app = make_app(options.path)
    config.set_option("server.baseUrlPath", options.path or "")
    config.set_option("browser.serverAddress", options.public_host or "localhost")
    uvicorn.run(
        app, host=host, port=options.port, ws="websockets-sansio", ws_max_size=MOST_BYTES,
        # A page finds out within seconds that a process hangs, sooner than nginx gives up on it.
        ws_ping_interval=2,
        ws_ping_timeout=60,  # a slow line may take long to answer
        ws_per_message_deflate=False,
        timeout_keep_alive=75,  # still open when an answer follows a minute of reading
        timeout_graceful_shutdown=5,
        # No proxy is trusted here, as any local process could pose as one: study.toml names them.
        forwarded_allow_ips="",
        access_log=False, use_colors=False,
    )  # fmt: skip


def make_app(path: str | None = None) -> Starlette:
    """Return the app of the study alone at `path`, "" for the root, or of all studies for None."""
    streamlit = streamlit_app()
    # Outside of a study's path are the health of all studies and that path without its slash; below
    # it is the study's own /health. A study at the root leaves nothing outside.
    health = Route("/health", routes.answer_health_of_all)
    outside = [health, Route(path or "/{study}", routes.to_front_page)]
    below = Mount("/{study}" if path is None else "", streamlit)  # its routes begin with `path`
    return Starlette(
        routes=[*(outside if path != "" else ()), below],
        lifespan=streamlit.lifespan(),
        middleware=[Middleware(routes.RequestFilter, has_sign_on=bool(_secrets()))],
    )


@cache
def streamlit_app() -> App:
    """Return Streamlit's app; a process can have only one."""
    return App(
        Path(__file__).with_name("page.py"),
        secrets=_secrets(),
        lifespan=routes.telling_systemd,
        # Below the path of a study served alone; "" for several.
        routes=routes.routes("".join(site.path for site in sites() if site.alone)),
        on_script_error=on_script_error,
    )


@cache
def _secrets() -> dict[str, Any]:
    """Return the secrets of a study served alone; several studies have no single sign-on."""
    alone = next((site for site in sites() if site.alone), None)
    return app_secrets(alone.folder) if alone else {}


if __name__ == "__main__":
    main()
