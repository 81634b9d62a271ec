"""How ratings beyond one table fare: time and memory, and resampling in groups.

Writes results/scaling.md. All ratings are synthetic. Those of a unit stand as far apart as they
can: each file holds one rater's, of units in no order.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.documents import RESULTS, library_versions
from evenhand.analysis.all_rubrics import analyse_reduced
from evenhand.analysis.labels.encoding import Reduced, by_kind, reduce_ratings
from evenhand.analysis.labels.scale import Scale
from evenhand.reporting.at_scale import Reading, read_piece
from evenhand.study.tables.formats import pieces_of
from evenhand.study.tables.ratings import split_ratings

ROOT = Path(__file__).resolve().parent.parent
RATERS = {"ann": "human", "ben": "human", "cy": "human", "dee": "human", "gpt": "model"}
CATEGORIES = ("1", "2", "3", "4", "5")
UNITS_PER_CLUSTER = 4
_FILE_ROWS = 1_000_000
_OPTIONS = ["--categories", ",".join(CATEGORIES), "--level", "ordinal", "--affirmative", "4,5"]
_STEP = 0.5


@dataclass(frozen=True)
class Run:
    """One run of `check`: ratings, clusters, seconds on the clock and of the processors, and the
    most memory of all its processes."""

    ratings: int
    clusters: int
    seconds: float
    busy: float
    megabytes: float


@dataclass(frozen=True)
class Beside:
    """A statistic's intervals from groups beside those of all clusters, over so many rows: by how
    much they are wider on average, and how far widths are apart (root mean square); and how far
    those of two seeds are."""

    statistic: str
    rows: int
    wider: float
    apart: float
    seeds_apart: float


def write_ratings(folder: Path, ratings: int, file_rows: int = _FILE_ROWS) -> int:
    """Synthetic ratings as Parquet files of one rater each; how many clusters they are in."""
    units = ratings // len(RATERS)
    step = next(k for k in range(units // 3 * 2 | 1, 2 * units) if np.gcd(k, units) == 1)
    for number, (rater, kind) in enumerate(RATERS.items()):
        for start in range(0, units, file_rows):
            place = np.arange(start, min(start + file_rows, units))
            unit = place * step % units
            _write(folder / f"{rater}-{start:09d}.parquet", unit, number, rater, kind)
    return -(-units // UNITS_PER_CLUSTER)


def _write(file: Path, unit: np.ndarray, number: int, rater: str, kind: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    n, cluster = len(unit), unit // UNITS_PER_CLUSTER
    meant = np.floor(5.0 * (0.6 * _chance(cluster, 1) + 0.4 * _chance(unit, 2)))
    slips = _chance(unit, 10 + number) < (0.25 if kind == "human" else 0.3)
    said = np.where(slips, np.floor(5.0 * _chance(unit, 20 + number)), meant).astype(np.int8)
    names = {
        name: pc.binary_join_element_wise(letter, pa.array(ids).cast(pa.string()), "")
        for name, letter, ids in (("unit_id", "u", unit), ("cluster_id", "c", cluster))
    }
    same = {"rater_id": rater, "rater_kind": kind}
    words = {each: pa.array([text]).take(np.zeros(n, np.int64)) for each, text in same.items()}
    table = pa.table({**names, **words, "label": pa.array(CATEGORIES).take(said)})
    parquet.write_table(table, file, compression="zstd")


def _chance(ids: np.ndarray, what: int) -> np.ndarray:
    """A number from 0 to 1 that each id has, by `what` is asked of it."""
    mixed = ids.astype(np.uint64) + np.array([what * 0x9E3779B97F4A7C15 % 2**64], dtype=np.uint64)
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(factor)
    return (mixed >> np.uint64(11)) / float(2**53)


def measure(folder: Path, ratings: int, clusters: int) -> Run:
    """Run `evenhand check` on a folder."""
    words = [sys.executable, "-m", "evenhand", "check", str(folder), *_OPTIONS, "--engine", "dask"]
    start = time.perf_counter()
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        watched = _Watched(process)
        watched.start()
        if process.wait():
            raise SystemExit(f"{' '.join(words)} failed")
        watched.join()
    seconds = time.perf_counter() - start
    return Run(ratings, clusters, seconds, sum(watched.busy.values()), watched.most)


class _Watched(threading.Thread):
    """A process and those below it: the most memory that they hold together, in MB, where pages
    that they share count once; and each one's seconds at work."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__()
        self._process = process
        self.most = 0.0
        self.busy: dict[int, float] = {}

    def run(self) -> None:
        """Look every half second until it ends."""
        while self._process.poll() is None:
            family = list(_family(self._process.pid))
            self.most = max(self.most, sum(map(_held, family)))
            self.busy |= {pid: seconds for pid in family if (seconds := _busy(pid))}
            time.sleep(_STEP)


