"""Our bootstrap beside the usual libraries in a loop: `python -m benchmarks.agreement`.

Both sides do the same work in one run: 2,000 resamples of a coefficient of labels in an array of
whole numbers, with the 95% interval. Ours are the public functions of `evenhand.analysis`. A loop
that would take long is measured on a few resamples and multiplied; the table says on how many. Then
whole commands, imports and reading included.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.commands import SEED, Command, Q, commands, labels
from benchmarks.documents import RESULTS, library_versions
from evenhand.analysis import Agreement, Bootstrap, cohen_kappa, fleiss_kappa, krippendorff_alpha

OUT = RESULTS / "performance.md"
CATEGORIES = range(Q)
LOOP_SECONDS = 10.0
"""A loop is broken off after this long and multiplied up, but never before three resamples."""
FEWEST = 3

OnResample = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Race:
    """One row of the first table: a loop and ours on the same labels.

    `loop` computes the coefficient on the units in a resample; `target` is how many times faster
    ours has to be, or None where there is only something to see.
    """

    what: str
    library: str
    size: str
    loop: OnResample | None
    ours: Callable[[], object]
    clusters: np.ndarray | None
    units: int
    target: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Result:
    """What a race took: seconds, the loop's for all resamples although it ran `measured`."""

    race: Race
    loop: float | None
    measured: int
    ours: float

    @property
    def ratio(self) -> float | None:
        """How many times faster ours is."""
        return None if self.loop is None else self.loop / self.ours

    @property
    def met(self) -> str:
        """Whether the bound holds."""
        race = self.race
        if race.limit is not None:
            return "yes" if self.ours <= race.limit else "**no**"
        if race.target is None or self.ratio is None:
            return ""
        return "yes" if self.ratio >= race.target else "**no**"


