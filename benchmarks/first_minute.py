"""What the first minute costs: what is installed, and how soon a verdict is there.

    python -m benchmarks.first_minute [--rounds 3] [--tools bare evenhand ...] [--out FILE]

Beside numpy, scipy and pandas alone, and beside judgekeeper, which needs none of them. Each is
installed by uv into an environment of its own, evenhand from a wheel of this checkout; what it
needs comes from the package index. Rounds alternate, so that a machine that is busy for a while is
busy for all. The labels that are checked are synthetic.
"""

from __future__ import annotations

import argparse
import datetime
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from uv import find_uv_bin

from benchmarks.documents import RESULTS, library_versions

OUT = RESULTS / "first-minute.md"
ROOT = Path(__file__).parents[1]
MEGABYTES, RATIO, LOOK = 60.0, 1.5, 3.0
"""At most: beyond numpy, scipy and pandas; a cold verdict by them alone; seconds of a look."""
QUIET = 0.9
"""Seconds of the import of these three where nothing else runs (docs/evidence.md)."""
THREE = ("numpy", "scipy", "pandas")
UNITS, SEED = 250, 7
_IMPORT = "import numpy, pandas, scipy.stats"
_CHECK = [
    *("evenhand", "check", "labels.csv", "--human", "person", "--model", "judge"),
    *("--reference", "person", "--categories", "yes,no", "--affirmative", "yes"),
]
_LOOK = ["evenhand", "demo", "look", "--study", "dices", "--no-app"]
_JUDGEKEEPER = [
    *("judgekeeper", "check", "labels.csv", "--judge", "judge", "--human", "person"),
    *("--id", "unit_id"),
]


@dataclass(frozen=True)
class Tool:
    """What is installed, and the programs that are timed there; `cold` goes to `uvx`."""

    name: str
    packages: Sequence[str]
    programs: dict[str, list[str]]
    cold: Sequence[str] = ()


class Spent(NamedTuple):
    """Seconds of a process by the clock, and of the processors, which a busy machine hardly
    changes.
    """

    seconds: float
    processor: float


@dataclass
class Found:
    """Megabytes installed, and what each program spent: the first time, and all others."""

    megabytes: float = 0.0
    first: dict[str, Spent] = field(default_factory=dict)
    then: dict[str, list[Spent]] = field(default_factory=dict)
    cold: list[float] = field(default_factory=list)


def tools(wheel: Path) -> dict[str, Tool]:
    """What is measured, by its name on the command line."""
    ours = {
        "import": ["python", "-c", "from evenhand import check"],
        "check": _CHECK,
        "demo": _LOOK,
    }
    return {
        "bare": Tool(
            "numpy, scipy, pandas",
            THREE,
            {"import": ["python", "-c", _IMPORT]},
            [*(f"--with={name}" for name in THREE), "python", "-c", _IMPORT],
        ),
        "evenhand": Tool("evenhand", [str(wheel)], ours, ["--from", str(wheel), *_CHECK]),
        "all": Tool("evenhand[all]", [f"evenhand[all] @ {wheel.as_uri()}"], ours),
        "judgekeeper": Tool(
            "judgekeeper",
            ["judgekeeper"],
            {
                "import": ["python", "-c", "import judgekeeper"],
                "check": _JUDGEKEEPER,
                "demo": ["judgekeeper", "demo"],
            },
            ["--from", "judgekeeper", *_JUDGEKEEPER],
        ),
    }


def measured(chosen: Sequence[str], rounds: int, folder: Path) -> dict[str, tuple[Tool, Found]]:
    """Install the chosen tools and time their programs, in rounds."""
    uv, started = find_uv_bin(), folder / "work"
    started.mkdir()
    _write_labels(started / "labels.csv")
    _run([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)], folder)
    (wheel,) = folder.glob("*.whl")
    known = tools(wheel)
    found = {name: (known[name], Found()) for name in chosen}
    for name, (tool, own) in found.items():
        place = folder / name
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(place)], folder)
        python = str(place / "bin" / "python")
        _run([uv, "pip", "install", "--quiet", "--python", python, *tool.packages], folder)
        own.megabytes = _megabytes(place)
    for number in range(rounds + 1):
        for name, (tool, own) in found.items():
            for what, (program, *words) in tool.programs.items():
                taken = _run([str(folder / name / "bin" / program), *words], started)
                if number:
                    own.then.setdefault(what, []).append(taken)
                else:
                    own.first[what] = taken
    for number in range(rounds):
        for name, (tool, own) in found.items():
            if tool.cold:
                cache = {"UV_CACHE_DIR": str(folder / f"cache-{name}-{number}")}
                uvx = [uv, "tool", "run", "--quiet", "--python", sys.executable, *tool.cold]
                own.cold.append(_run(uvx, started, cache).seconds)
    return found


