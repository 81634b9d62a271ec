"""Which people's labels deserve a second look, and why. Nothing here changes or drops a label.

Each person is compared with the others on the same units, never with a key. Chance differences do
not count: a difference is flagged only if its whole 95% interval lies beyond the margin.

On a unit the others are everyone else who labelled it, each with the same weight. All measures are
ratios of sums over units, so that one bootstrap of clusters gives their intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.numbers import AGREEMENT
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.encoding import combine_readings, encode, one_version
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.types import Array, Codes, DataFrame, Integers, Mask
from evenhand.study.settings.analysis import SEED, QualitySettings
from evenhand.study.tables.ratings import validate_ratings


@dataclass(frozen=True)
class People:
    """First labels of all people on one rubric: arrays of (units, raters).

    The clusters of the `view` are over all rubrics alike. `turn` is the place of a label in its
    rater's own sequence, `seconds` the time it took (NaN: not known). `counted` (raters,) marks the
    raters who count among "the others".
    """

    rubric: str
    view: Coded
    turn: Array
    seconds: Array
    counted: Mask

    @cached_property
    def labels(self) -> Array:
        """Return the labels of the counted raters, one-hot: (units, raters, categories)."""
        return self.view.spread(self.view.codes) * self.counted[None, :, None]

    @cached_property
    def totals(self) -> Array:
        """Labels of the counted raters, (units, categories)."""
        return np.asarray(self.labels.sum(axis=1))

    @cached_property
    def weights(self) -> Array:
        """Agreement weights (categories, categories) of the kappa that decides."""
        view = self.view
        if view.is_number:
            return AGREEMENT
        return c.agreement_weights(view.q, "identity" if view.level == "nominal" else view.ordered)

    def against_others(self, rater: str) -> AgainstOthers | None:
        """Compare the rater with the others; None where they share no unit."""
        if rater not in self.view.raters:
            return None
        at, codes = self.view.raters.index(rater), self.view.codes
        others = self.totals - self.labels[:, at]
        shared = np.flatnonzero((codes[:, at] >= 0) & (others.sum(axis=1) > 0))
        if len(shared) == 0:
            return None
        shared = shared[np.argsort(self.turn[shared, at], kind="stable")]
        counts = others[shared]
        shares = counts / counts.sum(axis=1, keepdims=True)
        return AgainstOthers(
            self, codes[shared, at].astype(np.intp), shares, self.view.clusters[shared]
        )


@dataclass(frozen=True)
class AgainstOthers:
    """A rater's labels (n,), in their own sequence, and the others' shares (n, categories)."""

    people: People
    codes: Codes
    shares: Array
    clusters: Codes

    @property
    def sides(self) -> Array:
        """The labels, one-hot: (n, categories)."""
        return self.people.view.spread(self.codes)

    def kappa(self, resamples: Resamples) -> Array:
        """Kappa of the rater with the others, (rows,): weighted where the scale has an order.

        The table counts a unit once: its cells are the shares of the others' labels.
        """
        q = self.shares.shape[1]
        cells = self.sides[:, :, None] * self.shares[:, None, :]
        tables = resamples.sums(self.clusters, cells.reshape(len(cells), -1)).reshape(-1, q, q)
        return c.kappas(tables, self.people.weights)

    def leanings(self, resamples: Resamples) -> Array:
        """Return how much more often the rater uses each category than the others do on the same
        units: differences between two shares, (rows, categories).
        """
        q = self.shares.shape[1]
        more = self.sides - self.shares
        sums = resamples.sums(self.clusters, more, np.ones(len(more)))
        return ratio(sums[:, :q], sums[:, q:])

    def drift(self) -> Array:
        """Features (n, 4) whose sums give the drift: agreement in the second half of the rater's
        sequence and its units, the same of the first half.

        Agreement is the rater's with the others minus the others' with each other, so that harder
        units in one half do not look like a change of the rater.
        """
        weights = self.people.weights
        own = (self.sides @ weights * self.shares).sum(axis=1)
        usual = ((self.shares @ weights) * self.shares).sum(axis=1)
        late = np.arange(len(self.codes)) >= len(self.codes) / 2
        gain = own - usual
        return np.column_stack([gain * late, late, gain * ~late, ~late])


def usual_longest_run(compared: AgainstOthers, rng: np.random.Generator) -> float:
    """The 99% quantile of the longest run if each label were one of the others' on that unit."""
    limits = compared.shares.cumsum(axis=1)[:, :-1]
    drawn = rng.random((200, len(limits), 1))
    return float(np.quantile(longest_runs((drawn > limits).sum(axis=2)), 0.99))


