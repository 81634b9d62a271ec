"""nginx in front of the app, with the configuration of `deploy/`, and annotators behind it."""

from __future__ import annotations

import asyncio
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import websockets

from harness.ports import free_port
from harness.sessions import GONE, Session

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
NAME = "study.example.org"


@dataclass
class Proxy:
    """nginx with TLS on the port `secure`, without it on `plain`, before one app or two. `second`
    is the port of another study, whose path is /second.
    """

    home: Path
    apps: Sequence[int]
    secure: int = field(default_factory=free_port)
    plain: int = field(default_factory=free_port)
    second: int = 0

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.secure}/"

    @property
    def log(self) -> str:
        return (self.home / "access.log").read_text("utf-8")

    @property
    def error_log(self) -> str:
        return (self.home / "error.log").read_text("utf-8")

    def start(self) -> None:
        self._make_certificate()
        shutil.copy(DEPLOY / "nginx" / "away.html", self.home / "evenhand-away.html")
        file = self.home / "nginx.conf"
        file.write_text(self._configuration(), "utf-8")
        self.process = subprocess.Popen(
            [program("nginx"), "-p", self.home, "-c", file, "-e", "start.log"]
        )
        end = time.monotonic() + 20
        while not _listens(self.secure):
            assert self.process.poll() is None, "nginx has stopped; see start.log"
            assert time.monotonic() < end, "nginx does not listen"
            time.sleep(0.05)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=10)

    def ask(
        self, method: str, path: str, length: int = 0, headers: Mapping[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage]:
        """Return the status and headers that answer a request with a body of this length, of which
        nothing is sent, since a refusal does not need it.
        """
        line = http.client.HTTPSConnection(
            "127.0.0.1", self.secure, timeout=20, context=unverified()
        )
        line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": NAME, "Content-Length": str(length), **(headers or {})}.items():
            line.putheader(name, value)
        line.endheaders()
        answer = line.getresponse()
        line.close()
        return answer.status, answer.headers

    def _make_certificate(self) -> None:
        make = [program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        make += ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
        files = ["-keyout", str(self.home / "key.pem"), "-out", str(self.home / "cert.pem")]
        subprocess.run([*make, *files], check=True, capture_output=True)

    def _configuration(self) -> str:
        """Return the shipped configuration with our ports and paths, in nginx's minimal frame."""
        shipped = (DEPLOY / "nginx" / "evenhand.conf").read_text("utf-8")
        first, second = [*self.apps, free_port()][:2]
        for there, here in (
            ("listen 80;", f"listen 127.0.0.1:{self.plain};"),
            ("listen 443 ssl http2;", f"listen 127.0.0.1:{self.secure} ssl http2;"),
            ("127.0.0.1:8501", f"127.0.0.1:{first}"),
            ("127.0.0.1:8502", f"127.0.0.1:{second}"),
            (f"/etc/letsencrypt/live/{NAME}/fullchain.pem", str(self.home / "cert.pem")),
            (f"/etc/letsencrypt/live/{NAME}/privkey.pem", str(self.home / "key.pem")),
            ("/var/log/nginx/access.log", str(self.home / "access.log")),
            ("/var/log/nginx/error.log", str(self.home / "error.log")),
            ("/var/www/evenhand", str(self.home)),
        ):
            assert shipped.count(there) == 1, there
            shipped = shipped.replace(there, here)
        if self.second:  # by the lines that are shipped as comments
            for there, here in (
                ("# upstream evenhand_second", "upstream evenhand_second"),
                ('# "~^/second', '"~^/second'),
                ("127.0.0.1:8503", f"127.0.0.1:{self.second}"),
            ):
                assert shipped.count(there) == 1, there
                shipped = shipped.replace(there, here)
        scratch = "\n".join(
            f"{kind}_temp_path {self.home}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;\n" if os.geteuid() == 0 else ""  # the folder is this user's alone
        return (
            f"{user}daemon off;\npid {self.home}/nginx.pid;\nerror_log {self.home}/start.log;\n"
            f"events {{}}\nhttp {{\n{scratch}\naccess_log {self.home}/machine.log;\n{shipped}}}\n"
        )


def unverified() -> ssl.SSLContext:
    """For a certificate of our own."""
    return ssl._create_unverified_context()  # noqa: S323


@dataclass
class ProxiedSession(Session):
    """An annotator behind the proxy who reconnects after every break and sends again what was not
    acknowledged, as the page does. `port` is the proxy's; `breaks` counts the connections lost.
    """

    pending: list[dict[str, Any]] = field(default_factory=list)
    breaks: int = 0
    waits: list[float] = field(default_factory=list)
    """Seconds from an answer to its acknowledgement, through every break."""
    _asked: float = 0.0

    def __post_init__(self) -> None:
        self.client = httpx2.AsyncClient(
            base_url=f"https://127.0.0.1:{self.port}",
            headers={"Host": NAME},
            verify=unverified(),
            timeout=20,
        )

    async def open(self) -> None:
        self.data = {}
        (await self.client.get("/")).raise_for_status()
        cookies = "; ".join(f"{each.name}={each.value}" for each in self.client.cookies.jar)
        self.socket = await websockets.connect(
            f"wss://{NAME}:{self.port}/_stcore/stream",
            host="127.0.0.1",
            ssl=unverified(),
            subprotocols=[websockets.Subprotocol("streamlit")],
            origin=websockets.Origin(f"https://{NAME}:{self.port}"),
            additional_headers={"Cookie": cookies},
            max_size=None,
            open_timeout=20,
        )
        await self.draw(self.asks())
        if self.pending:
            await self.submit(self.pending)

    async def submit(self, answers: list[dict[str, Any]]) -> None:
        if not self.pending:
            self._asked = time.monotonic()
        self.pending = answers
        await super().submit(answers)
        receipts = {
            each["submit_id"]: self.data["receipts"].get(each["submit_id"]) for each in answers
        }
        if not set(receipts.values()) <= {"stored", "duplicate"}:
            raise ConnectionError("not acknowledged")
        self.acknowledged |= receipts.keys()
        self.pending = []
        self.waits.append(time.monotonic() - self._asked)
        sheet = self.data["sheet"]
        if sheet and sheet["id"] in {each["sheet_id"] for each in answers}:
            # Stored, but the store went away before it was asked what comes next: the page waits.
            raise ConnectionError("nothing came next")

    async def work(self, over: asyncio.Event, pause: float) -> None:
        """Label until it is over, through every break, and then until all is acknowledged."""
        while not over.is_set() or self.pending:
            try:
                await self.open()
                while not over.is_set() and await self.answer():
                    await asyncio.sleep(pause)
            except (*GONE, KeyError):
                self.breaks += 1
                await self.close()  # as a page does: the proxy counts what an address keeps open
                await asyncio.sleep(0.5)
            else:
                break
        await self.close()

    async def close(self) -> None:
        if hasattr(self, "socket"):
            await self.socket.close()


def program(name: str) -> str:
    """Return the path of a server's program, or "" if it is not installed."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin") or ""


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