def _write_labels(file: Path) -> None:
    """A person's labels, and a judge's that are the same in nine of ten."""
    rng = np.random.default_rng(SEED)
    person = rng.random(UNITS) < 0.6
    judge = person ^ (rng.random(UNITS) < 0.1)
    words = np.array(["no", "yes"])
    rows = zip(range(UNITS), words[person.astype(int)], words[judge.astype(int)], strict=True)
    lines = ["unit_id,person,judge", *(f"u{n},{one},{two}" for n, one, two in rows)]
    file.write_text("\n".join(lines) + "\n", "utf-8")


def _run(command: Sequence[str], folder: Path, more: dict[str, str] | None = None) -> Spent:
    """What a program spends. Raises RuntimeError, with what it said, where it fails."""
    environment = {**os.environ, **(more or {})}
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "VIRTUAL_ENV"):
        environment.pop(name, None)
    began, before = time.perf_counter(), _processor()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    spent = Spent(time.perf_counter() - began, _processor() - before)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr}")
    return spent


def _processor() -> float:
    """Seconds of the processors that all ended children have spent."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _megabytes(place: Path) -> float:
    """What lies in the site-packages of an environment, before anything has run there."""
    (packages,) = place.glob("lib/python*/site-packages")
    return sum(each.lstat().st_size for each in packages.rglob("*") if each.is_file()) / 1e6


def document(found: dict[str, tuple[Tool, Found]], rounds: int) -> str:
    """The page: a row for each tool, and the bounds."""
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [
        "# The first minute",
        "",
        f"Written by `python -m benchmarks.first_minute`, {today}, {os.cpu_count()} processors, "
        f"{library_versions('pandas')}.",
        "",
        "MB are those of site-packages after the install, without compiled bytecode. Seconds are "
        "of a whole process: the first run, which compiles what it imports, and the median of "
        f"{rounds} more. `demo` is `evenhand demo --study dices --no-app`, 350 published "
        "conversations and 123 people, and judgekeeper's own, 100 synthetic answers. `check` reads "
        f"a file of {UNITS} synthetic labels of one person and one judge. evenhand loads pandas "
        "once a function is called, not at its import. Cold is `uvx` with an empty cache, from the "
        f"package index to the verdict, the median of {rounds}; of numpy, scipy and pandas alone, "
        "to their import.",
        "",
        f"A look is to take {LOOK:.0f} s where nothing else runs, and the import of the three "
        f"takes {QUIET} s there: so its processor time may be {LOOK / QUIET:.1f} times theirs.",
        "",
        f"Load of the machine in the last minute: {os.getloadavg()[0]:.1f}.",
        "",
        "| installed | MB | import | check | demo | cold |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for tool, own in found.values():
        times = [_seconds(own, what) for what in ("import", "check", "demo")]
        cold = f"{statistics.median(own.cold):.1f} s" if own.cold else ""
        lines.append(" | ".join([f"| {tool.name}", f"{own.megabytes:.0f}", *times, f"{cold} |"]))
    bounds = list(_bounds({name: own for name, (_, own) in found.items()}))
    if bounds:
        lines += ["", "| bound | found | at most | met |", "| --- | ---: | ---: | --- |"]
        lines += [
            f"| {what} | {value:.1f} | {most:.2g} | {'yes' if value <= most else '**no**'} |"
            for what, value, most in bounds
        ]
    return "\n".join(lines) + "\n"


def _seconds(own: Found, what: str) -> str:
    if what not in own.first:
        return ""
    then = statistics.median(each.seconds for each in own.then[what])
    return f"{own.first[what].seconds:.2f} s, then {then:.2f} s"


def _bounds(found: dict[str, Found]) -> Iterator[tuple[str, float, float]]:
    if not {"bare", "evenhand"} <= found.keys():
        return
    bare, ours = found["bare"], found["evenhand"]
    more = ours.megabytes - bare.megabytes
    yield "MB of `evenhand` beyond numpy, scipy and pandas", more, MEGABYTES
    cold = _ratio(ours.cold, bare.cold)
    yield "`uvx` cold to a verdict, by `uvx` with these three alone", cold, RATIO
    looks = [each.processor for each in found.get("all", ours).then["demo"]]
    alone = [each.processor for each in bare.then["import"]]
    what = "processor time of the demo, by that of the import of these three"
    yield what, _ratio(looks, alone), LOOK / QUIET


def _ratio(ours: Sequence[float], alone: Sequence[float]) -> float:
    return statistics.median(mine / other for mine, other in zip(ours, alone, strict=True))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="what the first minute costs")
    names = list(tools(ROOT / "evenhand.whl"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tools", nargs="+", choices=names, default=names)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = measured(given.tools, given.rounds, Path(folder))
    page = document(found, given.rounds)
    print(page)
    given.out.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
