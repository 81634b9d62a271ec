"""Statistics of single raters: agreement with the other people, time per label, cost and quality.

`rater_quality` flags people whose labels should be checked, with the reason; it changes no label.
Each person is compared with the others who labelled the same units, all with the same weight,
without gold labels. Measures are ratios of sums over units, so that one bootstrap of clusters gives
their intervals: row 0 of arrays (rows, ...) is the estimate, the other rows are the resamples.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from evenhand.analysis.agreement import coefficients
from evenhand.analysis.agreement.pairs import MAX_LISTED_RATERS, measurement_of
from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Interval, Z
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.encoding import combine_readings, encode, one_version
from evenhand.analysis.labels.matrix import Coded, LabelMatrix, UnitFacts
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.statistics import Note, Remark, join_notes
from evenhand.analysis.types import Array, Codes, DataFrame, Integers, Mask
from evenhand.analysis.writer import RatedView, RubricView
from evenhand.study.settings.analysis import SEED, QualitySettings
from evenhand.study.tables.ratings import validate_ratings

IDLE_SECONDS = 900.0
"""Longest time of a label that counts, as longer ones include a pause (a note has their number)."""
COST, MODELS, PRICE = "cost_usd", "models_answered", "price_per_1000_units"
"""Statistics of graders; cost and price are in US dollars."""


def add_rater_rows(view: RatedView) -> None:
    """Add `rater_agreement` of every human, and `rater_seconds_median` of every rater with times.
    Add nothing if there are too many raters to list.

    Agreement is the share of equal labels among pairs of labels, the rater's and another human's on
    one unit; for numbers, it is 1 minus their mean distance as a share of the scale.
    """
    import pandas as pd

    labels, ratings = view.labels, view.ratings
    if len(labels.raters) > MAX_LISTED_RATERS:
        return
    if len(labels.humans) > 1:
        for human in labels.humans:
            labelled = np.flatnonzero(labels.codes[:, human] >= 0)
            agreement = _agreement_with_others(labels, human, labelled)
            _add_row(view, human, labelled, "rater_agreement", agreement)
    has_time = (ratings["created_at"] != "") | ratings["seconds"].notna()
    timed = ratings[has_time & (ratings["label"] != "")].sort_values("created_at", kind="stable")
    first = timed.drop_duplicates(["rater_id", "unit_id"])
    unit_index = pd.Index(view.readings.units).get_indexer(pd.Index(first["unit_id"]))
    for rater, name in enumerate(labels.raters):
        by_rater = (first["rater_id"] == name).to_numpy()
        labelled, seconds = unit_index[by_rater], first["seconds"].to_numpy(dtype=float)[by_rater]
        n_idle = int((seconds > IDLE_SECONDS).sum())
        is_counted = seconds <= IDLE_SECONDS
        if is_counted.any():
            note = f"left out, over {IDLE_SECONDS:g} s: {n_idle}" if n_idle else ""
            median = Interval.point(float(np.median(seconds[is_counted])))
            _add_row(view, rater, labelled[is_counted], "rater_seconds_median", median, note)


def _add_row(
    view: RatedView, rater: int, units: Codes, statistic: str, figure: Interval, note: Note = ""
) -> None:
    """Add a row on one rater, from its labels on the units at these indices."""
    labels = view.labels
    counts = (len(units), len(np.unique(labels.clusters[units])))
    if labels.weight is not None:
        note = join_notes(note, Remark("as_sampled"))
    view.add(statistic, figure, counts, a=labels.raters[rater], note=note)


def add_usage_rows(view: RubricView) -> None:
    """Add the cost of every grader, if the usage table has it, and the number of models that
    answered for it, if known. An unknown cost (of a model without a list price) is undefined, not
    0. `n_units` and `n_clusters` are the number of attempts.
    """
    usage = view.request.facts.usage
    if usage is None:
        return
    for record in usage[usage["rubric"] == view.rows.rubric].to_dict("records"):
        rater, attempts = str(record["rater_id"]), int(record["attempts"])
        if COST in record:
            view.add(COST, float(record[COST]), (attempts, attempts), b=rater, reason="not_known")
        if models := json.loads(record.get("models") or "{}"):  # JSON, {model: answers}
            view.add(MODELS, len(models), (attempts, attempts), b=rater)


def add_price_rows(view: RubricView) -> None:
    """Add `price_per_1000_units` of every grader whose price is known: rater_b is the grader."""
    labels = view.labels
    for model in labels.models:
        name, n_assigned = labels.raters[model], int(labels.assigned[:, model].sum())
        price = view.request.facts.prices.get((view.rows.rubric, name), np.nan)
        if not np.isnan(price):
            view.add(PRICE, price, (n_assigned, 0), b=name, note="US dollars, all attempts")


def _agreement_with_others(labels: LabelMatrix, rater: int, units: Codes) -> Interval:
    """Return the agreement of a rater's labels with other humans' labels of the same unit, over all
    pairs of labels. The variance of this ratio is by linearisation, between clusters (Cochran 1977,
    section 6.3; Kish & Frankel 1974).
    """
    others = [human for human in labels.humans if human != rater]
    codes, other_codes = labels.codes[units, rater][:, None], labels.codes[units][:, others]
    is_pair = (other_codes >= 0) & (codes >= 0)
    agreement = is_pair & (other_codes == codes)
    if labels.scale.is_number:
        values = np.asarray(labels.scale.values)
        distance = np.abs(values[codes] - values[other_codes]) / max(np.ptp(values), 1e-300)
        agreement = is_pair * (1.0 - distance)
    agreed, n_pairs = agreement.sum(axis=1).astype(float), is_pair.sum(axis=1).astype(float)
    total = n_pairs.sum()
    if total == 0:
        return Interval.undefined("no_pairable_units")
    share = float(agreed.sum() / total)
    _, cluster = np.unique(labels.clusters[units], return_inverse=True)
    residuals = np.bincount(cluster, weights=(agreed - share * n_pairs) / total)
    n = len(residuals)
    if n < MIN_CLUSTERS:
        return Interval.point(share, Remark("too_few_clusters"))
    half_width = Z * float(np.sqrt(n / (n - 1) * (residuals**2).sum()))
    return Interval(share, max(share - half_width, 0.0), min(share + half_width, 1.0))


# ---- Quality of people's labels ------------------------------------------------------------------
@dataclass(frozen=True)
class RubricLabels:
    """First labels of all people on one rubric.

    `view` has the labels as codes; its clusters have the same codes on all rubrics. `turn` (units,
    raters) is the position of a label in its rater's sequence, `seconds` (units, raters) its time
    (NaN if unknown). `counted` (raters,) is the mask of raters with whom others are compared.
    """

    rubric: str
    view: Coded
    turn: Array
    seconds: Array
    counted: Mask

    @cached_property
    def labels(self) -> Array:
        """Labels of the counted raters, one-hot: (units, raters, categories)."""
        return self.view.terms_of(self.view.codes) * self.counted[None, :, None]

    @cached_property
    def totals(self) -> Array:
        """Number of counted raters' labels, (units, categories)."""
        return np.asarray(self.labels.sum(axis=1))

    @cached_property
    def weights(self) -> Array:
        """Agreement weights (categories, categories) of the kappa that verdicts use."""
        return measurement_of(self.view).agreement_weights

    def against_others(self, rater: str) -> AgainstOthers | None:
        """Return the rater's labels and the others' labels of the same units; None without any."""
        if rater not in self.view.raters:
            return None
        column, codes = self.view.raters.index(rater), self.view.codes
        others = self.totals - self.labels[:, column]
        shared = np.flatnonzero((codes[:, column] >= 0) & (others.sum(axis=1) > 0))
        if len(shared) == 0:
            return None
        shared = shared[np.argsort(self.turn[shared, column], kind="stable")]
        shares = others[shared] / others[shared].sum(axis=1, keepdims=True)
        rater_codes = codes[shared, column].astype(np.intp)
        return AgainstOthers(self, rater_codes, shares, self.view.clusters[shared])


