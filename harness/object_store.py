"""An object store of our own that speaks S3 on loopback: moto's server, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.installing import installed, pip_command
from harness.ports import free_port

LOCK = Path(__file__).parents[1] / "requirements-s3.lock"
BUCKET = "backups"
KEY, SECRET = "AKIDEXAMPLE", "credential-of-nobody-0123456789"


def boto3_folder() -> Path:
    """The folder with boto3 as its lock has it; the project's own environment has none."""
    version = re.findall(r"^boto3==(\S+)", LOCK.read_text("utf-8"), re.MULTILINE)[0]
    return installed(f"boto3-{version}", pip_command("--require-hashes", "-r", str(LOCK)))


@contextmanager
def object_store(home: Path) -> Iterator[ObjectStore]:
    """with object_store(home) as store: an object store that writes its log to `home`."""
    store = ObjectStore(home)
    try:
        yield store
    finally:
        store.end()


class ObjectStore:
    """A store with one bucket, that takes any credentials until `refuse_all`."""

    def __init__(self, home: Path) -> None:
        self.port = free_port()
        packages = installed("moto-5.2", pip_command("moto[s3]==5.2.*", "flask", "flask-cors"))
        with (home / "object-store.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "moto.server", "-p", str(self.port)],
                cwd=home,
                env=os.environ | {"PYTHONPATH": str(packages)},
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + 60
        while not self._answers():
            assert time.monotonic() < end, "the object store does not start"
            time.sleep(0.1)
        import boto3  # from `boto3_folder`

        self.client: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )
        self.clear()

    def clear(self) -> None:
        """Begin anew: one bucket, empty, for any credentials."""
        self._ask("moto-api/reset", b"")
        self._ask("moto-api/reset-auth", b"inf")
        self.client.create_bucket(Bucket=BUCKET)

    def keys(self) -> list[str]:
        """What is in the bucket."""
        found = self.client.list_objects_v2(Bucket=BUCKET)
        return [each["Key"] for each in found.get("Contents", ())]

    def uploads(self) -> int:
        """How many uploads in parts have begun and not ended."""
        return len(self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", ()))

    def refuse_all(self) -> None:
        """Check credentials from now on, as Amazon's does: it knows nobody."""
        self._ask("moto-api/reset-auth", b"0")

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        try:
            self._ask("moto-api/data.json")
        except OSError:
            return False
        return True

    def _ask(self, path: str, data: bytes | None = None) -> None:
        kind = {"Content-Type": "text/plain"}
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}/{path}", data, kind)
        urllib.request.urlopen(asked, timeout=5).close()  # noqa: S310
