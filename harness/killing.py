"""Runs that end in the midst of their requests, some in a process of their own."""

import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.protocol_server import ProtocolServer

ROOT = Path(__file__).resolve().parents[1]


def started(program: str, *arguments: object) -> subprocess.Popen[bytes]:
    """A program of Python, begun."""
    command = [sys.executable, "-P", "-c", program, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, cwd=ROOT, env=environment)


def killed_after(calls: int, server: ProtocolServer, program: str, *arguments: object) -> bool:
    """Run a program, and kill -9 it once it has sent so many requests. False: it ended before."""
    wanted, deadline = len(server.calls) + calls, time.monotonic() + 120
    process = started(program, *arguments)
    try:
        while len(server.calls) < wanted:
            if process.poll() is not None:
                return False
            assert time.monotonic() < deadline, "the run did not get going"
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.02))
        return True
    finally:
        process.kill()
        process.wait()


class Killed(BaseException):
    """Ends a run as a kill does: nothing after it is carried out."""


@contextmanager
def dying(of: type, step: str, *, after: bool = False, nth: int = 1) -> Iterator[None]:
    """End a run at the nth time of a step, or `after` it."""
    real: Callable[..., Any] = getattr(of, step)
    times = itertools.count(1)

    def dies(*arguments: Any) -> Any:
        if next(times) < nth:
            return real(*arguments)
        if after:
            real(*arguments)
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of, step, dies)
        with pytest.raises(Killed):
            yield
