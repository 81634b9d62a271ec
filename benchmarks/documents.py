"""What the pages that benchmarks write have in common."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def library_versions(*names: str) -> str:
    """Python and the libraries by version, for a reader who wants to repeat the run."""
    listed = [f"Python {platform.python_version()}"]
    listed += [f"{name} {version(name)}" for name in ("numpy", "scipy", *names)]
    return ", ".join(listed)


def simulate_and_write(
    arguments: Sequence[str] | None,
    about: str,
    run_all: Callable[[int, int, int, int], T],
    document: Callable[[T, int, int, int], str],
    *,
    runs: int,
    resamples: int,
    seed: int,
    out: Path,
) -> None:
    """The command line of a simulation: run it, print its page and write it.

    `run_all` takes runs, resamples, seed and processes, `document` what came out and the first
    three.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--resamples", type=int, default=resamples)
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=out)
    asked = parser.parse_args(arguments)
    found = run_all(asked.runs, asked.resamples, asked.seed, asked.processes)
    page = document(found, asked.runs, asked.resamples, asked.seed)
    asked.out.write_text(page, encoding="utf-8")
    print(page)
