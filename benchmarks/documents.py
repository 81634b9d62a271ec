"""What the pages that benchmarks write have in common."""

from __future__ import annotations

import argparse
import math
import platform
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from itertools import repeat
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
"""Where each writes what it measured; docs/evidence.md says what that shows."""
PARTS = 20
"""A cell's runs are dealt out to the processes in so many parts."""


def library_versions(*names: str) -> str:
    """Python and the libraries by version, for a reader who wants to repeat the run."""
    listed = [f"Python {platform.python_version()}"]
    listed += [f"{name} {version(name)}" for name in ("numpy", "scipy", *names)]
    return ", ".join(listed)


def simulate_and_write(
    arguments: Sequence[str] | None,
    about: str,
    cells: Iterable[Hashable],
    run_cell: Callable[[Any, range, int, int], dict[Any, Any]],
    document: Callable[[dict[Any, Any], int, int, int], str],
    *,
    runs: int,
    resamples: int,
    seed: int,
    out: Path,
) -> None:
    """The command line of a simulation: run it, print its page and write it.

    `run_cell` takes a cell, some runs of it, resamples and seed, and gives tallies by what they
    belong to, first of all to the cell; `document` takes all tallies, runs, resamples and seed.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--resamples", type=int, default=resamples)
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=out)
    asked = parser.parse_args(arguments)
    size = max(1, math.ceil(asked.runs / PARTS))
    parts = [range(start, min(start + size, asked.runs)) for start in range(0, asked.runs, size)]
    tasks = [(cell, part) for cell in cells for part in parts]
    found: dict[Any, Any] = {}
    with ProcessPoolExecutor(asked.processes) as pool:
        of_task = [cell for cell, _ in tasks], [part for _, part in tasks]
        settings = repeat(asked.resamples), repeat(asked.seed)
        for tallies in pool.map(run_cell, *of_task, *settings):
            for key, tally in tallies.items():
                found.setdefault(key, type(tally)()).add(tally)
    page = document(found, asked.runs, asked.resamples, asked.seed)
    asked.out.write_text(page, encoding="utf-8")
    print(page)
