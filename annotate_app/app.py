"""`python app.py STUDY_DIR --port PORT`: the annotators' page, behind its checks."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import uvicorn
from starlette.middleware import Middleware
from streamlit import config
from streamlit.starlette import App

# Not installed, but run from a checkout. A folder that is called evenhand by chance has no origin.
if getattr(find_spec("evenhand"), "origin", None) is None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evenhand.annotate_app.door import Door
from evenhand.annotate_app.front import routes
from evenhand.annotate_app.health import telling_systemd
from evenhand.annotate_app.log_lines import keep_log_short
from evenhand.annotate_app.logins.single_sign_on import app_secrets
from evenhand.annotate_app.waiting import on_script_error
from evenhand.annotate_app.where import MOST_BYTES
from evenhand.texts import written

_STOP_SECONDS = 5


def main() -> None:
    """Serve the study until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--public-host", default="")
    parser.add_argument("--path", default="")
    parser.add_argument("--socket", type=int)
    asked = parser.parse_args()
    sys.argv[1:] = [asked.folder]
    host = os.environ.get("STREAMLIT_SERVER_ADDRESS", "127.0.0.1")
    if asked.socket is None:
        _check_free(host, asked.port)
    else:
        threading.Thread(target=_end_with_router, daemon=True).start()
    keep_log_short()
    app = make_app(asked.path)
    if asked.public_host:
        config.set_option("browser.serverAddress", asked.public_host)
    uvicorn.run(
        app,
        host=host,
        port=asked.port,
        fd=asked.socket,
        ws="websockets-sansio",
        ws_max_size=MOST_BYTES,
        # Shorter than nginx waits for an answer: a process that hangs is left soon, one at work is
        # not.
        ws_ping_interval=2,
        ws_ping_timeout=60,  # a slow line may take long to answer
        ws_per_message_deflate=False,
        # An annotator who reads for a minute sends over the connection that is there.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_STOP_SECONDS,
        # Any process on this machine could give a visitor's address: study.toml names who may.
        forwarded_allow_ips="",
        access_log=False,
        use_colors=False,
    )


def make_app(path: str = "") -> App:
    """The app at this path, of the study that `sys.argv` names."""
    secrets = app_secrets(sys.argv[1:])
    app = App(
        Path(__file__).with_name("page_script.py"),
        secrets=secrets,
        lifespan=telling_systemd,
        routes=routes(path),
        middleware=[Middleware(Door, has_sign_on=bool(secrets))],
        on_script_error=on_script_error,
    )
    config.set_option("server.baseUrlPath", path)
    return app


def _check_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError:
        print(written("several.port_taken", port=port), file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None


def _end_with_router() -> None:
    while os.read(0, 1):  # the router writes nothing; its end of the pipe closes as it ends
        pass
    os.kill(os.getpid(), 15)
    time.sleep(_STOP_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
