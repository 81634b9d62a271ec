"""The real app on a free port, on a small study, and annotators at work in a real Chromium."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.settings.study_toml import change_config
from tests.annotate_app.annotator import CLOCK, SUBJECT, Annotator, prompt_text, response_text

if TYPE_CHECKING:
    import pandas as pd
    from playwright.sync_api import Browser, BrowserContext, Page, Playwright

ROOT = Path(__file__).resolve().parents[2]

# R and C are keys of Streamlit's own (rerun, clear caches): an option must be able to have them.
RUBRIC = """
name = "shorter"
title = "Length"
unit = "pair"
level = "nominal"
affirmative = ["C"]
variables = ["prompt_a", "response_a", "prompt_b", "response_b"]
question = "Which response is shorter?"
instructions = "Compare the two responses by their length alone."

[[options]]
key = "L"
name = "Response A"
description = "The response on the left is shorter."
swapped = "R"

[[options]]
key = "R"
name = "Response B"
description = "The response on the right is shorter."
swapped = "L"

[[options]]
key = "C"
name = "Neither"
description = "They are about as long."
"""


# ---- a study and its server ---------------------------------------------------------------------


@pytest.fixture(scope="session")
def make_study(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """make_study(pairs, response=function of (pair number, side), **annotation settings) -> the
    folder of a new study."""

    def make(
        pairs: int,
        response: Callable[[int, str], str] = response_text,
        rubrics: Sequence[Rubric] = (),
        **settings: object,
    ) -> Path:
        home = tmp_path_factory.mktemp("study")
        with (home / "pairs.csv").open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["prompt_a", "prompt_b"])
            table.writerows([prompt_text(n, "a"), prompt_text(n, "b")] for n in range(1, pairs + 1))
        with (home / "responses.jsonl").open("w", encoding="utf-8") as file:
            for n in range(1, pairs + 1):
                for side in "ab":
                    row = {"subject": SUBJECT, "pair_id": f"p{n:04d}", "side": side}
                    file.write(json.dumps(row | {"response": response(n, side)}) + "\n")
        plan = StudyPlan(
            pairs=home / "pairs.csv",
            responses=home / "responses.jsonl",
            rubrics=rubrics or [_rubric(home)],
            stratify=(),
            raters_per_unit=50,
        )
        create_study(home / "study", plan)
        change_config(home / "study", {"annotation": settings})
        return home / "study"

    return make


def _rubric(home: Path) -> Rubric:
    file = home / "shorter.toml"
    file.write_text(RUBRIC, "utf-8")
    return load_rubric(file)


@dataclass
class Served:
    """The app, serving one study; can be killed and started again on the same port."""

    folder: Path
    home: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    public_host: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def spied(self) -> list[str]:
        """What the spy saw in the server process: see `_spy`."""
        return (self.home / "spy.txt").read_text("utf-8").splitlines()

    def start(self) -> None:
        self.port = self.port or _free_port()
        arguments = f"{str(self.folder)!r}, {self.port}, public_host={self.public_host!r}"
        starts = f"from evenhand.annotate_app import serve; serve({arguments})"
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", starts],
                cwd=self.home,  # anywhere but the checkout
                env=os.environ | {"PYTHONPATH": str(_spy(self.home))} | self.environment,
                stdout=log,
                stderr=log,
            )
        _wait_for(lambda: _answers(f"{self.url}_stcore/health"), "the server to start")

    def kill(self) -> None:
        """kill -9: nothing that the server holds in memory can be written any more."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def labels(self, rater: str) -> pd.DataFrame:
        """The rater's rows of the `ratings` table, as another process sees them."""
        with open_study(self.folder) as study:
            ratings = study.ratings()
        return ratings[ratings["rater_id"] == rater]


def _spy(home: Path) -> Path:
    """A folder that, on PYTHONPATH, makes the server note the garbage collections it asks for."""
    notes = home / "spy.txt"
    (home / "sitecustomize.py").write_text(
        "import gc, pathlib\n"
        f"notes = pathlib.Path({str(notes)!r})\n"
        "notes.open('a').write('watching\\n')\n"
        "collect = gc.collect\n"
        "def spy(generation=2):\n"
        "    notes.open('a').write(f'collect {generation}\\n')\n"
        "    return collect(generation)\n"
        "gc.collect = spy\n",
        "utf-8",
    )
    return home


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1) as reply:  # noqa: S310
        return bool(reply.status == 200)
    return False


def _wait_for(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.05)


@pytest.fixture(scope="session")
def serve_study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Served]]:
    """serve_study(folder) -> the app, running; stopped at the end of the run."""
    running: list[Served] = []

    def start(folder: Path) -> Served:
        served = Served(folder, tmp_path_factory.mktemp("server"))
        running.append(served)
        served.start()
        return served

    yield start
    for served in running:
        if served.process and served.process.poll() is None:
            served.kill()


@pytest.fixture(scope="session")
def served(make_study: Callable[..., Path], serve_study: Callable[[Path], Served]) -> Served:
    """One server for the tests that only read and label: each with rater codes of its own."""
    return serve_study(make_study(150))


@pytest.fixture(scope="session")
def mortal(make_study: Callable[..., Path], serve_study: Callable[[Path], Served]) -> Served:
    """A small study whose server tests may kill, as long as they start it again."""
    return serve_study(make_study(2))


# ---- a browser ----------------------------------------------------------------------------------

CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the whole session: while Playwright's loop runs, no other test can run its own."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _no_browser("Playwright is not installed")
    with sync_playwright() as playwright:
        browser = launched_chromium(playwright)
        yield browser
        browser.close()


def launched_chromium(playwright: Playwright, *flags: str) -> Browser:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next(filter(None, map(shutil.which, names)), playwright.chromium.executable_path)
    if not Path(path).exists():
        _no_browser("no Chromium is installed: `playwright install chromium` brings one")
    return playwright.chromium.launch(executable_path=path, args=[*CHROMIUM_FLAGS, *flags])


def _no_browser(reason: str) -> None:
    if os.environ.get("EVENHAND_REQUIRE_BROWSER") == "1":
        pytest.fail(f"EVENHAND_REQUIRE_BROWSER=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture
def new_context(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """new_context() -> a browser of one's own: its storage is shared with nobody."""
    opened: list[BrowserContext] = []

    def make(**settings: Any) -> BrowserContext:
        context = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | settings))
        context.set_default_timeout(15_000)
        context.add_init_script(CLOCK)
        opened.append(context)
        return context

    yield make
    for context in opened:
        context.close()


@pytest.fixture
def annotator(
    new_context: Callable[..., BrowserContext], served: Served
) -> Callable[..., Annotator]:
    """annotator(rater) -> a person at their first unit, in a browser of their own."""

    def make(
        rater: str,
        server: Served = served,
        context: BrowserContext | None = None,
        page: Page | None = None,
    ) -> Annotator:
        if page is not None:  # already there
            return Annotator(rater, server, page)
        page = (context or new_context()).new_page()
        person = Annotator(rater, server, page)
        page.goto(f"{server.url}?rater={rater}")
        page.wait_for_selector(".panel .option, .panel .message")
        return person

    return make