def races(bootstrap: Bootstrap, scale: float = 1.0) -> Iterator[Race]:
    """Every race, one at a time; `scale` shrinks the sizes for a quick look."""

    def size(units: int) -> int:
        return max(60, round(units * scale))

    # A million labels: half a million units by two raters, or 200,000 by five.
    for units, raters, targets in (
        (250, 3, (200.0, 20.0)),
        (10_000, 5, (None, 300.0)),
        (1_000_000, 5, (5000.0, 5000.0)),
    ):
        million = units == 1_000_000
        name = "1,000,000 labels" if million else f"{units:,} x {raters}"
        pair = labels(size(units // 2 if million else units), 2)
        group = labels(size(units // raters if million else units), raters)
        yield Race(
            "Cohen kappa of two raters",
            "scikit-learn",
            name,
            _kappa_loop(pair),
            partial(_kappa, pair, bootstrap),
            None,
            len(pair),
            targets[0],
        )
        yield Race(
            "Krippendorff alpha, ordinal",
            "krippendorff",
            name,
            _alpha_loop(group),
            partial(_alpha, group, bootstrap),
            None,
            len(group),
            targets[1],
        )
        yield Race(
            "Fleiss kappa",
            "statsmodels",
            name,
            _fleiss_loop(group),
            partial(fleiss_kappa, group, categories=CATEGORIES, bootstrap=bootstrap),
            None,
            len(group),
        )
    yield from _cluster_races(bootstrap, size(250), size(66_666))


def _cluster_races(bootstrap: Bootstrap, pairs: int, clusters: int) -> Iterator[Race]:
    few, of_pair = labels(pairs * 4, 3), np.repeat(np.arange(pairs), 4)
    where = "250 pairs x 4 subjects, clusters"
    yield Race(
        "Cohen kappa of two raters",
        "scikit-learn",
        where,
        _kappa_loop(few[:, :2]),
        partial(_kappa, few, bootstrap, of_pair),
        of_pair,
        len(few),
        100.0,
    )
    yield Race(
        "Krippendorff alpha, ordinal",
        "krippendorff",
        where,
        _alpha_loop(few),
        partial(_alpha, few, bootstrap, of_pair),
        of_pair,
        len(few),
    )
    many = labels(clusters * 3, 5)
    of_cluster = np.repeat(np.arange(clusters), 3)
    where = "1,000,000 labels, 66,666 clusters"
    yield Race(
        "Cohen kappa of two raters",
        "",
        where,
        None,
        partial(_kappa, many, bootstrap, of_cluster),
        of_cluster,
        len(many),
        limit=10.0,
    )
    yield Race(
        "Krippendorff alpha, ordinal",
        "",
        where,
        None,
        partial(_alpha, many, bootstrap, of_cluster),
        of_cluster,
        len(many),
        limit=10.0,
    )


def _kappa(
    codes: np.ndarray, bootstrap: Bootstrap, clusters: np.ndarray | None = None
) -> Agreement:
    first, second = codes[:, 0], codes[:, 1]
    return cohen_kappa(first, second, categories=CATEGORIES, clusters=clusters, bootstrap=bootstrap)


def _alpha(
    codes: np.ndarray, bootstrap: Bootstrap, clusters: np.ndarray | None = None
) -> Agreement:
    return krippendorff_alpha(
        codes, categories=CATEGORIES, level="ordinal", clusters=clusters, bootstrap=bootstrap
    )


def _kappa_loop(codes: np.ndarray) -> OnResample:
    from sklearn.metrics import cohen_kappa_score

    first, second, every = codes[:, 0], codes[:, 1], np.arange(Q)
    return lambda units: cohen_kappa_score(first[units], second[units], labels=every)


def _alpha_loop(codes: np.ndarray) -> OnResample:
    import krippendorff

    # Counts of the values are the fastest thing that the library takes.
    counts, every = _counts(codes), np.arange(Q)
    return lambda units: krippendorff.alpha(
        value_counts=counts[units], value_domain=every, level_of_measurement="ordinal"
    )


def _fleiss_loop(codes: np.ndarray) -> OnResample:
    from statsmodels.stats.inter_rater import fleiss_kappa

    counts = _counts(codes)
    return lambda units: fleiss_kappa(counts[units])


def _counts(codes: np.ndarray) -> np.ndarray:
    return np.stack([(codes == code).sum(axis=1) for code in range(Q)], axis=1)


def run(race: Race, resamples: int) -> Result:
    """Time both sides."""
    ours = _best(race.ours)
    if race.loop is None:
        return Result(race, None, 0, ours)
    rng = np.random.default_rng(SEED)
    members: list[np.ndarray] = []
    if race.clusters is not None:
        members = np.split(np.arange(race.units), np.flatnonzero(np.diff(race.clusters)) + 1)
    race.loop(np.arange(race.units))
    values: list[float] = []
    start = time.perf_counter()
    while len(values) < resamples:
        if members:
            drawn = rng.integers(0, len(members), len(members))
            units = np.concatenate([members[cluster] for cluster in drawn])
        else:
            units = rng.integers(0, race.units, race.units)
        values.append(race.loop(units))
        if len(values) >= FEWEST and time.perf_counter() - start > LOOP_SECONDS:
            break
    np.quantile(values, [0.025, 0.975])
    each = (time.perf_counter() - start) / len(values)
    return Result(race, each * resamples, len(values), ours)


def _best(work: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the best run: what disturbs only ever adds."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def document(results: Sequence[Result], timed: Sequence[Command], resamples: int) -> str:
    """The page about all this."""
    versions = library_versions("pandas", "scikit-learn", "krippendorff", "statsmodels")
    short = [result for result in results if "no" in result.met]
    missed = sum(not command.met for command in timed) + len(short)
    return "\n".join(
        [
            "# Performance",
            "",
            f"Written by `python -m benchmarks.agreement`, {datetime.now(UTC).date().isoformat()}, "
            f"{os.cpu_count()} processors, {versions}.",
            "",
            f"{resamples:,} resamples with a 95% percentile interval, on synthetic labels in an "
            f"array of whole numbers, {Q} categories. Ours are the public functions of "
            "`evenhand.analysis`. The loop calls the library on every resample; where that is slow "
            "it was measured on as many resamples as the column says and multiplied. "
            "Ours is the best of five. Both run in one process, one thread to linear algebra. "
            "Without clusters units are drawn, with clusters whole clusters: the method is the "
            "multinomial bootstrap throughout. Ratios carry over to other machines, seconds do "
            "not.",
            "",
            "Every bound is met."
            if not missed
            else f"Bounds that are missed, marked **no**: {missed}.",
            "",
            "| coefficient | labels | loop over | loop, s | measured on | ours, s | ratio | bound |"
            " met |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(result) for result in results),
            "",
            "Whole commands, imports and reading the CSV included (median wall time, largest "
            "resident memory). Stage by stage: [what a user waits for](performance-instant.md).",
            "",
            "| command | s | GB | bound | met |",
            "| --- | --- | --- | --- | --- |",
            *(
                f"| {each.what} | {each.seconds:.2f} | {each.gigabytes:.2f} | {each.limit} | "
                f"{'yes' if each.met else '**no**'} |"
                for each in timed
            ),
            "",
        ]
    )


def _line(result: Result) -> str:
    race = result.race
    bound = "" if race.target is None else f"{race.target:,.0f}x"
    if race.limit is not None:
        bound = f"{race.limit:g} s"
    loop = "" if result.loop is None else f"{result.loop:.3g}"
    measured = f"{result.measured:,}" if result.measured else ""
    ratio = "" if result.ratio is None else f"{result.ratio:,.0f}x"
    return (
        f"| {race.what} | {race.size} | {race.library} | {loop} | {measured} | "
        f"{result.ours:.3g} | {ratio} | {bound} | {result.met} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Race, print the page and write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--scale", type=float, default=1.0, help="shrink every size by this")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each command")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args(arguments)
    with threadpool_limits(limits=1, user_api="blas"):
        bootstrap = Bootstrap(resamples=asked.resamples, seed=SEED)
        results = [run(race, asked.resamples) for race in races(bootstrap, asked.scale)]
    timed = list(commands(asked.repeats, asked.scale))
    page = document(results, timed, asked.resamples)
    asked.out.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
