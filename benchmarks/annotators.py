"""How many annotators at once the app bears, with a full store and the lead watching.

`python -m benchmarks.annotators` writes docs/load.md. Annotators and lead speak to the app over
WebSockets, as its pages do; the app runs in one process or in several, on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.annotation import TASKS, make_study
from evenhand.study import open_study
from evenhand.study.access.lead_login import new_link_token
from evenhand.study.desk.design import SessionDesign
from evenhand.study.lead.imports import import_ratings
from evenhand.study.tables.ratings import split_ratings
from harness.postgresql import own_postgresql
from harness.served import Served
from harness.sessions import Session, work_at_pace
from harness.watching import Watching

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "load.md"
WATCHED = ("Progress", "Raters")
"""The lead's pages that are open while the lead watches, a window each."""
AIM = 150
"""Milliseconds, of the 95th percentile with 100 annotators and the lead watching."""


@dataclass(frozen=True)
class Setting:
    """One line of the table: on how many processes, where the study is kept, who is there."""

    store: str
    processes: int
    annotators: int
    watched: bool


@dataclass(frozen=True)
class Result:
    """What a setting gave: the milliseconds of every submit, the seconds of the lead's pages."""

    setting: Setting
    milliseconds: Sequence[float]
    submitting: float
    """Seconds over which the submits came."""
    lead: Sequence[float]
    errors: int
    lost: int
    busy: float
    """The machine's load (runnable processes, a minute's mean) before it began."""

    def row(self) -> str:
        p50, p95, most = np.percentile(self.milliseconds, [50, 95, 100])
        lead = f"{max(self.lead):.1f}" if self.lead else "-"
        return (
            f"| {self.setting.store} | {self.setting.processes} | {self.setting.annotators} | "
            f"{'yes' if self.setting.watched else 'no'} | "
            f"{len(self.milliseconds) / self.submitting:.1f} | {p50:.0f} | {p95:.0f} | {most:.0f} |"
            f" {lead} | {self.errors} | {self.lost} | {self.busy:.1f} |"
        )


def labelled_study(folder: Path, pairs: int, raters: int, store: str) -> tuple[int, float]:
    """A study in which so many people have labelled everything; how many labels these are, and how
    many seconds their import took.
    """
    make_study(folder, pairs, store)
    rng = np.random.default_rng(7)
    first = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=7)
    with open_study(folder) as study:
        rows = [
            {
                "unit_id": asked.unit_id,
                "rubric": asked.rubric.name,
                "rater_id": f"before-{rater}",
                "rater_kind": "human",
                "label": rng.choice(asked.rubric.categories),
                "seconds": float(rng.integers(5, 60)),
                "order": "ab" if asked.rubric.unit == "pair" else "",
                "created_at": (first + datetime.timedelta(seconds=30 * n)).isoformat(
                    timespec="milliseconds"
                ),
            }
            for rater in range(raters)
            for n, asked in enumerate(SessionDesign(study).questions.values())
        ]
        ratings, _ = split_ratings(pd.DataFrame(rows), "the benchmark")
        begun = time.perf_counter()
        import_ratings(study, ratings, "the benchmark")
        return len(rows), time.perf_counter() - begun


@contextmanager
def serving(study: Path, home: Path, processes: int) -> Iterator[list[Served]]:
    """So many processes of the app, each on a port of its own, as a proxy shares out sessions."""
    served = []
    try:
        for n in range(processes):
            place = home / f"process-{n}"
            place.mkdir(exist_ok=True)
            served.append(Served(study, place))
            served[-1].start()
        yield served
    finally:
        for each in served:
            each.kill()


def measured(setting: Setting, study: Path, home: Path, pause: float, seconds: float) -> Result:
    """Annotators for so many seconds after all have opened the page, a submit in `pause` each."""
    busy = os.getloadavg()[0]
    opening = max(pause, setting.annotators / 20)
    with serving(study, home, setting.processes) as served:
        name = f"a{time.time_ns():x}"
        people = [
            Session(served[n % len(served)].port, f"{name}-{n}") for n in range(setting.annotators)
        ]
        served[0].enter(*(person.rater for person in people))
        pages = WATCHED if setting.watched else ()
        with open_study(study) as opened:
            tokens = [new_link_token(opened.store) for _ in pages]
        lead = [
            Watching(served[0].port, token, page)
            for token, page in zip(tokens, pages, strict=True)
        ]

        async def work() -> list[BaseException | None]:
            end = time.monotonic() + opening + seconds
            paced = [work_at_pace(person, pause, opening, seconds) for person in people]
            watching = [_watch(each, end) for each in lead]
            return list(await asyncio.gather(*paced, *watching, return_exceptions=True))

        ended = asyncio.run(work())
    with open_study(study) as opened:
        stored = int(opened.ratings()["rater_id"].str.startswith(f"{name}-").sum())
    return Result(
        setting,
        [each for person in people for each in person.milliseconds],
        seconds,
        [each for page in lead for each in page.seconds],
        sum(each is not None for each in ended),
        max(sum(len(person.acknowledged) for person in people) - stored, 0),
        busy,
    )


async def _watch(page: Watching, until: float) -> None:
    await page.open()
    await page.watch(until)


def settings(asked: argparse.Namespace, store: str) -> list[Setting]:
    """The lead away for comparison, with the fewest annotators on one process."""
    alone = Setting(store, asked.processes[0], asked.annotators[0], watched=False)
    return [alone] + [
        Setting(store, processes, annotators, watched=True)
        for annotators in asked.annotators
        for processes in asked.processes
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--annotators", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--stores", nargs="+", default=["SQLite", "PostgreSQL"])
    parser.add_argument("--seconds", type=float, default=20, help="of labelling in each setting")
    parser.add_argument("--pause", type=float, default=10, help="seconds between two submits")
    parser.add_argument("--pairs", type=int, default=250, help="of the study")
    parser.add_argument("--raters", type=int, default=16, help="who have labelled all of it")
    parser.add_argument("--out", type=Path, default=PAGE)
    asked = parser.parse_args(arguments)
    results: list[Result] = []
    imports: dict[str, tuple[int, float]] = {}
    with tempfile.TemporaryDirectory() as home, own_postgresql(Path(home) / "server") as database:
        for store in asked.stores:
            folder = Path(home) / store
            folder.mkdir()
            location = {"SQLite": "study.db", "PostgreSQL": database()}[store]
            study = folder / "study"
            imports[store] = labelled_study(study, asked.pairs, asked.raters, location)
            for setting in settings(asked, store):
                results.append(measured(setting, study, folder, asked.pause, asked.seconds))
                print(results[-1].row(), flush=True)
    asked.out.write_text(page(results, imports, asked), "utf-8")


def page(
    results: Sequence[Result], imports: dict[str, tuple[int, float]], asked: argparse.Namespace
) -> str:
    return ""


if __name__ == "__main__":
    main()
