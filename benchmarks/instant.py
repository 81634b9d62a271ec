"""What a user waits for, beside loading pandas and scipy: `python -m benchmarks.instant`.

Each command is a process of its own, timed from start to exit in rounds: once each, with
`python -c "import pandas, scipy.stats"` among them, so that a machine that is busy for a while is
busy for all of them. A ratio is of one round, and the page has their medians.

With `--before PYTHON`, the Python of an environment in which a checkout of an earlier version is on
the path, its `benchmarks` too, what takes long is timed by that version in the same rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.commands import write_ratings
from benchmarks.documents import RESULTS, library_versions
from benchmarks.report import Case, build, cases

OUT = RESULTS / "performance-instant.md"
BASE = ["-c", "import pandas, scipy.stats"]
NOISE = 1.05
"""A verb is no slower than another if it takes no more than this many times as long."""
SCALE = ["--level", "ordinal", "--categories", "1,2,3,4,5"]
STAGES = (
    ("reading the file", "evenhand.reporting.load", "rows_of_file"),
    ("validating the table", "evenhand.analysis.all_rubrics", "validate_ratings"),
    ("labels as arrays", "evenhand.analysis.labels.encoding", "combine_readings"),
    ("labels as arrays", "evenhand.analysis.labels.encoding", "encode"),
    ("drawing resamples", "evenhand.analysis.all_rubrics", "_resampled_patterns"),
    ("all other statistics", "evenhand.analysis.all_rubrics", "add_rows"),
    ("the bias audit", "evenhand.analysis.bias.audit", "add_bias_rows"),
    ("verdicts", "evenhand.analysis.all_rubrics", "judge_graders"),
    ("other libraries' estimates", "evenhand.analysis.verification", "library_values"),
    ("waking the drawing library, and figures", "evenhand.analysis.report.charts", "inline_svg"),
    ("writing files", "evenhand.analysis.report.files", "write_report"),
    ("printing", "evenhand.cli.reports", "print_lines"),
)
"""Where the time goes: what is done, and the function that does it. Time in one within another is
the inner one's."""
_LOADED = (
    ("loading pandas", ("pandas",)),
    ("loading scipy", ("scipy.special",)),
    ("loading pydantic and rich", ("pydantic", "rich.console", "rich.table")),
    ("loading evenhand", tuple(dict.fromkeys(module for _, module, _ in STAGES))),
)
_PROFILER = """
import importlib, json, sys, time
loaded, stages, words = json.loads(sys.argv[1])
begun, spent, inner = time.perf_counter(), {}, [0.0]

def counted(what, since, within=0.0):
    spent[what] = spent.get(what, 0.0) + time.perf_counter() - since - within

def timed(what, module, name):
    function = getattr(module, name)
    def run(*args, **options):
        since = time.perf_counter()
        inner.append(0.0)
        try:
            return function(*args, **options)
        finally:
            counted(what, since, inner.pop())
            inner[-1] += time.perf_counter() - since
    setattr(module, name, run)

from evenhand.__main__ import start
for what, names in loaded:
    since = time.perf_counter()
    for name in names:
        importlib.import_module(name)
    counted(what, since)
for what, module, name in stages:
    timed(what, importlib.import_module(module), name)
sys.argv = ["evenhand", *words]
code = start()
spent["everything else"] = time.perf_counter() - begun - sum(spent.values())
print(json.dumps(spent), file=sys.stderr)
raise SystemExit(code)
"""
_BUILD = """
import sys
from dataclasses import replace
from pathlib import Path
from benchmarks.report import build, cases
build(Path(sys.argv[1]), replace(cases()[0], pairs=int(sys.argv[2])))
"""


