"""How fast the annotation page is, for one annotator and for many at once.

`python -m benchmarks.annotation` writes results/performance-annotation.md. One annotator works in a
real Chromium by keyboard; many speak to the app over the WebSocket, as its page does. The study has
the demo's texts: 6,250 tasks, 100 raters per unit. `--before 0.2.0` writes
results/performance-line.md instead: that version and this one by turns, on lines of every length.
`--first-unit` writes results/performance-first-unit.md instead: how long a visitor waits for it.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.documents import RESULTS
from evenhand.study import create_study, open_study
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.desk.desk import AnnotationDesk
from harness.annotator import CLOCK, FIRST_PAINTED, IS_NEXT, READY
from harness.chromium import launched_chromium
from harness.demo.responses import demo_responses
from harness.proxy import NAME, Proxy, program
from harness.released import released
from harness.served import Served
from harness.sessions import Session, address_of, work_at_pace
from harness.slow_line import SlowLine

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[1]
PAGE = RESULTS / "performance-annotation.md"
LINE_PAGE = RESULTS / "performance-line.md"
FIRST_PAGE = RESULTS / "performance-first-unit.md"
NOW = "now"
ROUNDS = 2
"""In which two versions are measured by turns, so that both have the machine as it is just then."""
SUBJECTS = 5
TASKS = 5 * SUBJECTS
"""Of a pair: one of the pair itself and two of each response, for every subject."""
DEFAULTS = {"STREAMLIT_RUNNER_POST_SCRIPT_GC": "true"}
"""What Streamlit does unless told otherwise: a full garbage collection after every run."""


@dataclass(frozen=True)
class Result:
    """One row of the table: what was done, and the milliseconds of every submit."""

    setting: str
    sessions: int
    milliseconds: Sequence[float]
    lost: int = 0
    errors: int = 0

    def row(self) -> str:
        p50, p95, p99 = np.percentile(self.milliseconds, [50, 95, 99])
        return (
            f"| {self.setting} | {self.sessions} | {len(self.milliseconds)} | {p50:.0f} | "
            f"{p95:.0f} | {p99:.0f} | {self.errors} | {self.lost} |"
        )


@dataclass(frozen=True)
class FirstUnit:
    """One row of the table of arrivals: milliseconds to the first unit, in a browser that was never
    there (`cold`) and in one that comes again (`warm`), and the requests of the former.
    """

    way: str
    each_way: int
    cold: float
    warm: float
    requests: int

    def row(self) -> str:
        return (
            f"| {self.way} | {self.each_way} | {self.cold:.0f} | {self.warm:.0f} | "
            f"{self.requests} |"
        )


def make_study(folder: Path, pairs: int, store: str = StudyPlan.store) -> Path:
    """A study of 25 tasks a pair, each wanted from 100 raters."""
    plan = StudyPlan(
        store=store,
        pairs=ROOT / "data" / "demo_pairs.csv",
        rubrics=usual_rubrics(propositions=False),
        sample=pairs,
        raters_per_unit=100,
        synthetic=True,
    )
    create_study(folder, plan)
    with open_study(folder) as study:
        made = demo_responses(study.store.pairs(), 7).responses
        one = made[made["subject"] == made["subject"].iloc[0]]
        for n in range(SUBJECTS):
            texts = one["response"] + f" ({n})"  # no two units look alike
            study.store.add_responses(one.assign(subject=f"subject-{n}", response=texts))
        assert AnnotationDesk(study).progress("nobody")[1] == TASKS * pairs
    return folder


def in_a_browser(
    served: Served,
    units: int,
    setting: str,
    each_way: int = 0,
    reading: float = 1.0,
    rater: str = "",
) -> Result:
    """One annotator by keyboard: from Enter to the frame in which the next unit is painted.

    `each_way` are the milliseconds of the line between browser and server, `reading` the seconds
    for which a unit is read at least.
    """
    from playwright.sync_api import sync_playwright

    rater = rater or f"browser-{each_way}"
    with sync_playwright() as playwright, SlowLine(served.port) as line:
        browser = launched_chromium(playwright)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(CLOCK)
        served.enter(rater)
        page.goto(f"{line.url if each_way else served.url}?rater={rater}")
        page.wait_for_selector(READY)
        line.milliseconds = each_way
        for _ in range(units):
            before = page.text_content(".material")
            page.wait_for_timeout(1000 * reading)
            page.keyboard.press("1")
            page.keyboard.press("Enter")
            page.wait_for_function(IS_NEXT, arg=before)
        page.wait_for_selector(".chip[data-state=saved]", state="attached")
        times = page.evaluate("enterToPaint")
        browser.close()
    lost = units - len(served.labels(rater))
    named = f"{setting}, {each_way} ms each way" if each_way else setting
    return Result(named, 1, times, lost=lost)


def first_units(home: Path, lines: Sequence[int], times: int) -> list[FirstUnit]:
    """How long the first unit takes, directly and, where nginx is installed, behind it: medians of
    so many visits.
    """
    from playwright.sync_api import sync_playwright

    results: list[FirstUnit] = []
    with ExitStack() as until_done:
        served = Served(make_study(home / "study", 2), home, public_host=NAME)
        served.start()
        until_done.callback(served.kill)
        ports = {"directly": served.port}
        if program("nginx") and program("openssl"):
            (home / "nginx").mkdir()
            proxy = Proxy(home / "nginx", [served.port])
            proxy.start()
            until_done.callback(proxy.stop)
            ports["behind nginx"] = proxy.secure
        playwright = until_done.enter_context(sync_playwright())
        # A browser keeps nothing of a page whose certificate it was merely told to overlook.
        mine = f"--host-resolver-rules=MAP {NAME} 127.0.0.1", "--ignore-certificate-errors"
        browser = launched_chromium(playwright, *mine)
        for way, port in ports.items():
            line = until_done.enter_context(SlowLine(port))
            url = f"{'http' if way == 'directly' else 'https'}://{NAME}:{line.port}/"
            for each_way in lines:
                visits = []
                for number in range(times + 1):
                    rater = f"{way}-{each_way}-{number}".replace(" ", "-")
                    served.enter(rater)
                    line.milliseconds = each_way
                    context = browser.new_context(viewport={"width": 1440, "height": 900})
                    page = context.new_page()
                    page.add_init_script(FIRST_PAINTED)
                    visits.append([_arrival(page, f"{url}?rater={rater}") for _ in range(2)])
                    line.milliseconds = 0
                    context.close()
                # The first visit wakes what the server keeps from then on.
                (cold, requests), (warm, _) = np.median(visits[1:], axis=0)
                results.append(FirstUnit(way, each_way, cold, warm, int(requests)))
                print(results[-1].row(), flush=True)
        browser.close()
    return results


def _arrival(page: Page, address: str) -> tuple[float, int]:
    """Milliseconds until a page's first unit is painted, and the requests made until then."""
    page.goto(address)
    page.wait_for_selector("html[data-painted]", state="attached", timeout=120_000)
    painted, requests = page.evaluate(
        "[document.documentElement.dataset.painted, 1 + performance.getEntriesByType('resource')"
        ".filter((e) => e.startTime < document.documentElement.dataset.painted).length]"
    )
    return float(painted), int(requests)


