"""Win rates and strengths of subjects from comparisons of two of their answers to one prompt.

A unit's *score* for a subject is 1 where its answer is preferred, 0 where the other's is, and one
half for a tie; for human raters it is the mean of theirs. A grader whose verdict changes with the
order of the answers counts as calling a tie (Zheng et al. 2023). Degrees of preference are ignored.

Strengths are those of Bradley & Terry (1952): the probability that subject s is preferred to t is
1 / (1 + exp(strength of t - strength of s)). A tie counts as half a win for each, as in public
leaderboards (Chiang et al. 2024). This needs no further parameter; it gives the same ranks as a
model of ties (Davidson 1970), with strengths closer together. The maximum likelihood estimate
exists and is unique if, for every split of the subjects in two parts, some subject of each part has
won against one of the other (Ford 1957).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.labels.matrix import LabelMatrix, UnitFacts, favour_signs
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.subjects import corrected_rates
from evenhand.analysis.types import Array, Codes, DataFrame, Mask
from evenhand.analysis.writer import About, RatedView, Writer

_MAX_STEPS, _MAX_CHANGE, _TOLERANCE = 100, 2.0, 1e-11
"""Limits of Newton's method: steps, change of a strength in a step, and change if converged."""
_BLOCK = 250
"""Tables fitted at a time, which bounds memory."""


def strengths(wins: Array) -> Array:
    """Return the maximum likelihood strengths, log odds that sum to 0, (rows, subjects); NaN in
    rows where they do not exist.

    `wins` (rows, subjects, subjects) counts how often the first subject was preferred to the
    second. Two subjects, of which one wins three times out of four, by hand:

    >>> strengths(np.array([[[0.0, 3.0], [1.0, 0.0]]])).round(4) + 0.0
    array([[ 0.5493, -0.5493]])
    >>> float(np.log(3) / 2).__round__(4)
    0.5493
    """
    log_odds = np.full(wins.shape[:2], np.nan)
    linked_rows = np.flatnonzero(is_linked(wins))
    for start in range(0, len(linked_rows), _BLOCK):
        rows = linked_rows[start : start + _BLOCK]
        log_odds[rows] = _newton_strengths(wins[rows])
    return log_odds


def undefined_reason(wins: Array) -> str:
    """Return the code of the reason why a table of wins (subjects, subjects) has no strengths."""
    compared = wins + wins.T  # as if both had won: do comparisons link the subjects at all?
    return "subject_unbeaten" if is_linked(compared[None])[0] else "subjects_not_linked"


def is_linked(wins: Array) -> Mask:
    """Return a mask (rows,) of the tables of `wins` (rows, subjects, subjects) in which a chain of
    wins leads from every subject to every other.

    >>> chain = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    >>> is_linked(np.array([chain, chain + chain.T]))
    array([False,  True])
    """
    n = wins.shape[-1]
    reached = (wins > 0) | np.eye(n, dtype=bool)
    for _ in range(int(np.ceil(np.log2(max(n, 2))))):  # each step doubles the length of chains
        paths = reached.astype(np.float32)
        reached = paths @ paths > 0
    return np.asarray(reached.all(axis=(1, 2)))


def _newton_strengths(wins: Array) -> Array:
    """Return strengths (rows, subjects) of linked tables of `wins`, by Newton's method."""
    n_rows, n = wins.shape[:2]
    n_compared = wins + wins.transpose(0, 2, 1)
    strength, diagonal = np.zeros((n_rows, n)), np.arange(n)
    for _ in range(_MAX_STEPS):
        expected = 1.0 / (1.0 + np.exp(-(strength[:, :, None] - strength[:, None, :])))
        gradient = (wins - n_compared * expected).sum(axis=2)
        information = n_compared * expected * (1.0 - expected)
        row_information = information.sum(axis=2)
        # The Hessian is singular. The same number in every cell keeps the strengths' sum at 0.
        hessian = row_information.mean(axis=1)[:, None, None] / n - information
        hessian[:, diagonal, diagonal] += row_information
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        largest_change = np.abs(step).max(axis=1, keepdims=True)
        strength += step * np.minimum(1.0, _MAX_CHANGE / np.maximum(largest_change, _TOLERANCE))
        if largest_change.max() < _TOLERANCE:
            break
    return np.asarray(strength - strength.mean(axis=1, keepdims=True))