@dataclass
class Command:
    """A command, its times (seconds, one a round), and how many times `beside` it may take."""

    what: str
    python: str
    words: list[str]
    beside: str = "base"
    most: float | None = None
    seconds: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Once, from start to exit."""
        since = time.perf_counter()
        subprocess.run([self.python, *self.words], stdout=-3, stderr=-3, check=True)
        self.seconds.append(time.perf_counter() - since)


def _evenhand(*words: object) -> list[str]:
    return ["-P", "-m", "evenhand", *map(str, words)]


def quick(home: Path, scale: float) -> dict[str, Command]:
    """What should be there at once."""
    few, many, study = home / "few.csv", home / "many.csv", home / "study"
    write_unclustered(few, max(60, round(250 * scale)))
    write_unclustered(many, max(90, round(10_000 * scale)))
    rubric = next(name for name in cases()[1].rubrics)
    build(study, Case(max(20, round(60 * scale)), (rubric,), 5, 2, 0, 0))
    labels = home / "labels.csv"
    subprocess.run(
        [sys.executable, *_evenhand("export", study, "--out", labels)], stdout=-3, check=True
    )
    rule = ["--grader", "r4", "--require", "cohen_kappa.low > -1"]
    given = (
        ("base", 'python -c "import pandas, scipy.stats"', BASE, "base", None),
        ("help", "`evenhand --help`", _evenhand("--help"), "base", 0.1),
        ("check", "`check`, 250 x 5, printed", _evenhand("check", few, *SCALE), "base", 1.0),
        (
            "files",
            "`check`, 250 x 5, with all files",
            _evenhand("check", few, *SCALE, "--out", home / "few"),
            "base",
            1.8,
        ),
        (
            "many",
            "`check`, 10,000 x 5, with all files",
            _evenhand("check", many, *SCALE, "--out", home / "many"),
            "base",
            2.5,
        ),
        ("select", "`select`, 250 x 5", _evenhand("select", few, *SCALE), "check", NOISE),
        ("gate", "`gate`, 250 x 5", _evenhand("gate", few, *SCALE, *rule), "check", NOISE),
        ("labels", "`check`, the labels of a study", _evenhand("check", labels), "base", None),
        ("calibrate", "`calibrate`, that study", _evenhand("calibrate", study), "labels", NOISE),
    )
    return {
        key: Command(what, sys.executable, words, beside, most)
        for key, what, words, beside, most in given
    }


def long(home: Path, scale: float, before: str) -> dict[str, Command]:
    """What takes longer, by this version and the one before."""
    million, large = home / "million.csv", home / "large"
    write_ratings(million, max(60, round(200_000 * scale)), 5)
    case = replace(cases()[0], pairs=max(10, round(250 * scale)))
    build(large, case)
    check = _evenhand("check", million, *SCALE, "--affirmative", "4,5")
    size = f"{case.pairs} pairs x 5 x {len(case.rubrics)} rubrics x {case.humans} x {case.graders}"
    names = {
        "million": "`check`, a million labels in 66,667 clusters",
        "large": f"`report`, {size}",
    }
    found = {
        "million": Command(names["million"], sys.executable, check),
        "large": Command(names["large"], sys.executable, _evenhand("report", large)),
    }
    if before:
        own = home / "large-before"
        subprocess.run([before, "-c", _BUILD, str(own), str(case.pairs)], check=True, cwd=home)
        words = {"million": check, "large": _evenhand("report", own)}
        for key, most in (("million", 1 / 3), ("large", 1 / 2)):
            found[f"{key}, before"] = Command(names[key], before, words[key])
            found[key] = replace(found[key], beside=f"{key}, before", most=most)
    return found


def write_unclustered(path: Path, units: int) -> None:
    """`write_ratings` with every unit its own cluster."""
    write_ratings(path, units, 5)
    lines = [line.split(",") for line in path.read_text("utf-8").splitlines()]
    path.write_text("".join(f"{','.join([u, *rest])}\n" for u, _, *rest in lines), "utf-8")


def stages(command: Command) -> dict[str, float]:
    """Where the time of a command goes, in seconds (see `STAGES`)."""
    asked = json.dumps([_LOADED, STAGES, command.words[3:]])
    done = subprocess.run(
        [command.python, "-P", "-c", _PROFILER, asked], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stderr.splitlines()[-1])
    return found


def document(timed: dict[str, Command], spent: dict[str, dict[str, float]], rounds: int) -> str:
    """The page about all this."""
    base = statistics.median(timed["base"].seconds)
    versions = library_versions("pandas", "scikit-learn", "krippendorff", "statsmodels")
    missed = sum(not met for *_, met in _ratios(timed))
    return "\n".join(
        [
            "# What a user waits for",
            "",
            f"Written by `python -m benchmarks.instant`, {datetime.now(UTC).date().isoformat()}, "
            f"{os.cpu_count()} processors, {versions}.",
            "",
            "Each command is a process of its own, timed from start to exit. A ratio is to the "
            f"command beside it in the same round, the median of {rounds} rounds, half as many for "
            f'what takes longest. `python -c "import pandas, scipy.stats"` took {base:.2f} s. All '
            "data are synthetic; five raters, one of them a grader. Ratios carry over to other "
            "machines, seconds do not.",
            "",
            f"Load of the machine in the last minute: {os.getloadavg()[0]:.1f}. "
            + ("Every bound is met." if not missed else f"Bounds that are missed: {missed}."),
            "",
            "| command | s | beside | ratio | at most | met |",
            "| --- | --- | --- | --- | --- | --- |",
            *(_line(*found) for found in _ratios(timed)),
            "",
            "## Where the time goes",
            "",
            "Seconds of one run each, in the process that the user waits for.",
            "",
            *_stage_table(timed, spent),
            "",
        ]
    )


_Ratio = tuple[Command, Command, float, bool]


def _ratios(timed: dict[str, Command]) -> Iterator[_Ratio]:
    """Each command, the one beside it, the ratio, and whether that is within bounds."""
    for key, command in timed.items():
        if key == "base" or key.endswith("before"):
            continue
        beside = timed[command.beside]
        pairs = zip(command.seconds, beside.seconds, strict=False)
        ratio = statistics.median(own / other for own, other in pairs)
        yield command, beside, ratio, command.most is None or ratio <= command.most


def _line(command: Command, beside: Command, ratio: float, met: bool) -> str:
    whose = "0.1.0" if beside.what == command.what else beside.what
    bound = "" if command.most is None else f"{command.most:.2f}"
    said = "" if command.most is None else "yes" if met else "**no**"
    seconds = statistics.median(command.seconds)
    return f"| {command.what} | {seconds:.2f} | {whose} | {ratio:.2f} | {bound} | {said} |"


def _stage_table(timed: dict[str, Command], spent: dict[str, dict[str, float]]) -> Iterator[str]:
    yield f"| stage | {' | '.join(timed[key].what for key in spent)} |"
    yield f"| --- |{' --- |' * len(spent)}"
    known = [what for what, _ in _LOADED] + [what for what, *_ in STAGES] + ["everything else"]
    for what in dict.fromkeys(known):
        cells = (f"{own[what]:.2f}" if what in own else "" for own in spent.values())
        yield f"| {what} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Time everything, print the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", default="", help="the Python of an earlier version")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="shrink every size by this")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(arguments)
    # What Python compiled for the first run is kept for the next, as a user's Python does.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        timed = quick(home, asked.scale)
        timed["files"].run()  # so that all is compiled
        timed["files"].seconds.clear()
        for _ in range(asked.rounds):
            for command in timed.values():
                command.run()
        slow = long(home, asked.scale, asked.before)
        for _ in range(max(1, asked.rounds // 2)):
            for command in slow.values():
                command.run()
        timed |= slow
        spent = {key: stages(timed[key]) for key in ("check", "files", "many", "million")}
    page = document(timed, spent, asked.rounds)
    asked.out.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