def many_at_work(
    served: Served, sessions: int, seconds: float, pause: float, setting: str
) -> Result:
    """So many annotators, each with one submit in `pause` seconds: from submit to the next unit."""
    name = f"{setting}-{sessions}".replace(" ", "-").replace("'", "")
    people = [Session(served.port, f"{name}-{n}", address_of(n)) for n in range(sessions)]
    served.enter(*(person.rater for person in people))

    async def work() -> list[BaseException | None]:
        opening = max(pause, sessions / 20)
        paced = (work_at_pace(person, pause, opening, seconds) for person in people)
        return list(await asyncio.gather(*paced, return_exceptions=True))

    ended = asyncio.run(work())
    with open_study(served.folder) as study:
        ratings = study.ratings()
    stored = int(ratings["rater_id"].str.startswith(f"{name}-").sum())
    acknowledged = sum(len(person.acknowledged) for person in people)
    times = [time for person in people for time in person.milliseconds]
    return Result(
        setting, sessions, times, max(acknowledged - stored, 0), sum(bool(each) for each in ended)
    )


def measured(
    asked: argparse.Namespace, home: Path, setting: str, environment: dict[str, str]
) -> list[Result]:
    """One setting: a browser alone, then so many sessions after one another on one server."""
    many = asked.sessions if not environment else asked.sessions[:1]
    folder = home / setting.replace(" ", "-")
    folder.mkdir()
    served = Served(make_study(folder / "study", asked.pairs), folder, environment=environment)
    served.start()
    results = []

    def note(result: Result) -> None:
        results.append(result)
        print(result.row(), flush=True)

    try:
        for each_way in (0, *asked.lines) if not environment else (0,):
            note(in_a_browser(served, asked.units, setting, each_way, asked.reading))
        for sessions in many:
            note(many_at_work(served, sessions, asked.seconds, asked.pause, setting))
    finally:
        served.kill()
    return results


