"""How close the runner comes to the ideal rate, beside a plain `asyncio.gather`, and its memory.

    python -m benchmarks.grading [--grades N] [--out FILE]

A server on loopback answers every chat completion after 200 ms. With 64 connections no client can
do better than 64 / 0.2 s = 320 grades a second. The runner is timed from the first request to the
end, each grade on disk. The plain clients keep nothing and run the same SDK on the same server,
once as it comes and once over aiohttp, which is faster.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import datetime
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

LATENCY = 0.2
CONNECTIONS = (64, 256)
SAMPLES = 100


async def _serve(port_to: Any) -> None:
    """The smallest HTTP server that the SDK accepts, so that the server is not what is measured."""
    body = json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": "1"},
                }
            ],
            "usage": {"prompt_tokens": 900, "completion_tokens": 1, "total_tokens": 901},
        }
    ).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
    reply = head + str(len(body)).encode() + b"\r\n\r\n" + body

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                headers = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(headers.partition(b"content-length:")[2].split(b"\r\n")[0])
                await reader.readexactly(length)
                await asyncio.sleep(LATENCY)
                writer.write(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=256)
    port_to.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _server(port_to: Any) -> None:
    asyncio.run(_serve(port_to))


def _study(folder: Path, grades: int) -> Any:
    """A synthetic study with so many response units."""
    from evenhand.rubrics import load_rubric
    from evenhand.study import open_study
    from evenhand.study.creation import StudyPlan, create_study

    pairs = grades // 2
    with (folder / "pairs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt_a", "prompt_b"])
        writer.writerows([f"Argue for {n}.", f"Argue against {n}."] for n in range(pairs))
    width = max(4, len(str(pairs)))
    with (folder / "responses.jsonl").open("w") as file:
        for n in range(1, pairs + 1):
            for side in ("a", "b"):
                row = {"pair_id": f"p{n:0{width}d}", "side": side, "subject": "s"}
                file.write(json.dumps(row | {"response": f"Answer {n} {side}. " * 20}) + "\n")
    plan = StudyPlan(
        pairs=folder / "pairs.csv",
        responses=folder / "responses.jsonl",
        rubrics=[load_rubric("hedging")],
        sample=pairs,
        synthetic=True,
    )
    create_study(folder / "study", plan)
    return open_study(folder / "study")


def _memory() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _runner(url: str, grades: int, connections: int) -> tuple[float, list[float]]:
    """(grades a second, memory at every hundredth) of the runner."""
    from evenhand.graders import GradingOptions, RequestLimits, grade

    memory: list[float] = []
    times: list[float] = []

    def progress(done: int, total: int, _: str) -> None:
        times.append(time.perf_counter())
        if done % (total // SAMPLES) == 0:
            memory.append(_memory())

    with tempfile.TemporaryDirectory() as folder, _study(Path(folder), grades) as study:
        limits = RequestLimits(concurrency=connections)
        grade(study, [f"openai:m@{url}"], GradingOptions(method="label"), limits, progress)
    return (len(times) - 1) / (times[-1] - times[0]), memory


def _gather(url: str, grades: int, connections: int, *, aiohttp: bool) -> float:
    """Grades a second of the same SDK with a semaphore and one gather; nothing is kept."""
    import openai

    async def all_of_them() -> float:
        room = asyncio.Semaphore(connections)
        async with openai.AsyncOpenAI(
            base_url=url,
            api_key="none",
            max_retries=0,
            http_client=openai.DefaultAioHttpClient() if aiohttp else None,
        ) as client:

            async def ask(n: int) -> None:
                async with room:
                    await client.chat.completions.create(
                        model="m", max_tokens=16, messages=[{"role": "user", "content": "x" * 2000}]
                    )

            began = time.perf_counter()
            await asyncio.gather(*(ask(n) for n in range(grades)))
            return grades / (time.perf_counter() - began)

    return asyncio.run(all_of_them())


def _report(grades: int, rates: dict[int, tuple[float, float, float]], memory: list[float]) -> str:
    """`rates` are, by connections, those of the runner, the SDK as it comes and over aiohttp."""
    quarter = len(memory) // 4
    second, last = mean(memory[quarter : 2 * quarter]), mean(memory[-quarter:])
    lines = [
        f"| {connections} | {connections / LATENCY:.0f} | {runner:.0f} | {usual:.0f} | {best:.0f} "
        f"| {runner / max(usual, best):.2f} |"
        for connections, (runner, usual, best) in rates.items()
    ]
    table = "\n".join(lines)
    return f"""# Speed of grading

Written by `python -m benchmarks.grading`, {datetime.date.today()}:
a synthetic study of {grades:,} response units, and a server on loopback that answers every request
after {LATENCY * 1000:.0f} ms. No client can do better than connections / {LATENCY} s.
`evenhand grade` has every grade on disk before the next is asked; the plain clients, an
`asyncio.gather` over the same SDK before and after it, keep nothing.

| connections | at best | `evenhand grade` | SDK | SDK over aiohttp | share of the faster |
| ---: | ---: | ---: | ---: | ---: | ---: |
{table}

Grades a second. The runner's resident memory, read
{len(memory)} times over the run with {CONNECTIONS[0]} connections, is {second:.1f} MB on average
in the second quarter and {last:.1f} MB in the last: {last / second:.3f} times as much. At most it
is {max(memory):.1f} MB.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grades", type=int, default=20_000, help=f"at least {SAMPLES}")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(arguments)
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=_server, args=(theirs,), daemon=True)
    server.start()
    rates, memories = {}, []
    try:
        url = f"http://127.0.0.1:{ours.recv()}/v1"
        for connections in CONNECTIONS:
            few = min(asked.grades, 25 * connections)
            before = [_gather(url, few, connections, aiohttp=way) for way in (False, True)]
            runner, memory = _runner(url, asked.grades, connections)
            after = [_gather(url, few, connections, aiohttp=way) for way in (False, True)]
            usual, best = (mean(pair) for pair in zip(before, after, strict=True))
            rates[connections] = (runner, usual, best)
            memories.append(memory)
    finally:
        server.terminate()
    text = _report(asked.grades, rates, memories[0])
    if asked.out:
        asked.out.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