class AgainstOthers(NamedTuple):
    """A rater's labels on n units, in the order in which they were given: `codes` and `clusters`
    (n,), and `shares` of the others' labels on each unit (n, categories).
    """

    all_labels: RubricLabels
    codes: Codes
    shares: Array
    clusters: Codes

    @property
    def one_hot(self) -> Array:
        """Labels of the rater, one-hot: (n, categories)."""
        return self.all_labels.view.terms_of(self.codes)

    def kappa(self, resamples: Resamples) -> Array:
        """Return the kappa of the rater with the others, (rows,), weighted on an ordered scale. A
        unit counts once, divided over cells by the shares of the others' labels.
        """
        q = self.shares.shape[1]
        cells = self.one_hot[:, :, None] * self.shares[:, None, :]
        tables = resamples.sums(self.clusters, cells.reshape(len(cells), -1)).reshape(-1, q, q)
        return coefficients.kappas(tables, self.all_labels.weights)

    def leanings(self, resamples: Resamples) -> Array:
        """Return the rater's share of each category minus the others', (rows, categories)."""
        q = self.shares.shape[1]
        difference = self.one_hot - self.shares
        sums = resamples.sums(self.clusters, difference, np.ones(len(difference)))
        return ratio(sums[:, :q], sums[:, q:])

    def drift_features(self) -> Array:
        """Return features (n, 4) whose sums give the drift: relative agreement in the second half
        of the rater's sequence, the number of units in it, and the same of the first half.

        Relative agreement is the rater's agreement with the others minus their agreement with each
        other, so that harder units in one half do not look like a change of the rater.
        """
        weights = self.all_labels.weights
        with_others = (self.one_hot @ weights * self.shares).sum(axis=1)
        among_others = ((self.shares @ weights) * self.shares).sum(axis=1)
        late = np.arange(len(self.codes)) >= len(self.codes) / 2
        relative = with_others - among_others
        return np.column_stack([relative * late, late, relative * ~late, ~late])