def beside(version_before: str, asked: argparse.Namespace, home: Path) -> list[Result]:
    """Enter to the next unit with that version and with this one, by turns, on every line."""
    folder = make_study(home / "study", asked.pairs)
    earlier = released(version_before)
    versions = {}
    for name, python in ((version_before, earlier), (NOW, None)):
        own = home / name
        own.mkdir()
        copy = Path(shutil.copytree(folder, own / "study"))
        if python:
            _leave_out_later_settings(copy, python)
        versions[name] = Served(copy, own, python=python or sys.executable)
        versions[name].start()
    found: dict[tuple[int, str], list[float]] = {}
    lost: dict[tuple[int, str], int] = {}
    try:
        for each_way in (0, *asked.lines):
            for turn in range(ROUNDS):
                for name, served in versions.items():
                    rater, units = f"line-{each_way}-{turn}", asked.units // ROUNDS
                    one = in_a_browser(served, units, name, each_way, asked.reading, rater)
                    print(one.row(), flush=True)
                    found.setdefault((each_way, name), []).extend(one.milliseconds)
                    lost[each_way, name] = lost.get((each_way, name), 0) + one.lost
    finally:
        for served in versions.values():
            served.kill()
    return [
        Result(f"{each_way} ms each way, {name}", 1, times, lost[each_way, name])
        for (each_way, name), times in found.items()
    ]


def _leave_out_later_settings(folder: Path, python: Path) -> None:
    """Take out of study.toml what the version in this Python does not know yet: defaults all."""
    opens = f"from evenhand.study import open_study; open_study({str(folder)!r}).close()"
    settings = folder / "study.toml"
    while True:
        run = subprocess.run([python, "-P", "-c", opens], capture_output=True, text=True)
        unknown = re.search(r"(\w+) is no known key", run.stderr)
        if not unknown:
            run.check_returncode()
            return
        text = settings.read_text("utf-8")
        settings.write_text(re.sub(rf"(?m)^{unknown[1]} = .*\n", "", text), "utf-8")


def line_page(results: Sequence[Result], asked: argparse.Namespace) -> str:
    """The documentation page of two versions on slow lines."""
    today = datetime.datetime.now(datetime.UTC).date()
    where = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    rows = "\n".join(
        "| {} | {} | {:.0f} | {:.0f} | {:.0f} | {} |".format(
            each.setting,
            len(each.milliseconds),
            *np.percentile(each.milliseconds, [50, 95, 99]),
            each.lost,
        )
        for each in results
    )
    return f"""# From Enter to the next unit, beside an earlier version

Measured on {today} by `python -m benchmarks.annotation --before {asked.before}`
({where}; server and browser on the same machine, whose load was
{load} at the end). One annotator by keyboard in a real Chromium, with {asked.reading:g} s of
reading a unit, on the same study in both versions, {ROUNDS} rounds by turns. Every byte between
browser and server takes so many milliseconds longer each way.

| line and version | submits | p50 ms | p95 ms | p99 ms | lost |
| --- | ---: | ---: | ---: | ---: | ---: |
{rows}

Milliseconds from Enter to the second frame after the next unit is drawn, so two frames of 17 ms are
in each. Version {asked.before} waits until the answer is stored; now the next one is there, and
"Saving" is said until it is. The aim is 50 ms on any line.
"""


