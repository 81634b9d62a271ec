"""What other tools give on the same file, in what time, and whether the figures are equal.

    python -m benchmarks.peers [--units 250 10000] [--python PATH] [--out FILE]

The tools are installed from the package index into an environment of their own, unless --python
names an interpreter that has them; what it lacks is left out and said. Each tool is a whole
process: start, imports, reading the file, its statistics. All labels are synthetic.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import math
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.documents import library_versions

PEERS = ("judgekeeper", "irrCAC", "krippendorff", "statsmodels", "pandas")
SEED = 20260
RESAMPLES = 2000
SAME = 1e-4
"""irrCAC rounds to five digits."""

_READ = """
import csv, json, sys
import numpy as np
table = {}
for row in csv.DictReader(open(sys.argv[1])):
    table.setdefault(row["unit_id"], {})[row["rater_id"]] = row["label"]
codes = np.array([[["no", "yes"].index(by[r]) for r in ("h1", "h2", "h3", "m")]
                  for by in table.values()])
people = codes[:, :3]
"""

PROGRAMS = {
    "krippendorff": """
import krippendorff
rng = np.random.default_rng(1)
found = {"alpha": krippendorff.alpha(people.T, level_of_measurement="nominal")}
counts = np.stack([(people == k).sum(axis=1) for k in (0, 1)], axis=1)
drawn = [krippendorff.alpha(value_counts=counts[rng.integers(0, len(counts), len(counts))],
                            level_of_measurement="nominal") for _ in range(RESAMPLES)]
found["alpha_interval"] = np.percentile(drawn, [2.5, 97.5]).tolist()
print(json.dumps(found))
""",
    "irrCAC": """
import pandas
from irrCAC.raw import CAC
cac = CAC(pandas.DataFrame(people), digits=5)
found = {name: ask()["est"] for name, ask in
         (("fleiss", cac.fleiss), ("gwet", cac.gwet), ("alpha", cac.krippendorff))}
print(json.dumps({"fleiss": found["fleiss"]["coefficient_value"],
                  "gwet": found["gwet"]["coefficient_value"],
                  "alpha": found["alpha"]["coefficient_value"]}))
""",
    "statsmodels": """
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa, fleiss_kappa, to_table
table, _ = to_table(codes[:, [0, 3]], bins=2)
print(json.dumps({"fleiss": fleiss_kappa(aggregate_raters(people, n_cat=2)[0]),
                  "kappa": cohens_kappa(table).kappa}))
""",
    "alternative annotator test": """
from statsmodels.stats.multitest import multipletests
from scipy.stats import ttest_1samp
shares, p = [], []
for left in range(3):
    others = np.delete(people, left, axis=1)
    grader = (others == codes[:, [3]]).mean(axis=1)
    person = (others == people[:, [left]]).mean(axis=1)
    shares.append(float((grader >= person).mean()))
    difference = (person >= grader).astype(float) - (grader >= person) - 0.1
    p.append(ttest_1samp(difference, 0, alternative="less").pvalue)
print(json.dumps({"advantage": float(np.mean(shares)),
                  "winning": float(multipletests(p, method="fdr_by")[0].mean())}))
""",
}
"""What somebody writes today; the last is the procedure of Calderon, Reichart & Dror (2025), in our
own writing of it."""

GIVES = {
    "evenhand": f"all of these and the verdict, {RESAMPLES:,} resamples each",
    "krippendorff": f"alpha, with {RESAMPLES:,} resamples in a loop",
    "irrCAC": "Fleiss, AC1 and alpha, formula intervals",
    "statsmodels": "Fleiss' and Cohen's kappa, no interval for Fleiss",
    "alternative annotator test": "winning rate and advantage, no interval",
    "judgekeeper": "agreement with one person and kappa, with a report",
}

_LAUNCHER = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss,
                  done.returncode, done.stdout, done.stderr[-2000:]]))
"""


@dataclass(frozen=True)
class Run:
    """One tool on one file: wall seconds, seconds of processors, MB; and the figures it gave."""

    tool: str
    seconds: float
    processor: float
    megabytes: float
    figures: dict[str, Any]


def write_files(folder: Path, units: int) -> tuple[Path, Path]:
    """A ratings file of three people and a grader, and a table of the first person and the grader
    as judgekeeper reads it.
    """
    rng = np.random.default_rng(SEED)
    truth = rng.random(units) < 0.4
    kept = {rater: rng.random(units) < right for rater, right in _RIGHT.items()}
    labels = {r: np.where(np.where(kept[r], truth, ~truth), "yes", "no").tolist() for r in kept}
    long, wide = folder / f"{units}.csv", folder / f"{units}-wide.csv"
    with long.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["unit_id", "rater_id", "rater_kind", "label"])
        for rater, given in labels.items():
            kind = "model" if rater == "m" else "human"
            rows.writerows([f"u{n:06d}", rater, kind, label] for n, label in enumerate(given))
    with wide.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "input", "output", "label", "verdict"])
        for n, (human, model) in enumerate(zip(labels["h1"], labels["m"], strict=True)):
            rows.writerow([f"u{n:06d}", f"question {n}", f"answer {n}", human, model])
    return long, wide