def longest_runs(sequences: Codes) -> Integers:
    """Return the length of the longest run of one label in every row of (sequences, n).

    >>> longest_runs(np.array([[0, 1, 1, 1, 0], [0, 1, 0, 1, 1]])).tolist()
    [3, 2]
    """
    run = np.ones(len(sequences), dtype=np.int64)
    longest = run.copy()
    for column in range(1, sequences.shape[1]):
        run = np.where(sequences[:, column] == sequences[:, column - 1], run + 1, 1)
        np.maximum(longest, run, out=longest)
    return longest


def rubric_labels(
    ratings: DataFrame,
    scales: Mapping[str, Scale],
    units: DataFrame | None,
    cluster: str,
    rubric_hashes: Mapping[str, Collection[str]] | None,
    excluded: Collection[str],
) -> Iterator[RubricLabels]:
    """Yield people's labels of every rubric with some. `ratings` is a validated table, `cluster` is
    the column of `units` with the clusters. `rubric_hashes` are the accepted versions of each
    rubric, None for any. `excluded` raters are not counted among the others.
    """
    human = ratings[ratings["rater_kind"] == "human"]
    rated = human["unit_id"].drop_duplicates().tolist()
    cluster_of = dict(zip(rated, UnitFacts(rated, units).clusters(cluster).codes, strict=True))
    for name, scale in scales.items():
        accepted = None if rubric_hashes is None else rubric_hashes.get(name)
        labels, _ = one_version(human[human["rubric"] == name], name, accepted)
        if labels.empty:
            continue
        readings = combine_readings(labels, scale)
        matrix = encode(readings, scale)
        first = labels.sort_values(["draw", "created_at"], kind="stable")
        first = first.drop_duplicates(["unit_id", "rater_id"])
        turn = first.sort_values("created_at", kind="stable").groupby("rater_id").cumcount()
        row_of_unit = {unit: row for row, unit in enumerate(readings.units)}
        column_of_rater = {rater: column for column, rater in enumerate(matrix.raters)}
        cells = (first["unit_id"].map(row_of_unit), first["rater_id"].map(column_of_rater))
        turns, seconds = (np.full(matrix.codes.shape, np.nan) for _ in range(2))
        turns[cells] = turn.reindex(first.index)
        seconds[cells] = first["seconds"]
        clusters = np.array([cluster_of[unit] for unit in readings.units], dtype=np.intp)
        is_counted = np.array([rater not in excluded for rater in matrix.raters])
        view = replace(matrix.on_categories(), clusters=clusters)
        yield RubricLabels(scale.name, view, turns, seconds, is_counted)