def _family(pid: int) -> Iterable[int]:
    yield pid
    try:
        threads = Path(f"/proc/{pid}/task").iterdir()
        children = [each for one in threads for each in (one / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield from _family(int(child))


def _held(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024.0


def _busy(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def reduced_in_memory(folder: Path) -> tuple[Reduced, Scale]:
    """The reduced table of a folder that is small enough to be held."""
    import pandas as pd

    reading = Reading("ratings", {}, "cluster_id")
    tables = [
        table.to_pandas()
        for piece in pieces_of(str(folder), reading.columns, {})
        for table in read_piece(piece, reading)
    ]
    frame = pd.concat(tables, ignore_index=True).drop(columns="row").astype("str")
    ratings, units = split_ratings(frame, "ratings")
    scale = Scale("", CATEGORIES, "ordinal", frozenset({"4", "5"}))
    clusters = units.set_index("unit_id")["cluster_id"]
    return reduce_ratings(ratings, clusters, scale, by_kind(RATERS)), scale


def widths_beside(folder: Path) -> list[Beside]:
    """How wide intervals from 10,000 groups are beside those of all clusters, by statistic."""
    reduced, scale = reduced_in_memory(folder)
    whole, groups, again = (
        analyse_reduced({"": reduced}, {"": scale}, many=many, seed=seed).results
        for many, seed in ((10**9, 1), (0, 1), (10**9, 2))
    )
    resampled = groups["note"].str.contains("random groups") & (whole["high"] > whole["low"])
    apart = [
        ((each["high"] - each["low"]) / (whole["high"] - whole["low"]) - 1.0)[resampled]
        for each in (groups, again)
    ]
    return [
        Beside(
            str(name),
            len(rows),
            float(apart[0][rows].mean()),
            *(float(np.sqrt((each[rows] ** 2).mean())) for each in apart),
        )
        for name, rows in whole[resampled].groupby("statistic").groups.items()
    ]


SHOWN = (
    "observed_agreement",
    "cohen_kappa",
    "weighted_kappa_quadratic",
    "krippendorff_alpha_ordinal",
    "fleiss_kappa",
    "gwet_ac2",
    "human_ceiling_difference",
    "prevalence",
)


def document(runs: Sequence[Run], widths: Sequence[Beside]) -> str:
    """What was measured, as a page."""
    versions = library_versions("pandas", "pyarrow", "dask")
    lines = [
        "# Millions of ratings",
        "",
        f"Written by `python -m benchmarks.scale`, {datetime.date.today()}, {os.cpu_count()} "
        f"processors, {versions}.",
        "",
        "`evenhand check FOLDER --engine dask` on *synthetic* Parquet, five raters and five "
        "categories, four units a cluster. Each file holds one rater's labels, of units in no "
        "order. Memory is the most that all processes held together; a processor minute is one of "
        "one processor at work, and all of them busy for most of the time on the clock is a "
        "machine on which nothing else was at work.",
        "",
        "| ratings | clusters | minutes | processor minutes | memory, MB |",
        "| ---: | ---: | ---: | ---: | ---: |",
        *(
            f"| {run.ratings:,} | {run.clusters:,} | {run.seconds / 60:.1f} | "
            f"{run.busy / 60:.1f} | {run.megabytes:,.0f} |"
            for run in runs
        ),
        "",
        "Widths of intervals from 10,000 groups beside those of all clusters, on the same "
        "*synthetic* ratings (50,000 clusters, 2,000 resamples), over the rows of a statistic: the "
        "mean difference, its root mean square, and the root mean square between two seeds.",
        "",
        "| statistic | rows | mean | apart | two seeds apart |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {each.statistic} | {each.rows} | {each.wider:+.1%} | {each.apart:.1%} | "
            f"{each.seeds_apart:.1%} |"
            for each in widths
            if each.statistic in SHOWN
        ),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path, help="where the ratings are written (TMPDIR)")
    parser.add_argument("--out", type=Path, default=RESULTS / "scaling.md")
    asked = parser.parse_args(arguments)
    runs = []
    for ratings in asked.ratings:
        with tempfile.TemporaryDirectory(dir=asked.folder) as name:
            clusters = write_ratings(Path(name), ratings)
            runs.append(measure(Path(name), ratings, clusters))
            print(runs[-1], flush=True)
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        write_ratings(Path(name), 50_000 * UNITS_PER_CLUSTER * len(RATERS))
        widths = widths_beside(Path(name))
    page = document(runs, widths)
    print(page)
    asked.out.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
