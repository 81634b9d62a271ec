"""How raters work: time per label, and whether speed or agreement changes as they go on.

Times come from the ratings (`seconds`, `created_at`); a rater's session on a rubric is all of
their labels in the order in which they were given. Each row is about one rater, so its interval
is not bootstrapped with the others but taken from the rater's own labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.agreement.pairs import MAX_LISTED_RATERS
from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Interval, Z
from evenhand.analysis.labels.combine import Readings
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.notes import Note, Remark, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes

if TYPE_CHECKING:
    import pandas as pd


IDLE_SECONDS = 900.0
"""A label that took longer had a pause in it: its time is left out, and counted."""
PARTS = 5
"""Number of parts in which a session is drawn, of equally many labels."""
FEW_LABELS = 20


@dataclass(frozen=True)
class _Session:
    """A rater's labels in the order given: their rows of the matrix, and seconds (or NaN)."""

    rater: int
    rows: Codes
    seconds: Array
    idle: int
    ordered: bool


def add_rater_rows(
    rows: ResultRows, ratings: pd.DataFrame, readings: Readings, labels: LabelMatrix
) -> None:
    """Add `rater_agreement` of every human, `rater_seconds_median` of every rater with times; of
    humans whose labels are in a known order `rater_seconds_drift` and `rater_agreement_drift`, and
    by part of the session (at = 1, 2, ...) `rater_seconds_part` and `rater_agreement_part`. Add
    nothing if there are too many raters to list.

    `labels` are the readings, not folded. Agreement is the share of pairs of labels, the rater's
    and another human's on one unit, that are alike; of numbers one minus their mean distance as a
    share of the scale.
    """
    if len(labels.raters) > MAX_LISTED_RATERS:
        return
    if len(labels.humans) > 1:
        for human in labels.humans:
            own = np.flatnonzero(labels.codes[:, human] >= 0)
            whole = _LikeOthers.of(labels, human, own)
            _add(rows, labels, human, own, {"rater_agreement": whole.share(np.arange(len(own)))})
    for session in _sessions(ratings, readings, labels):
        timed = session.seconds[~np.isnan(session.seconds)]
        if len(timed):
            pauses = f"left out, over {IDLE_SECONDS:g} s: {session.idle}"
            median = {"rater_seconds_median": median_interval(timed)}
            _add(rows, labels, session.rater, session.rows, median, pauses if session.idle else "")
        is_human = labels.kinds[session.rater] == "human"
        if is_human and session.ordered and len(session.rows) >= FEW_LABELS:
            _add_drift(rows, labels, session)


def seconds_per_label(ratings: pd.DataFrame) -> float:
    """People's mean seconds per label, pauses left out; NaN where no time is known."""
    seconds = ratings.loc[ratings["rater_kind"] == "human", "seconds"]
    return float(seconds[seconds <= IDLE_SECONDS].mean())


def _add_drift(rows: ResultRows, labels: LabelMatrix, session: _Session) -> None:
    agreement = _LikeOthers.of(labels, session.rater, session.rows)
    halves = np.array_split(np.arange(len(session.rows)), 2)
    drift = {
        "rater_seconds_drift": ratio_of_times(*(session.seconds[half] for half in halves)),
        "rater_agreement_drift": agreement.change(*halves),
    }
    _add(rows, labels, session.rater, session.rows, drift)
    for number, part in enumerate(np.array_split(np.arange(len(session.rows)), PARTS), start=1):
        timed = session.seconds[part]
        each = {
            "rater_seconds_part": median_interval(timed[~np.isnan(timed)]),
            "rater_agreement_part": agreement.share(part),
        }
        _add(rows, labels, session.rater, session.rows[part], each, at=str(number))


def _add(
    rows: ResultRows,
    labels: LabelMatrix,
    rater: int,
    units: Codes,
    found: dict[str, Interval],
    note: Note = "",
    at: str = "",
) -> None:
    counts = (len(units), len(np.unique(labels.clusters[units])))
    name = labels.raters[rater]
    if labels.weight is not None:
        note = join_notes(note, Remark("as_sampled"))
    for statistic, each in found.items():
        rows.add(statistic, each, counts, rater_a=name, subset="all", at=at, note=note)


def _sessions(ratings: pd.DataFrame, readings: Readings, labels: LabelMatrix) -> Iterator[_Session]:
    """Yield the session of each rater whose ratings record when they were given or how long they
    took.
    """
    import pandas as pd

    known = (ratings["created_at"] != "") | ratings["seconds"].notna()
    first = ratings[known & (ratings["label"] != "")].sort_values("created_at", kind="stable")
    first = first.drop_duplicates(["rater_id", "unit_id"])
    place = pd.Index(readings.units).get_indexer(pd.Index(first["unit_id"]))
    for column, rater in enumerate(labels.raters):
        own = (first["rater_id"] == rater).to_numpy()
        if own.any():
            seconds = first["seconds"].to_numpy(dtype=float)[own]
            idle = seconds > IDLE_SECONDS
            ordered = bool((first["created_at"].to_numpy()[own] != "").all())
            yield _Session(
                column, place[own], np.where(idle, np.nan, seconds), int(idle.sum()), ordered
            )