_RIGHT = {"h1": 0.9, "h2": 0.88, "h3": 0.85, "m": 0.87}


def runs(units: int, peers: Path) -> Iterator[Run]:
    """evenhand first, then every tool that the interpreter `peers` has."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        long, wide = write_files(folder, units)
        ours = [
            sys.executable,
            "-P",
            "-m",
            "evenhand",
            "check",
            str(long),
            "--categories",
            "no,yes",
        ]
        yield _run("evenhand", [*ours, "--out", str(folder / "out")], folder / "out")
        for tool, program in PROGRAMS.items():
            whole = f"RESAMPLES = {RESAMPLES}\n{_READ}{program}"
            if _has(peers, {"alternative annotator test": "statsmodels"}.get(tool, tool)):
                yield _run(tool, [str(peers), "-c", whole, str(long)])
        if _has(peers, "judgekeeper"):
            out = folder / "judgekeeper"
            command = [str(peers), "-m", "judgekeeper", "check", str(wide), "--out", str(out)]
            yield _run("judgekeeper", command)


def _run(tool: str, command: Sequence[str], out: Path | None = None) -> Run:
    launched = [sys.executable, "-c", _LAUNCHER, *command]
    done = subprocess.run(launched, capture_output=True, text=True, check=True)
    seconds, processor, kilobytes, code, said, error = json.loads(done.stdout)
    # judgekeeper says by its code what it thinks of the grader.
    if code not in ((0, 1, 2) if tool == "judgekeeper" else (0,)):
        raise SystemExit(f"{tool} ended with {code}: {error}")
    figures = _ours(out) if out else json.loads(said) if tool in PROGRAMS else {}
    return Run(tool, seconds, processor, kilobytes / 1024, figures)


def _ours(out: Path) -> dict[str, float]:
    """The figures of results.csv that another tool has too."""
    names = {
        ("krippendorff_alpha_nominal", "humans", ""): "alpha",
        ("fleiss_kappa", "humans", ""): "fleiss",
        ("gwet_ac1", "humans", ""): "gwet",
        ("cohen_kappa", "h1", "m"): "kappa",
        ("alt_test_advantage", "humans", "m"): "advantage",
        ("alt_test_winning_rate", "humans", "m"): "winning",
    }
    with (out / "results.csv").open(newline="") as file:
        return {
            names[key]: float(row["estimate"])
            for row in csv.DictReader(file)
            if (key := (row["statistic"], row["rater_a"], row["rater_b"])) in names
            and row["subset"] == "all"
        }


def _has(python: Path, library: str) -> bool:
    found = [str(python), "-c", f"import {library}"]
    return subprocess.run(found, capture_output=True, check=False).returncode == 0


def differences(ours: Run, other: Run) -> list[str]:
    """The figures that both have and that are not equal."""
    return [
        f"{other.tool}: {name} is {value}, ours {ours.figures[name]}"
        for name, value in other.figures.items()
        if name in ours.figures
        and not math.isclose(value, ours.figures[name], rel_tol=0, abs_tol=SAME)
    ]


def document(found: dict[int, list[Run]], versions: str) -> str:
    lines = [
        "# Beside other tools",
        "",
        f"Written by `python -m benchmarks.peers`, {datetime.date.today()}: each tool is a whole",
        "process on the same synthetic file of three people and a grader, and gives what the",
        "column says. evenhand writes its report as well. Figures that two tools have were equal",
        "to four digits.",
        "",
        f"{library_versions()}; {versions}.",
        "",
        "| units | tool | gives | seconds | of evenhand's | processor, s | MB |",
        "| ---: | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for units, each in found.items():
        ours = each[0]
        lines += [
            f"| {units:,} | {run.tool} | {GIVES[run.tool]} | {run.seconds:.2f} "
            f"| {run.seconds / ours.seconds:.2f} | {run.processor:.2f} | {run.megabytes:.0f} |"
            for run in each
        ]
        there = {run.tool for run in each}
        if missing := [tool for tool in GIVES if tool not in there]:
            lines.append(f"| {units:,} | not installed: {', '.join(missing)} | | | | | |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, nargs="+", default=[250, 10_000])
    parser.add_argument("--python", type=Path, help="an interpreter that has the tools")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        python = asked.python or _installed(Path(folder))
        found = {units: list(runs(units, python)) for units in asked.units}
        versions = _versions(python)
    if wrong := [
        line for each in found.values() for o in each[1:] for line in differences(each[0], o)
    ]:
        raise SystemExit("\n".join(wrong))
    text = document(found, versions)
    if asked.out:
        asked.out.write_text(text, "utf-8")
    print(text)


def _installed(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS], check=True)
    return python


def _versions(python: Path) -> str:
    program = (
        "import sys\nfrom importlib.metadata import version, PackageNotFoundError\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(name, version(name))\n"
        "    except PackageNotFoundError: pass\n"
    )
    asked = [str(python), "-c", program, *PEERS]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return ", ".join(said.splitlines())


if __name__ == "__main__":
    main()