SUBJECT_COLUMNS = ("subject_a", "subject_b")
"""Columns of the units table that name the two subjects whose answers are compared."""
MAX_SUBJECTS = 100
"""Most subjects whose strengths are fitted; more have only win rates."""


def add_preference_rows(out: RatedView) -> None:
    """Add win rates and strengths of the subjects by human raters and by every grader; nothing
    where units do not name two subjects or no option favours a side.

    `win_rate` and `strength` are on all units that a rater compared. `win_rate_ppi` estimates
    people's win rate on all units that a grader compared.
    """
    if (compared := ComparedSubjects.of(out.labels, out.facts)) is None:
        return
    scores = rater_scores(out.labels, out.ratings, out.facts)
    for name, score in scores.items():
        _add_strength_rows(out, compared, name, score)
    if "humans" in scores:
        for grader in [name for name in scores if name != "humans"]:
            _add_corrected_win_rates(out, compared, grader, scores["humans"], scores[grader])


def is_comparison(labels: LabelMatrix, facts: UnitFacts) -> bool:
    """Return True where a unit is two subjects' answers to one prompt."""
    return labels.scale.unit == "comparison" or ComparedSubjects.of(labels, facts) is not None


class ComparedSubjects(NamedTuple):
    """The two subjects that each unit compares: `a` and `b` (units,) index `subjects`, -1: none."""

    subjects: tuple[str, ...]
    a: Codes
    b: Codes

    @classmethod
    def of(cls, labels: LabelMatrix, facts: UnitFacts) -> ComparedSubjects | None:
        """Return the subjects of the units; None if they name fewer than two, the scale favours no
        side, or a unit is an answer of one subject.
        """
        if not labels.scale.favours or labels.scale.unit not in ("comparison", ""):
            return None
        columns = [facts.column(name) for name in SUBJECT_COLUMNS]
        subjects = tuple(sorted({*columns[0].values, *columns[1].values}))
        if len(subjects) < 2:
            return None
        # Codes become positions in `subjects`; the code -1 selects the -1 appended for it.
        a, b = (
            np.array([*map(subjects.index, column.values), -1], dtype=np.intp)[column.codes]
            for column in columns
        )
        comparable = (a >= 0) & (b >= 0) & (a != b)
        return cls(subjects, np.where(comparable, a, -1), np.where(comparable, b, -1))

    @property
    def comparable(self) -> Mask:
        """Mask (units,) of units that compare two known subjects."""
        return np.asarray(self.a >= 0)

    def with_subject(self, subject: int) -> Mask:
        """Return the mask (units,) of the units that compare a subject with another."""
        return np.asarray((self.a == subject) | (self.b == subject))


def rater_scores(labels: LabelMatrix, ratings: DataFrame, facts: UnitFacts) -> dict[str, Array]:
    """Return units' scores for side a, (units,), of the humans and of each grader; NaN for none."""
    signs = favour_signs(labels.scale.categories, labels.scale.favours)[labels.codes]
    label_scores = (1.0 + signs) / 2.0  # (units, raters), NaN for no label (code -1)
    scores = {}
    if labels.humans:
        people = label_scores[:, list(labels.humans)]
        scores["humans"] = ratio(np.nansum(people, axis=1), (~np.isnan(people)).sum(axis=1))
    for model in labels.models:
        name, score = labels.raters[model], label_scores[:, model]
        if np.isnan(score).any():  # no label where the verdict changes with the order
            by_orders = _mean_of_orders(ratings, name, labels.scale, facts)
            score = np.where(np.isnan(score), by_orders, score)
        scores[name] = score
    return scores


def _mean_of_orders(ratings: DataFrame, grader: str, scale: Scale, facts: UnitFacts) -> Array:
    """Return the mean of a grader's scores for side a in the two orders of the answers, (units,);
    NaN where an order has no score, 0.5 where another tool recorded that the orders disagree.
    """
    signs = favour_signs(scale.categories, scale.favours)
    codes = {category: code for code, category in enumerate(scale.categories)}
    graded = ratings[ratings["rater_id"].eq(grader)]
    order_dependent = set(graded.loc[graded["unscored_reason"].eq("order_disagreement"), "unit_id"])
    graded = graded[graded["label"].ne("") & graded["order"].isin(("ab", "ba"))]
    score = (1.0 + signs[graded["label"].map(codes).to_numpy(dtype=np.intp)]) / 2.0
    scored = graded.assign(score=score).groupby(["unit_id", "order"])["score"].mean()
    by_order = scored.unstack("order")
    has_both = by_order.notna().all(axis=1) & (by_order.shape[1] == 2)
    scores = by_order.mean(axis=1)[has_both].reindex(facts.ids).to_numpy(dtype=float)
    return np.where([unit in order_dependent for unit in facts.ids], 0.5, scores)