def page(
    results: Sequence[Result], arrivals: Sequence[FirstUnit], asked: argparse.Namespace
) -> str:
    """The documentation page."""
    today = datetime.datetime.now(datetime.UTC).date()
    where = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    rows = "\n".join(result.row() for result in results)
    return f"""# How fast the annotation page is

Measured on {today} by `python -m benchmarks.annotation` ({where}, Streamlit
{version("streamlit")}, server and driver on the same machine), on a synthetic study of
{TASKS * asked.pairs:,} tasks and 100 raters per unit.

| settings | sessions | submits | p50 ms | p95 ms | p99 ms | errors | lost |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}

One session is a real Chromium driven by keyboard, with {asked.reading:g} s of reading a unit:
milliseconds from Enter to the frame in which the next unit is painted, which was sent ahead; the
answer is on its way then, and "Saving" is said until it is on disk. "75 ms each way" is the same
through a proxy that delays every byte so much: the aim is 50 ms on any line. More sessions have
the page open and send as its panel does, each with one submit in {asked.pause:g} s for
{asked.seconds:g} s after all have opened it: milliseconds from the submit to its receipt, which
brings the next unit.
"Lost" counts answers that the app acknowledged and the store does not have.

All sessions share one process, which uses one core at a time: the setting breaks where submits come
faster than that core can run the page, and waiting times then grow without bound.

"Streamlit defaults" is the same page with `runner.postScriptGC` as Streamlit has it, a full garbage
collection after every run; the app ships with it off.

## The first unit

{first_unit_table(arrivals, asked)}"""


def first_unit_page(arrivals: Sequence[FirstUnit], asked: argparse.Namespace) -> str:
    """The documentation page of arrivals alone."""
    today = datetime.datetime.now(datetime.UTC).date()
    where = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    lines = " ".join(map(str, asked.lines))
    return f"""# How long a visitor waits for the first unit

Measured on {today} by `python -m benchmarks.annotation --first-unit --lines {lines}`
({where}, Streamlit {version("streamlit")}; server, nginx and a real Chromium on the
same machine, whose load was {load} at the end), through a proxy that delays every byte so
much each way.

{first_unit_table(arrivals, asked)}
The aim is 5 s for a browser that was never there and 3.2 s for one that comes again, behind nginx,
over 250 ms each way.
"""


def first_unit_table(arrivals: Sequence[FirstUnit], asked: argparse.Namespace) -> str:
    rows = "\n".join(arrival.row() for arrival in arrivals)
    return f"""| reached | ms each way | cold ms | warm ms | requests |
| --- | ---: | ---: | ---: | ---: |
{rows}

Milliseconds from the address to the frame in which the first unit is painted, medians of
{asked.visits} visits; cold is a browser that was never there, warm one that comes again. Over
250 ms each way a way there and back takes 500 ms, and these must follow each other: TLS behind
nginx, the page, Streamlit's modules, which the page names, the connection, and the run that draws
the unit. TCP's own is not in these figures, as the proxy that delays is on this machine.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=[100, 200, 400, 800])
    parser.add_argument("--seconds", type=float, default=40, help="of labelling by many")
    parser.add_argument("--reading", type=float, default=1.0, help="seconds for which one reads")
    parser.add_argument("--pause", type=float, default=10, help="seconds between two submits")
    parser.add_argument("--units", type=int, default=100, help="that one labels in the browser")
    parser.add_argument(
        "--lines", type=int, nargs="*", default=[75, 250], help="ms each way of slow lines"
    )
    parser.add_argument("--visits", type=int, default=5, help="of which the first unit is timed")
    parser.add_argument("--pairs", type=int, default=250, help="of the study")
    parser.add_argument("--before", metavar="VERSION", help="compare a released one on slow lines")
    parser.add_argument("--first-unit", action="store_true", help="time the first unit alone")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(arguments)
    if asked.before:
        with tempfile.TemporaryDirectory() as home:
            compared = beside(asked.before, asked, Path(home))
        (asked.out or LINE_PAGE).write_text(line_page(compared, asked), "utf-8")
        return
    if asked.first_unit:
        with tempfile.TemporaryDirectory() as home:
            arrivals = first_units(Path(home), (0, *asked.lines), asked.visits)
        (asked.out or FIRST_PAGE).write_text(first_unit_page(arrivals, asked), "utf-8")
        return
    with tempfile.TemporaryDirectory() as home:
        results = measured(asked, Path(home), "as shipped", {})
        results += measured(asked, Path(home), "Streamlit defaults", DEFAULTS)
        (alone := Path(home) / "first").mkdir()
        arrivals = first_units(alone, (0, *asked.lines), asked.visits)
    (asked.out or PAGE).write_text(page(results, arrivals, asked), "utf-8")


if __name__ == "__main__":
    main()
