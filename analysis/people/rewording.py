"""Another wording of a rubric, tried among people: by how much does their agreement move?

The trial's units were dealt to the two wordings, each unit to one for all of its raters. So
agreement under each wording is that on its own units, and the difference is resampled by cluster,
both wordings in the same resamples. `python -m benchmarks.rewording` shows how often *better* is
wrong.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evenhand.analysis.agreement.counts import label_counts
from evenhand.analysis.agreement.groups import group_panel
from evenhand.analysis.labels.combine import combine_readings
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.weights import with_weights
from evenhand.analysis.planning.more_clusters import Bound, clusters_to_decide
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.writer import Writer
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

ALPHA, DIFFERENCE = "rewording_alpha", "rewording_difference"
LEAST = 30
"""Clusters with two labels under each wording, below which nothing is said."""


def add_trial_rows(
    rows: ResultRows,
    scale: Scale,
    by_wording: Mapping[str, pd.DataFrame],
    units: Collection[str],
    request: Request,
) -> None:
    """Add `rewording_alpha`, people's alpha at the scale's level under each wording, and
    `rewording_difference`, new minus old: `at` is the wording, of the difference the new one.

    `by_wording` has the ratings under the old wording and the new one, in this order; of these
    count people's on the trial's `units`.
    """
    import pandas as pd

    parts = [
        given.assign(rater_id=f"{name}|" + given["rater_id"].astype(str))
        for name, given in by_wording.items()
    ]
    ratings = pd.concat(parts)
    ratings = ratings[(ratings["rater_kind"] == "human") & ratings["unit_id"].isin(units)]
    if ratings.empty:
        return
    weighted = with_weights(request.units, ratings)
    readings = combine_readings(ratings, scale)
    labels, frequency = encode(readings, scale, weighted, request.settings.cluster).folded()
    shared = request.resampled(frequency, labels.weight)
    coded = labels.on_categories()
    out = Writer.of(rows, coded, shared)
    level = "interval" if coded.is_number else coded.level
    found, counted = [], []
    for name in by_wording:
        own = [at for at, who in enumerate(coded.raters) if who.startswith(f"{name}|")]
        counts = label_counts(coded, own)
        several = counts.sum(axis=1) >= 2
        panel = group_panel(counts * several[:, None], coded, shared)
        found.append(panel[f"krippendorff_alpha_{level}"])
        counted.append(several)
        if several.any():
            out.add(ALPHA, found[-1], several, a="humans", at=name)
    old, new = found
    if all(each.any() for each in counted):
        out.add(DIFFERENCE, new - old, counted[0] | counted[1], a="humans", at=list(by_wording)[1])


Outcome = Literal["better", "worse", "cannot_tell"]


@dataclass(frozen=True)
class Moved:
    """Whether people agree better under the new wording, and how many further clusters of the trial
    would tell with a chance of 80%: 0 where it is told, None where no realistic number would.
    """

    outcome: Outcome
    more: int | None

    def sentence(self, new: str, noun: str) -> str:
        """The outcome for the wording `new`; `noun` is what a cluster is called."""
        said = [written(f"rewording.{self.outcome}", new=new)]
        if self.outcome == "cannot_tell":
            said.append(
                written(
                    "rewording.more" if self.more else "rewording.no_more",
                    more=self.more,
                    noun=noun,
                )
            )
        return " ".join(said)


def moved(low: float, estimate: float, high: float, fewest: int, clusters: int) -> Moved:
    """Decide from the difference with its 95% interval; `fewest` is the number of clusters under
    the wording that has fewer.

    >>> moved(0.05, 0.2, 0.35, 30, 60), moved(-0.1, 0.05, 0.2, 30, 60).more
    (Moved(outcome='better', more=0), 425)
    """
    short = 2 * (LEAST - fewest)
    if short > 0:
        return Moved("cannot_tell", short)
    if low > 0 or high < 0:
        return Moved("better" if low > 0 else "worse", 0)
    if math.isnan(low):
        return Moved("cannot_tell", None)
    more = clusters_to_decide(clusters, [Bound(low, estimate, high, 0.0)], 0)
    return Moved("cannot_tell", more + more % 2 if more is not None else None)