DEFAULT_RULES = QualitySettings()
"""Default margins of the flags."""
QUALITY_COLUMNS = (
    "rater_id", "answers", "skipped", "median_seconds", "pace", "idle_minutes",
    "longest_run", "usual_run", "agreement", "agreement_low", "agreement_high",
    "behind", "behind_low", "behind_high", "leaning", "leaning_low", "leaning_high", "leaning_at",
    "drift", "drift_low", "drift_high", "attention_passed", "attention_given", "flagged", "reason",
)  # fmt: skip
_NEW_SESSION_MINUTES = 60.0
"""Pause that begins a new session, and is not idle time."""
_IDLE_FROM_MINUTES = 2.0
"""Shortest pause that is idle time."""
SHORTEST_RUN = 8
"""Shortest run of one label that can be flagged."""


def rater_quality(
    ratings: DataFrame,
    scales: Mapping[str, Scale],
    *,
    rules: QualitySettings = DEFAULT_RULES,
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
    - `idle_minutes`: time between answers within a session that was not spent on them.
    - `longest_run`: length of the longest run of one label on one rubric; `usual_run`: the 99%
      quantile of this length if every label were drawn from the others' on that unit.
    - `agreement`: kappa with the others (leave-one-out), quadratic weights on an ordered scale,
      mean over rubrics by units; `behind`: that minus the median of the others' kappas.
    - `leaning`: the person's share of a category (`leaning_at`) minus the others' on the same
      units, for the category with the highest lower bound.
    - `drift`: agreement in the second half of the person's sequence minus that in the first.
    - `attention_passed` of `attention_given`: from `attention`, a table with `rater_id, passed`.
    - `flagged`: space-separated names of flags; `reason`: the same in words.

    Intervals are from a bootstrap over clusters. `excluded` raters have a row, but do not count
    among "the others".

    >>> import pandas as pd
    >>> labels = {"ann": "yynn" * 10, "ben": "yynn" * 10, "cy": "nyny" * 10}
    >>> rows = [(who, f"u{n}", label) for who in labels for n, label in enumerate(labels[who])]
    >>> table = pd.DataFrame(rows, columns=["rater_id", "unit_id", "label"])
    >>> table = table.assign(rater_kind="human")
    >>> rater_quality(table, {"": Scale("", ("y", "n"))})[["rater_id", "flagged"]].values.tolist()
    [['ann', ''], ['ben', ''], ['cy', 'low_agreement']]
    """
    import pandas as pd

    ratings = validate_ratings(ratings, "ratings")
    rubrics = list(rubric_labels(ratings, scales, units, cluster, rubric_hashes, excluded))
    last_codes = [int(labels.view.clusters.max(initial=-1)) for labels in rubrics]
    rng = np.random.default_rng(seed)
    draws = Resamples(np.ones(1 + max([0, *last_codes])), resamples, rng)
    human = ratings[ratings["rater_kind"] == "human"]
    raters = sorted(set(human["rater_id"]))
    comparisons = {
        rater: list(filter(None, (labels.against_others(rater) for labels in rubrics)))
        for rater in raters
    }
    kappas = {rater: _mean_kappa(comparisons[rater], draws) for rater in raters}
    checks: dict[str, tuple[int, int]] = {}  # attention checks passed, and given
    if attention is not None and not attention.empty:
        passed = attention["passed"].astype(bool).groupby(attention["rater_id"])
        counts = zip(passed.groups, passed.sum(), passed.size(), strict=True)
        checks = {str(rater): (int(n_passed), int(n)) for rater, n_passed, n in counts}
    rows = []
    for rater in raters:
        compared = comparisons[rater]  # with the others, by rubric
        row = _activity_columns(human[human["rater_id"] == rater]) | _pace_columns(rubrics, rater)
        row |= _run_columns(compared, rng)
        n_clusters = len(set().union(*(comparison.clusters.tolist() for comparison in compared)))
        row |= _interval_columns("agreement", draws.interval(kappas[rater], n_clusters))
        peers = [kappas[other] for other in raters if other != rater and other not in excluded]
        defined = [peer for peer in peers if not np.isnan(peer[0])]  # peer[0]: the estimate
        peer_median = np.median(defined, axis=0) if defined else np.full(len(draws), np.nan)
        row |= _interval_columns("behind", draws.interval(kappas[rater] - peer_median, n_clusters))
        row |= _leaning_columns(compared, draws)
        row |= _interval_columns("drift", draws.interval(_drift(compared, draws), n_clusters))
        row["attention_passed"], row["attention_given"] = checks.get(rater, (0, 0))
        flags = dict(reasons(row, rules))
        row |= {"rater_id": rater, "flagged": " ".join(flags), "reason": "; ".join(flags.values())}
        rows.append(row)
    return pd.DataFrame(rows, columns=list(QUALITY_COLUMNS))


def _drift(compared: Sequence[AgainstOthers], resamples: Resamples) -> Array:
    """Return the change of relative agreement from the first half to the second, (rows,)."""
    sums = np.zeros((resamples.n_types, 4))  # (clusters, drift features)
    for comparison in compared:
        sums += resamples.sums_by_type(comparison.clusters, comparison.drift_features())
    late, n_late, early, n_early = resamples.to_rows(sums).T  # each (rows,)
    return ratio(late, n_late) - ratio(early, n_early)


def _activity_columns(ratings: DataFrame) -> dict[str, Any]:
    """Return the number of a person's answers and skips, and the working and idle minutes."""
    import pandas as pd

    ratings = ratings.sort_values("created_at", kind="stable")
    stamps = pd.to_datetime(ratings["created_at"], utc=True, format="ISO8601", errors="coerce")
    pauses = stamps.diff().dt.total_seconds() - ratings["seconds"].fillna(0)
    minutes = pauses.to_numpy(dtype=float) / 60
    is_idle = (minutes >= _IDLE_FROM_MINUTES) & (minutes < _NEW_SESSION_MINUTES)
    return {
        "answers": len(ratings),
        "skipped": int((ratings["label"] == "").sum()),
        "median_seconds": float(ratings["seconds"].median()),
        "idle_minutes": float(minutes[is_idle].sum()),
        "work_minutes": float(ratings["seconds"].sum()) / 60,  # no column; for the flag "idle"
    }


def _pace_columns(rubrics: Sequence[RubricLabels], rater: str) -> dict[str, Any]:
    """Return the rater's median time as a share of the others', mean over rubrics by units."""
    shares, units = [], []
    for rubric in rubrics:
        medians = np.array([_defined_median(column) for column in rubric.seconds.T])
        if rater in rubric.view.raters:
            column = rubric.view.raters.index(rater)
            others = rubric.counted & (np.arange(len(medians)) != column)
            others_median = _defined_median(medians[others])
            if others_median > 0 and not np.isnan(medians[column]):
                shares.append(medians[column] / others_median)
                units.append(int(rubric.view.labelled[:, column].sum()))
    return {"pace": float(np.average(shares, weights=units)) if sum(units) else np.nan}


def _run_columns(compared: Sequence[AgainstOthers], rng: np.random.Generator) -> dict[str, Any]:
    """Return the longest run, on the rubric where it is the most unusual, and the 99% quantile of
    longest runs if each label were drawn from the others' labels of that unit.
    """
    runs = []
    for comparison in compared:
        limits = comparison.shares.cumsum(axis=1)[:, :-1]
        # 200 sequences of labels: a random number above k of a unit's limits is label k.
        simulated = longest_runs((rng.random((200, len(limits), 1)) > limits).sum(axis=2))
        longest = int(longest_runs(comparison.codes[None])[0])
        runs.append((longest, float(np.quantile(simulated, 0.99))))
    # Runs long enough for a flag first, and of these the most unusual.
    runs.sort(key=lambda run: (run[0] < SHORTEST_RUN, -run[0] / run[1]))
    longest, usual = runs[0] if runs else (0, np.nan)
    return {"longest_run": longest, "usual_run": usual}


def _mean_kappa(compared: Sequence[AgainstOthers], resamples: Resamples) -> Array:
    """Return the rater's kappa with the others, (rows,), as a mean over rubrics by units."""
    total, weight = np.zeros((2, len(resamples)))
    for comparison in compared:
        kappa = comparison.kappa(resamples)
        defined = ~np.isnan(kappa)
        total[defined] += kappa[defined] * len(comparison.codes)
        weight[defined] += len(comparison.codes)
    return ratio(total, weight)


def _leaning_columns(compared: Sequence[AgainstOthers], resamples: Resamples) -> dict[str, Any]:
    """Return the leaning with the highest lower bound, and its category."""
    surest, surest_category = Interval(np.nan, np.nan, np.nan), ""  # none yet
    for comparison in compared:
        labels, n_clusters = comparison.all_labels, len(np.unique(comparison.clusters))
        if labels.view.is_number:
            continue
        leanings = comparison.leanings(resamples)
        for category, difference in zip(labels.view.categories, leanings.T, strict=True):
            leaning = resamples.interval(difference, n_clusters)
            if not surest_category or leaning.low > surest.low or np.isnan(surest.low):
                surest, surest_category = leaning, f"{labels.rubric}: {category}".removeprefix(": ")
    return _interval_columns("leaning", surest) | {"leaning_at": surest_category}


def _interval_columns(name: str, figure: Interval) -> dict[str, Any]:
    return {name: figure.estimate, f"{name}_low": figure.low, f"{name}_high": figure.high}


def _defined_median(values: Array) -> float:
    defined = values[~np.isnan(values)]
    return float(np.median(defined)) if len(defined) else np.nan


def reasons(row: Mapping[str, Any], rules: QualitySettings) -> Iterator[tuple[str, str]]:
    """Yield (flag, reason in words) for every flag that a row of `rater_quality` raises. A
    difference is flagged only if its whole interval lies beyond the margin.
    """
    if row["answers"] >= rules.min_answers:
        if row["pace"] < rules.fast:
            yield "fast", f"takes {row['pace']:.0%} of the others' time"
        minutes = row["idle_minutes"] + row["work_minutes"]
        if row["idle_minutes"] > rules.idle * minutes:
            yield "idle", f"{row['idle_minutes']:.0f} of {minutes:.0f} minutes without an answer"
        if row["longest_run"] >= max(SHORTEST_RUN, rules.run * row["usual_run"]):
            expected = f"up to {row['usual_run']:.0f} would be usual"
            yield "run", f"the same label {row['longest_run']} times in a row; {expected}"
        if row["behind_high"] < -rules.agreement:
            behind = f"{-row['behind']:.2f} behind what the others reach"
            yield "low_agreement", f"kappa with the others {row['agreement']:.2f}, {behind}"
        if row["leaning_low"] > rules.leaning:
            excess = f"on {row['leaning']:.0%} of items more than the others do"
            yield "leaning", f"uses {row['leaning_at']} {excess}"
        if row["drift_high"] < -rules.drift:
            yield "drift", f"agreement fell by {-row['drift']:.2f} in the second half"
    failed = row["attention_given"] - row["attention_passed"]
    if failed > rules.attention:
        yield "attention", f"failed {failed} of {row['attention_given']} attention checks"
