"""Agreement of a rater with themselves, from repeats: several draws of one unit in one order.

Everything else in the analysis first combines a rater's draws into one label
(`analysis.labels.combine`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from evenhand.analysis.agreement.pairs import deciding_kappa, mean_over_pairs, pair_statistics
from evenhand.analysis.bootstrap.resamples import Resamples, Resampling
from evenhand.analysis.labels.combine import combine_readings
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.labels.weights import WEIGHT
from evenhand.analysis.notes import Code, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.writer import Writer

if TYPE_CHECKING:
    import pandas as pd

_BETWEEN = "\x1f"
"""Separator of a unit's id and its order; no id contains it."""


def repeats_of(
    ratings: pd.DataFrame, scale: Scale, units: pd.DataFrame | None = None, cluster: str = "pair"
) -> dict[str, LabelMatrix]:
    """Return each repeating rater's draws, laid out as if every draw were a separate rater.

    `ratings` is a validated table of one rubric. A row of the matrix is a unit in one order that
    the rater read more than once; it belongs to the unit's cluster.
    """
    import pandas as pd

    draws = ratings.groupby(["rater_id", "unit_id", "order"], sort=False)["draw"]
    again = ratings[draws.transform("size") > 1]
    found = {}
    for rater, own in again.groupby("rater_id", sort=True):
        name = str(rater)
        reading = own["unit_id"] + _BETWEEN + own["order"]
        as_raters = own.assign(rater_id=own["draw"].astype(str), unit_id=reading, order="")
        facts = UnitFacts(own["unit_id"].tolist(), units)
        known = facts.clusters(cluster)
        columns = {"cluster_id": [known.values[at] for at in known.codes]}
        if (weight := facts.weights(known)) is not None:
            columns[WEIGHT] = weight[known.codes].tolist()
        table = pd.DataFrame({"unit_id": reading.tolist(), **columns}).drop_duplicates()
        own_scale = replace(scale, threshold=scale.threshold_for(name), thresholds={})
        found[name] = encode(combine_readings(as_raters, own_scale), own_scale, table)
    return found


def add_repeat_rows(
    rows: ResultRows,
    matrices: Mapping[str, LabelMatrix],
    resampled: Resampling,
) -> None:
    """Add `intra_rater_agreement` and `intra_rater_kappa` of every rater with repeats.

    Both are plain means over the pairs of a rater's draws. `resampled` makes resamples of clusters
    from how often each occurs in the data.
    """
    for name, matrix in matrices.items():
        folded, frequency = matrix.folded()
        shared = resampled(frequency, folded.weight)
        for draws in folded.views:
            _add_rater(rows, name, draws, shared)


def _add_rater(rows: ResultRows, name: str, draws: Coded, resamples: Resamples) -> None:
    out = Writer.of(rows, draws, resamples)
    panel, kappa = pair_statistics(draws), deciding_kappa(draws)
    pairs = list(combinations(range(len(draws.raters)), 2))
    units = out.count(draws.labelled.sum(axis=1) >= 2)
    why: Code = "no_variation" if units[0] else "no_pairable_units"
    wanted = {each: panel[each] for each in ("observed_agreement", kappa) if each in panel}
    means = mean_over_pairs(draws, pairs, resamples, wanted)
    kind = "unweighted kappa" if kappa == "cohen_kappa" else f"{draws.ordered} kappa"
    for statistic, of, note in (
        ("intra_rater_agreement", "observed_agreement", ""),
        ("intra_rater_kappa", kappa, kind),
    ):
        if of not in means:
            continue
        mean = means[of]
        over = f"mean over {mean.n_tables} pairs of draws" if mean.n_tables > 1 else ""
        about, lost = join_notes(note, over), mean.undefined
        out.add(statistic, mean.values, units, a=name, note=about, undefined=lost, reason=why)
