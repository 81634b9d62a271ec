"""Which people's labels deserve a second look, and why. Nothing here changes or drops a label.

Each person is compared with the others on the same units, never with a key. Chance differences do
not count: a difference is flagged only if its whole 95% interval lies beyond the margin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.raters.measures import (
    People,
    drift_of,
    longest_run,
    people_on,
    usual_longest_run,
)
from evenhand.analysis.types import Array
from evenhand.study.settings.analysis import SEED, QualitySettings
from evenhand.study.tables.ratings import validate_ratings

if TYPE_CHECKING:
    import pandas as pd

USUAL = QualitySettings()
QUALITY_COLUMNS = (
    "rater_id", "answers", "skipped", "median_seconds", "pace", "idle_minutes",
    "longest_run", "usual_run", "agreement", "agreement_low", "agreement_high",
    "behind", "behind_low", "behind_high", "leaning", "leaning_low", "leaning_high", "leaning_at",
    "drift", "drift_low", "drift_high", "attention_passed", "attention_given", "flagged", "reason",
)  # fmt: skip
_NEW_SESSION_MINUTES = 60.0
"""A longer pause begins a new session; it does not count as idle time."""
_IDLE_FROM_MINUTES = 2.0
SHORTEST_RUN = 8
"""A shorter run of one label says nothing, however rare it is."""


def rater_quality(
    ratings: pd.DataFrame,
    scales: Mapping[str, Scale],
    *,
    rules: QualitySettings = USUAL,
    units: pd.DataFrame | None = None,
    cluster: str = "pair",
    rubric_hashes: Mapping[str, Collection[str]] | None = None,
    attention: pd.DataFrame | None = None,
    excluded: Collection[str] = (),
    resamples: int = 500,
    seed: int = SEED,
) -> pd.DataFrame:
    """Return a table of one row (`QUALITY_COLUMNS`) for every person in the `ratings` table.

    - `pace`: the median time as a share of the others' median, mean over rubrics.
    - `idle_minutes`: time between answers that was not spent on them, within a session.
    - `longest_run`, `usual_run`: of one label on one rubric, and what 99% of sequences stay within
      in which every label is one of the others' on that unit.
    - `agreement`: kappa with the others (leave-one-out), quadratic weights where the scale has an
      order, mean over rubrics by units; `behind`: that minus the median of the others' own.
    - `leaning`: the largest difference in the use of a category (`leaning_at`) from the others on
      the same units.
    - `drift`: agreement in the second half of the person's sequence minus that in the first.
    - `attention_passed` of `attention_given`: from `attention`, a table with `rater_id, passed`.
    - `flagged`: space-separated names of flags; `reason`: the same in words.

    Every interval is a bootstrap over clusters. `excluded` raters are judged like everyone else,
    but do not count among "the others".

    >>> import pandas as pd
    >>> labels = {"ann": "yynn" * 10, "ben": "yynn" * 10, "cy": "nyny" * 10}
    >>> table = pd.DataFrame(
    ...     [
    ...         {"unit_id": f"u{n}", "rater_id": who, "rater_kind": "human", "label": label}
    ...         for who, given in labels.items()
    ...         for n, label in enumerate(given)
    ...     ]
    ... )
    >>> rater_quality(table, {"": Scale("", ("y", "n"))})[["rater_id", "flagged"]].values.tolist()
    [['ann', ''], ['ben', ''], ['cy', 'low_agreement']]
    """
    import pandas as pd

    ratings = validate_ratings(ratings, "ratings")
    people = list(people_on(ratings, scales, units, cluster, rubric_hashes, excluded))
    clusters = 1 + max((int(each.clusters.max(initial=-1)) for each in people), default=-1)
    rng = np.random.default_rng(seed)
    shared = Resamples(np.ones(max(clusters, 1)), resamples, rng)
    human = ratings[ratings["rater_kind"] == "human"]
    raters = sorted(set(human["rater_id"]))
    kappas = {rater: _kappa(people, rater, shared) for rater in raters}
    checks = _checks(attention)
    rows = []
    for rater in raters:
        row = _said(human[human["rater_id"] == rater])
        row |= _pace(people, rater)
        row |= _run(people, rater, rng)
        peers = [kappas[other] for other in raters if other != rater and other not in excluded]
        row |= _agreement(kappas[rater], peers, _n_clusters(people, rater), shared)
        row |= _leaning(people, rater, shared)
        row |= _drift(people, rater, shared)
        row["attention_passed"], row["attention_given"] = checks.get(rater, (0, 0))
        why = dict(reasons(row, rules))
        row |= {"rater_id": rater, "flagged": " ".join(why), "reason": "; ".join(why.values())}
        rows.append(row)
    return pd.DataFrame(rows, columns=list(QUALITY_COLUMNS))


def _said(own: pd.DataFrame) -> dict[str, Any]:
    """Count the person's answers and skips, and sum up their working and idle minutes."""
    import pandas as pd

    own = own.sort_values("created_at", kind="stable")
    stamps = pd.to_datetime(own["created_at"], utc=True, format="ISO8601", errors="coerce")
    pauses = stamps.diff().dt.total_seconds() - own["seconds"].fillna(0)
    minutes = pauses.to_numpy(dtype=float) / 60
    idle = (minutes >= _IDLE_FROM_MINUTES) & (minutes < _NEW_SESSION_MINUTES)
    return {
        "answers": len(own),
        "skipped": int((own["label"] == "").sum()),
        "median_seconds": float(own["seconds"].median()),
        "idle_minutes": float(minutes[idle].sum()),
        "work_minutes": float(own["seconds"].sum()) / 60,
    }