def median_interval(values: Array) -> Interval:
    """The median with the order statistics that hold it with at least 95% (Conover 1999, 3.2).

    >>> median_interval(np.arange(1.0, 16.0))
    Interval(estimate=8.0, low=4.0, high=12.0, remarks=())
    """
    from scipy.special import bdtr

    ordered, n = np.sort(values), len(values)
    below = int(np.searchsorted(bdtr(np.arange(n + 1), n, 0.5), 0.025))
    if n == 0:
        return Interval.undefined("no_times")
    if below < 1:  # up to 5 values
        return Interval.point(float(np.median(ordered)), Remark("too_few_labels_for_interval"))
    return Interval(float(np.median(ordered)), float(ordered[below - 1]), float(ordered[n - below]))


def ratio_of_times(first: Array, second: Array) -> Interval:
    """Typical (geometric mean) time of the second over the first, with Welch's interval (1947) of
    the logarithms: times are skewed, their logarithms are not.

    >>> found = ratio_of_times(np.array([30.0, 40.0, 50.0]), np.array([15.0, 20.0, 25.0]))
    >>> round(found.estimate, 3), found.low < 0.5 < found.high
    (0.5, True)
    """
    from scipy.special import stdtrit

    logs = [np.log(np.maximum(each[~np.isnan(each)], 0.1)) for each in (first, second)]
    if min(len(each) for each in logs) < 2:
        return Interval.undefined("too_few_labels")
    change = logs[1].mean() - logs[0].mean()
    variances = [each.var(ddof=1) / len(each) for each in logs]
    total = sum(variances)
    if total == 0:
        return Interval.point(float(np.exp(change)), Remark("no_variation"))
    pooled = sum(v**2 / (len(each) - 1) for v, each in zip(variances, logs, strict=True))
    reach = stdtrit(total**2 / pooled, 0.975) * np.sqrt(total)
    low, high = np.exp([change - reach, change + reach]).tolist()
    return Interval(float(np.exp(change)), low, high)


@dataclass(frozen=True)
class _LikeOthers:
    """Counts for each label of a session: the other humans' labels on its unit (`met`), and how
    many of them are `alike`.
    """

    alike: Array
    met: Array
    clusters: Codes

    @classmethod
    def of(cls, labels: LabelMatrix, rater: int, units: Codes) -> _LikeOthers:
        others = [human for human in labels.humans if human != rater]
        own = labels.codes[units, rater][:, None]
        theirs = labels.codes[units][:, others]
        met = (theirs >= 0) & (own >= 0)
        alike = met & (theirs == own)
        if labels.scale.is_number:
            values = np.asarray(labels.scale.values)
            alike = met * (1.0 - np.abs(values[own] - values[theirs]) / max(np.ptp(values), 1e-300))
        return cls(
            alike.sum(axis=1).astype(float),
            met.sum(axis=1).astype(float),
            labels.clusters[units],
        )

    def share(self, part: Codes) -> Interval:
        """The share alike in a part of the session."""
        found = self._interval([(part, 1.0)])
        low, high = np.clip([found.low, found.high], 0.0, 1.0).tolist()
        return Interval(found.estimate, low, high, found.remarks)

    def change(self, first: Codes, second: Codes) -> Interval:
        """The share alike in the second part minus that in the first."""
        return self._interval([(second, 1.0), (first, -1.0)])

    def _interval(self, parts: list[tuple[Codes, float]]) -> Interval:
        """A signed sum of ratio estimates; its variance by linearisation, between clusters
        (Cochran 1977, section 6.3; Kish & Frankel 1974)."""
        estimate, residual = 0.0, np.zeros(len(self.met))
        for part, sign in parts:
            met = self.met[part].sum()
            if met == 0:
                return Interval.undefined("no_pairable_units")
            share = self.alike[part].sum() / met
            estimate += sign * share
            residual[part] += sign * (self.alike[part] - share * self.met[part]) / met
        _, cluster = np.unique(self.clusters, return_inverse=True)
        by_cluster = np.bincount(cluster, weights=residual)
        n = len(by_cluster)
        if n < MIN_CLUSTERS:
            return Interval.point(float(estimate), Remark("too_few_clusters"))
        reach = Z * float(np.sqrt(n / (n - 1) * (by_cluster**2).sum()))
        return Interval(float(estimate), float(estimate) - reach, float(estimate) + reach)