def _add_strength_rows(out: Writer, compared: ComparedSubjects, name: str, score: Array) -> None:
    """Add a rater's `win_rate` and `strength` rows, from its scores for side a (units,)."""
    scored = compared.comparable & ~np.isnan(score)
    if not scored.any():
        return
    # A unit counts twice: as a's wins against b, and as b's wins against a.
    n, wins_of_a = len(compared.subjects), score[scored]
    a, b = compared.a[scored], compared.b[scored]
    # The wins of s against t are cell s * n + t of a table. Only the cells that occur are summed in
    # every resample; `codes` are positions in `cells`.
    cells, codes = np.unique(np.concatenate([a * n + b, b * n + a]), return_inverse=True)
    wins_of_both = np.concatenate([wins_of_a, 1.0 - wins_of_a])[:, None]
    out_twice = out.on(out.subset, clusters=np.tile(out.clusters[scored], 2))
    totals = corrected_rates.cell_sums(wins_of_both, codes, len(cells), out_twice)[0]
    flat = np.zeros((len(totals), n * n))
    flat[:, cells] = totals
    table = flat.reshape(-1, n, n)  # (rows, subjects, subjects)
    wins, losses = table.sum(axis=2), table.sum(axis=1)
    rates = ratio(wins, wins + losses)
    present = np.flatnonzero(losses[0] + wins[0] > 0).tolist()  # row 0: in the data
    units_of = {subject: scored & compared.with_subject(subject) for subject in present}
    for subject, units in units_of.items():
        out.add("win_rate", rates[:, subject], units, a=name, at=compared.subjects[subject])
    if len(present) > MAX_SUBJECTS:
        return
    table = table[:, present][:, :, present]
    reason = undefined_reason(table[0])  # used where a strength is NaN
    for (subject, units), strength in zip(units_of.items(), strengths(table).T, strict=True):
        out.add("strength", strength, units, reason=reason, a=name, at=compared.subjects[subject])


def _add_corrected_win_rates(
    out: RatedView, compared: ComparedSubjects, grader: str, people: Array, graded: Array
) -> None:
    """Add `win_rate_ppi` by subject: people's win rate on all units that the grader compared, by
    prediction-powered inference (PPI++, see `corrected_rates`).
    """
    scored = compared.comparable & ~np.isnan(graded)
    if not scored.any():
        return
    # A unit counts twice: for the subject on side a, and for that on side b.
    subjects = np.concatenate([compared.a[scored], compared.b[scored]])
    by_side = [np.concatenate([s[scored], 1.0 - s[scored]]) for s in (people, graded)]
    by_side.append(np.tile(out.labels.times_in_rest[scored], 2))
    features = corrected_rates.rate_features(*by_side)  # the summands of `RateSums`, by unit
    out_twice = out.on(out.subset, clusters=np.tile(out.clusters[scored], 2))
    cells = corrected_rates.cell_sums(features, subjects, len(compared.subjects), out_twice)
    sums = corrected_rates.RateSums(*cells)  # each (rows, subjects)
    weight = sums.ppi_weight  # on the grader; row 0 is that in the data
    rates = sums.ppi(weight)
    for subject in np.unique(subjects):
        pairs = scored & compared.with_subject(subject)
        about = About(a="humans", b=grader, at=compared.subjects[subject])
        counts, labelled = out.count(pairs), out.count(pairs & ~np.isnan(people))
        if not 0 < labelled.units < counts.units:
            reason = "no_unlabelled_units" if labelled.units else "no_pairable_units"
            out.add("win_rate_ppi", np.nan, counts, reason=reason, **about)
            continue
        subject_features = np.where((subjects == subject)[:, None], features, 0.0)
        cluster_sums = out_twice.sums_by_cluster(subject_features)
        reach = corrected_rates.ppi_reach(cluster_sums, float(weight[0, subject]))  # see `Reach`
        interval = out.resamples.interval(rates[:, subject], labelled.clusters)
        about["note"] = f"{labelled.units} of them labelled by annotators"
        interval = corrected_rates.corrected_interval(
            interval, rates[1:, subject], n_units=counts.units, sample=labelled, reach=reach
        )
        out.add("win_rate_ppi", interval, counts, **about)
