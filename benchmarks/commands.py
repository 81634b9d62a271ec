"""Whole commands, as the page on performance has them: imports and reading included."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SEED = 20231206
Q = 5
COMMAND_LIMITS = {"help": 0.3, "250 x 5": 2.0, "10,000 x 5": 5.0}
MEMORY_LIMIT = 2.0


@dataclass(frozen=True)
class Command:
    """A whole command: wall time (the median of some runs) and the most memory it held."""

    what: str
    seconds: float
    gigabytes: float
    limit: str
    met: bool


def commands(repeats: int, scale: float = 1.0) -> Iterator[Command]:
    """`evenhand` as a user starts it, on files it has to read."""
    with tempfile.TemporaryDirectory() as folder:
        taken, held = _timed(["--help"], repeats)
        yield Command("`evenhand --help`", taken, held, "0.3 s", taken <= COMMAND_LIMITS["help"])
        for name, units in (("250 x 5", 250), ("10,000 x 5", 10_000), ("1,000,000", 200_000)):
            path = Path(folder) / f"{units}.csv"
            write_ratings(path, max(60, round(units * scale)), 5)
            million = name == "1,000,000"
            scale_of = ["--level", "ordinal", "--categories", "1,2,3,4,5", "--affirmative", "4,5"]
            taken, held = _timed(["check", str(path), *scale_of], 1 if million else repeats)
            if million:
                what = "`evenhand check`, a million labels in 66,667 clusters"
                yield Command(what, taken, held, "2 GB", held <= MEMORY_LIMIT)
            else:
                limit = COMMAND_LIMITS[name]
                what = f"`evenhand check`, {name} raters, one of them a grader"
                yield Command(what, taken, held, f"{limit:g} s", taken <= limit)


def labels(units: int, raters: int) -> np.ndarray:
    """Synthetic labels (units, raters) on five categories; raters keep the truth in 7 of 10."""
    rng = np.random.default_rng(SEED)
    truth = rng.integers(0, Q, units)
    columns = [
        np.where(rng.random(units) < 0.7, truth, rng.integers(0, Q, units)) for _ in range(raters)
    ]
    return np.stack(columns, axis=1).astype(np.int8)


def write_ratings(path: Path, units: int, raters: int) -> None:
    """A ratings file of synthetic labels: three units to a cluster, the last rater a model."""
    codes = labels(units, raters)
    with path.open("w", encoding="utf-8") as file:
        file.write("unit_id,cluster_id,rater_id,rater_kind,label\n")
        for rater in range(raters):
            kind = "model" if rater == raters - 1 else "human"
            file.writelines(
                f"u{unit},p{unit // 3},r{rater},{kind},{code + 1}\n"
                for unit, code in enumerate(codes[:, rater].tolist())
            )


_LAUNCHER = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run([sys.executable, "-P", "-m", "evenhand", *sys.argv[1:]], stdout=-3, check=True)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Starts the command from a small process: a child counts what its parent held as its own."""


def _timed(arguments: Sequence[str], repeats: int) -> tuple[float, float]:
    """(median seconds, most gigabytes) of `evenhand` with these arguments."""
    taken, held = [], []
    for _ in range(repeats):
        launched = [sys.executable, "-P", "-c", _LAUNCHER, *arguments]
        said = subprocess.run(launched, capture_output=True, text=True, check=True).stdout.split()
        taken.append(float(said[0]))
        # Linux counts kilobytes, macOS bytes.
        held.append(float(said[1]) / (1e9 if sys.platform == "darwin" else 1e6))
    return statistics.median(taken), max(held)
