"""What one annotator costs the app and its store, and what a crowd takes, on paper."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk, Answer
from harness.served import Served
from harness.sessions import Session, address_of

CROWD, PAUSE = 10_000, 10
"""Annotators at once, and seconds between two submits of each."""
ARRIVAL = 600
"""Seconds in which a crowd comes in."""
_SUBMITS = 5
_TURNS = 200


@dataclass(frozen=True)
class Cost:
    """Of the app's process: milliseconds of a processor for a page that is opened and for a submit,
    and megabytes of an open page. Of the store, by its name: milliseconds that a submit and what
    comes next take of it, alone.
    """

    opening: float
    submit: float
    megabytes: float
    turns: Mapping[str, float]


def page_cost(study: Path, home: Path, annotators: int) -> tuple[float, float, float]:
    """The app's own share: (opening, submit, megabytes), each for one annotator."""
    served = Served(study, home)
    served.start()
    try:
        assert served.process is not None
        used = _reader(served.process.pid)
        name = f"c{time.time_ns():x}"
        people = [Session(served.port, f"{name}-{n}", address_of(n)) for n in range(annotators + 1)]
        served.enter(*(person.rater for person in people))
        first, *others = people

        async def work() -> list[tuple[float, float]]:
            await first.open()  # what the process reads once, it has read
            noted = [used()]
            for person in others:
                await person.open()
            noted.append(used())
            for person in others:
                for _ in range(_SUBMITS):
                    await person.answer()
            return [*noted, used()]

        (cpu, held), (opened, holds), (done, _) = asyncio.run(work())
    finally:
        served.kill()
    submits = _SUBMITS * annotators
    return (
        (opened - cpu) / annotators * 1000,
        (done - opened) / submits * 1000,
        (holds - held) / annotators,
    )


def turn_cost(study: Path) -> float:
    """Milliseconds that the store takes for a submit and for what comes next."""
    with open_study(study) as opened:
        desk = AnnotationDesk(opened)
        rater = f"t{time.time_ns():x}"
        desk.register(rater)
        begun, done = time.perf_counter(), 0
        while done < _TURNS and (sheet := desk.next_sheet(rater)):
            task, key = sheet.tasks[0], uuid.uuid4().hex
            label = task.rubric.categories[0]
            desk.submit_all(
                rater, [Answer(task_id=task.task_id, submit_id=key, option_key=label, seconds=1.0)]
            )
            done += 1
        return (time.perf_counter() - begun) / done * 1000


def _reader(process: int) -> Callable[[], tuple[float, float]]:
    """Seconds of a processor that a process has used, and megabytes that it holds."""
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")

    def used() -> tuple[float, float]:
        times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        resident = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return (int(times[11]) + int(times[12])) / tick, resident * page / 1e6

    return used


def section(cost: Cost) -> str:
    """The part of the page on load."""
    submits = CROWD / PAUSE
    busy = submits * cost.submit / 1000
    processes = max(2 * busy, 1)
    memory = CROWD * cost.megabytes / 1024
    stores = "\n".join(
        f"| {store}: its time for a submit and the next unit, ms | {turn:.1f} |"
        for store, turn in cost.turns.items()
    )
    at_once = "; ".join(
        f"{store} {1000 / turn / 2 * PAUSE:,.0f}" for store, turn in cost.turns.items()
    )
    return f"""## What one annotator costs

| | |
| --- | ---: |
| a page that is opened, ms of a processor | {cost.opening:.0f} |
| a submit, ms of a processor | {cost.submit:.1f} |
| an open page, MB | {cost.megabytes:.2f} |
{stores}

## {CROWD:,} at once, on paper

Nobody has tried it. This follows from the costs above, with a submit each {PAUSE} s,
{submits:,.0f} a second in all, and each part kept half idle, so that nobody waits in a queue:

- *Processors*: {busy:.0f} are busy with submits, so {processes:.0f} processes of the app, on
  as many cores, behind nginx, which keeps a browser with its process.
- *Coming in*: within {ARRIVAL // 60} minutes, {CROWD * cost.opening / 1000 / ARRIVAL:.1f}
  processors more.
- *Memory*: {memory:.0f} GB for open pages, and about .2 GB for each process.
- *The store* comes first: submits of one study take turns at it, so one study bears about this
  many annotators at once: {at_once}. More need several studies, each with a store of its own, and
  a code leads to one of them; the analysis takes their exports together.
- *Connections*: each process holds a few to PostgreSQL; beyond some 20 processes raise its
  `max_connections` of 100. nginx needs `worker_connections` of twice the crowd, and the system as
  many open files.
"""