def longest_runs(sequences: Codes) -> Integers:
    """The longest run of one label in every row of (sequences, n).

    >>> longest_runs(np.array([[0, 1, 1, 1, 0], [0, 1, 0, 1, 1]])).tolist()
    [3, 2]
    """
    running = np.ones(len(sequences), dtype=np.int64)
    longest = running.copy()
    for at in range(1, sequences.shape[1]):
        running = np.where(sequences[:, at] == sequences[:, at - 1], running + 1, 1)
        np.maximum(longest, running, out=longest)
    return longest


def people_on(
    ratings: DataFrame,
    scales: Mapping[str, Scale],
    units: DataFrame | None,
    cluster: str,
    rubric_hashes: Mapping[str, Collection[str]] | None,
    excluded: Collection[str],
) -> Iterator[People]:
    """The people of every rubric that has labels. `ratings` is a validated table."""
    human = ratings[ratings["rater_kind"] == "human"]
    rated = human["unit_id"].drop_duplicates().tolist()
    cluster_of = dict(zip(rated, UnitFacts(rated, units).clusters(cluster).codes, strict=True))
    for name, scale in scales.items():
        accepted = None if rubric_hashes is None else rubric_hashes.get(name)
        own, _ = one_version(human[human["rubric"] == name], name, accepted)
        if own.empty:
            continue
        readings = combine_readings(own, scale)
        matrix = encode(readings, scale)
        first = own.sort_values(["draw", "created_at"], kind="stable")
        first = first.drop_duplicates(["unit_id", "rater_id"])
        turn = first.sort_values("created_at", kind="stable").groupby("rater_id").cumcount()
        at_unit = {unit: at for at, unit in enumerate(readings.units)}
        at_rater = {rater: at for at, rater in enumerate(matrix.raters)}
        at = (first["unit_id"].map(at_unit), first["rater_id"].map(at_rater))
        turns, seconds = (np.full(matrix.codes.shape, np.nan) for _ in range(2))
        turns[at] = turn.reindex(first.index)
        seconds[at] = first["seconds"]
        clusters = np.array([cluster_of[unit] for unit in readings.units], dtype=np.intp)
        yield People(
            scale.name,
            replace(matrix.on_categories(), clusters=clusters),
            turns,
            seconds,
            np.array([rater not in excluded for rater in matrix.raters]),
        )


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
    ratings: DataFrame,
    scales: Mapping[str, Scale],
    *,
    rules: QualitySettings = USUAL,
    units: DataFrame | None = None,
    cluster: str = "pair",
    rubric_hashes: Mapping[str, Collection[str]] | None = None,
    attention: DataFrame | None = None,
    excluded: Collection[str] = (),
    resamples: int = 500,
    seed: int = SEED,
) -> DataFrame:
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
    clusters = 1 + max((int(each.view.clusters.max(initial=-1)) for each in people), default=-1)
    rng = np.random.default_rng(seed)
    shared = Resamples(np.ones(max(clusters, 1)), resamples, rng)
    human = ratings[ratings["rater_kind"] == "human"]
    raters = sorted(set(human["rater_id"]))
    kappas = {rater: _kappa(people, rater, shared) for rater in raters}
    checks: dict[str, tuple[int, int]] = {}  # passed, given
    if attention is not None and not attention.empty:
        passed = attention["passed"].astype(bool).groupby(attention["rater_id"])
        counts = zip(passed.groups, passed.sum(), passed.size(), strict=True)
        checks = {str(rater): (int(good), int(given)) for rater, good, given in counts}
    rows = []
    for rater in raters:
        row = _activity(human[human["rater_id"] == rater])
        row |= _pace(people, rater)
        compared = [each for one in people if (each := one.against_others(rater))]
        row |= _run(compared, rng)
        seen = [each.clusters for each in compared]
        n_clusters = len(np.unique(np.concatenate(seen))) if seen else 0
        row |= _columns("agreement", shared.interval(kappas[rater], n_clusters))
        peers = [kappas[other] for other in raters if other != rater and other not in excluded]
        known = [peer for peer in peers if not np.isnan(peer[0])]
        usual = np.median(known, axis=0) if known else np.full(len(shared), np.nan)
        row |= _columns("behind", shared.interval(kappas[rater] - usual, n_clusters))
        row |= _leaning(compared, shared)
        sums = np.zeros((shared.n_types, 4))
        for each in compared:
            sums += shared.cluster_sums(each.clusters, each.drift())
        late, n_late, early, n_early = shared.totals(sums).T
        drift = ratio(late, n_late) - ratio(early, n_early)
        row |= _columns("drift", shared.interval(drift, n_clusters))
        row["attention_passed"], row["attention_given"] = checks.get(rater, (0, 0))
        why = dict(reasons(row, rules))
        row |= {"rater_id": rater, "flagged": " ".join(why), "reason": "; ".join(why.values())}
        rows.append(row)
    return pd.DataFrame(rows, columns=list(QUALITY_COLUMNS))


