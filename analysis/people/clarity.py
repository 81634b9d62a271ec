"""Clarity: do humans find a unit clear, and would another wording of the rubric help?

For a rubric that marks some categories as unclear: the validation of a stance grader by Feng, Park,
Liu & Tsvetkov (2023, section 3 and appendix A.2). The others are collapsed into the rubric's
coarser categories first, as there, and the reference is the majority of humans.

Another wording is tried among people, by how much their agreement moves. The trial's units were
dealt to the two wordings, each unit to one for all of its raters. So agreement under each wording
is that on its own units, and the difference is resampled by cluster, both wordings in the same
resamples. `python -m benchmarks.rewording` shows how often *better* is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from evenhand.analysis.agreement.coefficients import label_counts, majority_codes
from evenhand.analysis.agreement.groups import add_group_rows, group_panel
from evenhand.analysis.agreement.overlap import add_humans_rows
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import UNCLEAR
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import with_weights
from evenhand.analysis.people.ceiling import add_ceiling_rows
from evenhand.analysis.request import Request, TriedWording
from evenhand.analysis.requirement import Bound, clusters_to_decide
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import DataFrame
from evenhand.analysis.writer import RubricView, View
from evenhand.texts import written

CLEAR_AGREEMENT = "clear_agreement"


def add_clarity_rows(view: RubricView) -> None:
    """Add `clear_share`, and graders' `clear_agreement` and `mean_confidence`.

    All are on the collapsed categories. `clear_share`: the share of units on which the humans'
    majority is clear. `clear_agreement`: on those, how often the grader gives the same label;
    finding a clear unit unclear counts against it. `mean_confidence` (at = clear or unclear): the
    grader's probability of its likeliest category. The panel of humans with each other and with
    graders is added too, with unclear labels left out.
    """
    labels, scale = view.labels, view.labels.scale
    if not (scale.unclear and scale.collapse and labels.humans):
        return
    coded, as_sorted = labels.on_collapsed(), labels.on_sorted()
    out = view.seen_as(coded)
    add_group_rows(out, ["humans"])
    add_humans_rows(out)
    add_ceiling_rows(out)

    add = partial(out.add, a="humans", reason="no_pairable_units")
    majority = majority_codes(label_counts(as_sorted, labels.humans))
    clear, unclear = (majority >= 0) & (majority < coded.q), majority == coded.q
    told = clear | unclear
    add("clear_share", out.share(clear, told), told)
    for grader in labels.models:
        name, said = labels.raters[grader], as_sorted.codes[:, grader]
        among = clear & (said >= 0)
        add(CLEAR_AGREEMENT, out.share(said == majority, among), among, b=name)
        sure = labels.confidence[:, grader]
        known = ~np.isnan(sure)
        for at, units in (("clear", clear), (UNCLEAR, unclear)) if known.any() else ():
            among = known & units
            add("mean_confidence", out.share(np.nan_to_num(sure), among), among, b=name, at=at)


ALPHA, DIFFERENCE = "rewording_alpha", "rewording_difference"
FILLED = "rewording_filled"
LEAST = 30
"""Clusters with two labels under each wording, below which nothing is said."""


def add_trial_rows(
    rows: ResultRows,
    scale: Scale,
    by_wording: Mapping[str, DataFrame],
    trial: TriedWording,
    request: Request,
) -> None:
    """Add `rewording_alpha`, people's alpha at the scale's level under each wording, and
    `rewording_difference`, new minus old: `at` is the wording, of the difference the new one. And
    `rewording_filled`, the share of the trial's labels that are in.

    `by_wording` has the ratings under the old wording and the new one, in this order; of these
    count people's on the units that were dealt to that wording.
    """
    import pandas as pd

    parts, filled = [], 0
    for (name, given), units in zip(by_wording.items(), (trial.old, trial.new), strict=True):
        theirs = given[(given["rater_kind"] == "human") & given["unit_id"].isin(set(units))]
        each = theirs.groupby("unit_id")["rater_id"].nunique()
        filled += int(each.clip(upper=trial.raters).sum())
        parts.append(theirs.assign(rater_id=f"{name}|" + theirs["rater_id"].astype(str)))
    ratings = pd.concat(parts)
    if ratings.empty:
        return
    weighted = with_weights(request.units, ratings)
    readings = combine_readings(ratings, scale)
    labels, frequency = encode(readings, scale, weighted, request.settings.cluster).folded()
    shared = request.resampled(frequency, labels.weight)
    coded = labels.on_categories()
    out = View.of(rows, coded, shared)
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
    dealt, (_, new_name) = len(trial.old) + len(trial.new), by_wording
    share, size = filled / (trial.raters * dealt), (dealt, labels.n_clusters)
    out.add(FILLED, share, size, a="humans", at=new_name)
    if all(each.any() for each in counted):
        out.add(DIFFERENCE, new - old, counted[0] | counted[1], a="humans", at=new_name)


Outcome = Literal["better", "worse", "inconclusive"]


@dataclass(frozen=True)
class Moved:
    """Whether people agree better under the new wording, and of how many clusters a trial would
    tell with a chance of 80%: None where no realistic number would, 0 where there is no need.
    """

    outcome: Outcome
    size: int | None
    filled: float = 1.0

    def sentence(self, new: str, noun: str) -> str:
        """The outcome for the wording `new`; `noun` is what a cluster is called."""
        said = [written(f"rewording.{self.outcome}", new=new)]
        if self.filled < 1:
            said.append(written("rewording.filled", filled=math.floor(100 * self.filled)))
        elif self.outcome == "inconclusive" and self.size:
            said.append(written("rewording.larger", size=self.size, noun=noun))
        elif self.outcome == "inconclusive":
            said.append(written("rewording.no_more", noun=noun))
        return " ".join(said)


def moved(
    low: float, estimate: float, high: float, fewest: int, clusters: int, filled: float
) -> Moved:
    """Decide from the difference with its 95% interval, once the trial's labels are all in;
    `fewest` is the number of clusters under the wording that has fewer, `filled` the share that is
    in. The size was fixed beforehand, so there is one decision.

    >>> moved(0.05, 0.2, 0.35, 30, 60, 1).outcome, moved(0.05, 0.2, 0.35, 30, 60, 0.9).outcome
    ('better', 'inconclusive')
    >>> moved(-0.05, 0.1, 0.25, 30, 60, 1).size
    276
    """
    if filled < 1:
        return Moved("inconclusive", 0, filled)
    if fewest < LEAST:
        return Moved("inconclusive", 2 * LEAST)
    if low > 0 or high < 0:
        return Moved("better" if low > 0 else "worse", 0)
    if math.isnan(low):
        return Moved("inconclusive", None)
    more = clusters_to_decide(clusters, [Bound(low, estimate, high, 0.0)], 0)
    return Moved("inconclusive", clusters + more + (clusters + more) % 2 if more else None)
