"""A program in a process of its own, killed in the midst of its requests."""

import os
import random
import subprocess
import sys
import time

from harness.protocol_server import ProtocolServer
from tests.conftest import ROOT


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