def _activity(own: DataFrame) -> dict[str, Any]:
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
        medians = np.array([_median(column) for column in each.seconds.T])
        if rater in each.view.raters:
            at = each.view.raters.index(rater)
            others = each.counted.copy()
            others[at] = False
            usual = _median(medians[others])
            if usual > 0 and not np.isnan(medians[at]):
                shares.append(medians[at] / usual)
                units.append(int(each.view.labelled[:, at].sum()))
    return {"pace": float(np.average(shares, weights=units)) if sum(units) else np.nan}


def _run(compared: Sequence[AgainstOthers], rng: np.random.Generator) -> dict[str, Any]:
    """The longest run, on the rubric where it is the most unusual."""
    found = [
        (int(longest_runs(each.codes[None])[0]), usual_longest_run(each, rng)) for each in compared
    ]
    if not found:
        return {"longest_run": 0, "usual_run": np.nan}
    longest, usual = max(found, key=lambda run: (run[0] >= SHORTEST_RUN, run[0] / run[1]))
    return {"longest_run": longest, "usual_run": usual}


def _kappa(people: Sequence[People], rater: str, shared: Resamples) -> Array:
    """The rater's kappa with the others, mean over rubrics by units: (rows,)."""
    total, weight = np.zeros(len(shared)), np.zeros(len(shared))
    for each in people:
        if compared := each.against_others(rater):
            kappa = compared.kappa(shared)
            held = ~np.isnan(kappa)
            total[held] += kappa[held] * len(compared.codes)
            weight[held] += len(compared.codes)
    return ratio(total, weight)


def _leaning(compared: Sequence[AgainstOthers], shared: Resamples) -> dict[str, Any]:
    """The category that the rater prefers most surely, by the bound of its interval."""
    best, at = Interval(np.nan, np.nan, np.nan), ""
    for each in compared:
        view, n = each.people.view, len(np.unique(each.clusters))
        if view.is_number:
            continue
        for category, more in zip(view.categories, each.leanings(shared).T, strict=True):
            found = shared.interval(more, n)
            if not at or found.low > best.low or np.isnan(best.low):
                best, at = found, f"{each.people.rubric}: {category}".removeprefix(": ")
    return _columns("leaning", best) | {"leaning_at": at}


def _columns(name: str, found: Interval) -> dict[str, Any]:
    return {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}


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
        more = f"on {row['leaning']:.0%} of items more than the others do"
        yield "leaning", f"uses {row['leaning_at']} {more}"
    if row["drift_high"] < -rules.drift:
        yield "drift", f"agreement fell by {-row['drift']:.2f} in the second half"