def _pace(people: Sequence[People], rater: str) -> dict[str, Any]:
    shares, units = [], []
    for each in people:
        medians = _medians(each.seconds)
        if rater in each.raters:
            at = each.raters.index(rater)
            others = each.counted.copy()
            others[at] = False
            usual = _median(medians[others])
            if usual > 0 and not np.isnan(medians[at]):
                shares.append(medians[at] / usual)
                units.append(int((each.codes[:, at] >= 0).sum()))
    return {"pace": float(np.average(shares, weights=units)) if sum(units) else np.nan}


def _run(people: Sequence[People], rater: str, rng: np.random.Generator) -> dict[str, Any]:
    """The longest run, on the rubric where it is the most unusual."""
    found = [
        (longest_run(beside.codes), usual_longest_run(beside, rng))
        for each in people
        if (beside := each.beside(rater))
    ]
    if not found:
        return {"longest_run": 0, "usual_run": np.nan}
    longest, usual = max(found, key=lambda run: (run[0] >= SHORTEST_RUN, run[0] / run[1]))
    return {"longest_run": longest, "usual_run": usual}


def _kappa(people: Sequence[People], rater: str, shared: Resamples) -> Array:
    """The rater's kappa with the others, mean over rubrics by units: (rows,)."""
    total, weight = np.zeros(len(shared)), np.zeros(len(shared))
    for each in people:
        if beside := each.beside(rater):
            kappa = beside.kappa(shared)
            held = ~np.isnan(kappa)
            total[held] += kappa[held] * len(beside.codes)
            weight[held] += len(beside.codes)
    return np.asarray(np.divide(total, weight, out=np.full(len(shared), np.nan), where=weight > 0))


def _agreement(
    kappa: Array, peers: Sequence[Array], n_clusters: int, shared: Resamples
) -> dict[str, Any]:
    known = [peer for peer in peers if not np.isnan(peer[0])]
    usual = np.median(known, axis=0) if known else np.full(len(kappa), np.nan)
    return _columns("agreement", shared.interval(kappa, n_clusters)) | _columns(
        "behind", shared.interval(kappa - usual, n_clusters)
    )


def _leaning(people: Sequence[People], rater: str, shared: Resamples) -> dict[str, Any]:
    """The category that the rater prefers most surely, by the bound of its interval."""
    best, at = Interval(np.nan, np.nan, np.nan), ""
    for each in people:
        if not each.scale.is_number and (beside := each.beside(rater)):
            more = beside.leanings(shared)
            n = len(np.unique(beside.clusters))
            for code, category in enumerate(each.scale.categories):
                found = shared.interval(more[:, code], n)
                if not at or found.low > best.low or np.isnan(best.low):
                    best, at = found, f"{each.scale.name}: {category}".removeprefix(": ")
    return _columns("leaning", best) | {"leaning_at": at}


def _drift(people: Sequence[People], rater: str, shared: Resamples) -> dict[str, Any]:
    sums = np.zeros((shared.n_types, 4))
    for each in people:
        if beside := each.beside(rater):
            sums += shared.cluster_sums(beside.clusters, beside.drift())
    return _columns(
        "drift", shared.interval(drift_of(shared.totals(sums)), _n_clusters(people, rater))
    )


def _n_clusters(people: Sequence[People], rater: str) -> int:
    found = [beside.clusters for each in people if (beside := each.beside(rater))]
    return len(np.unique(np.concatenate(found))) if found else 0


def _checks(attention: pd.DataFrame | None) -> dict[str, tuple[int, int]]:
    """(passed, given) of every rater."""
    if attention is None or attention.empty:
        return {}
    passed = attention["passed"].astype(bool).groupby(attention["rater_id"])
    return {
        str(rater): (int(total), int(given))
        for rater, total, given in zip(passed.groups, passed.sum(), passed.size(), strict=True)
    }


def _columns(name: str, found: Interval) -> dict[str, Any]:
    return {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}


def _medians(table: Array) -> Array:
    """The median of every column; NaN where it has no number."""
    return np.array([_median(column) for column in table.T])


def _median(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else np.nan


def reasons(row: Mapping[str, Any], rules: QualitySettings) -> Iterator[tuple[str, str]]:
    """Yield (flag, reason in words) for every flag that a row of `rater_quality` raises.

    A difference is flagged only if its whole interval lies beyond the margin.
    """
    if row["answers"] >= rules.min_answers:
        yield from _of_answers(row, rules)
    failed = row["attention_given"] - row["attention_passed"]
    if failed > rules.attention:
        yield "attention", f"failed {failed} of {row['attention_given']} attention checks"


def _of_answers(row: Mapping[str, Any], rules: QualitySettings) -> Iterator[tuple[str, str]]:
    if row["pace"] < rules.fast:
        yield "fast", f"takes {row['pace']:.0%} of the others' time"
    at_work = row["idle_minutes"] + row["work_minutes"]
    if row["idle_minutes"] > rules.idle * at_work:
        yield "idle", f"{row['idle_minutes']:.0f} of {at_work:.0f} minutes without an answer"
    if row["longest_run"] >= max(SHORTEST_RUN, rules.run * row["usual_run"]):
        usual = f"up to {row['usual_run']:.0f} would be usual"
        yield "run", f"the same label {row['longest_run']} times in a row; {usual}"
    if row["behind_high"] < -rules.agreement:
        behind = f"{-row['behind']:.2f} behind what the others reach"
        yield "low_agreement", f"kappa with the others {row['agreement']:.2f}, {behind}"
    if row["leaning_low"] > rules.leaning:
        more = f"on {row['leaning']:.0%} of units more than the others do"
        yield "leaning", f"uses {row['leaning_at']} {more}"
    if row["drift_high"] < -rules.drift:
        yield "drift", f"agreement fell by {-row['drift']:.2f} in the second half"
