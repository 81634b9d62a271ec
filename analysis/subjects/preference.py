"""Win rates and strengths of subjects from comparisons of two of their answers to one prompt.

A unit's *score* for a subject is 1 where its answer is preferred, 0 where the other's is, and one
half for a tie; of human raters it is their mean. A grader whose verdict changes with the order of
the answers is counted as calling a tie (Zheng et al. 2023). How much better an answer is does not
count.

Strengths of subjects come from comparisons of two (Bradley & Terry 1952). The chance that s is
preferred to t is 1 / (1 + exp(strength of t - strength of s)). A tie counts as half a win for
either, as in public leaderboards (Chiang et al. 2024): that needs no further parameter and ranks
alike, while strengths lie closer together than in a model of ties (Davidson 1970). There is one
most likely set of strengths if, however the subjects are parted in two, some of either part have
won against some of the other (Ford 1957); else there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.labels.matrix import LabelMatrix, UnitFacts, favour_signs
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.subjects import corrected_rates
from evenhand.analysis.types import Array, Codes, DataFrame, Mask
from evenhand.analysis.writer import About, RatedView, Writer

_STEPS = 100
_LONGEST = 2.0
_ENOUGH = 1e-11
_BLOCK = 250
"""Tables fitted at a time, which bounds memory."""


def strengths(wins: Array) -> Array:
    """Return the most likely strengths, log odds that sum to 0, (rows, subjects); NaN in rows where
    there are none.

    `wins` (rows, subjects, subjects) says how often the first was preferred to the second.

    Of two subjects of which one wins three times out of four, by hand:

    >>> strengths(np.array([[[0.0, 3.0], [1.0, 0.0]]])).round(4) + 0.0
    array([[ 0.5493, -0.5493]])
    >>> float(np.log(3) / 2).__round__(4)
    0.5493
    """
    out = np.full(wins.shape[:2], np.nan)
    fits = np.flatnonzero(is_linked(wins))
    for start in range(0, len(fits), _BLOCK):
        rows = fits[start : start + _BLOCK]
        out[rows] = _fitted(wins[rows])
    return out


def why_undefined(wins: Array) -> str:
    """Return the reason why a table of wins (subjects, subjects) has no strengths."""
    return "subject_unbeaten" if is_linked((wins + wins.T)[None])[0] else "subjects_not_linked"


def is_linked(wins: Array) -> Mask:
    """Return True for tables in which every subject is reached from every other by wins, (rows,).

    >>> chain = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    >>> is_linked(np.array([chain, chain + chain.T]))
    array([False,  True])
    """
    n = wins.shape[-1]
    reached = (wins > 0) | np.eye(n, dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(max(n, 2)))))):
        paths = reached.astype(np.float32)
        reached = paths @ paths > 0
    return np.asarray(reached.all(axis=(1, 2)))


def _fitted(wins: Array) -> Array:
    """Newton's method on the log-likelihood, which is concave."""
    n_rows, n = wins.shape[:2]
    played = wins + wins.transpose(0, 2, 1)
    theta, place = np.zeros((n_rows, n)), np.arange(n)
    for _ in range(_STEPS):
        apart = theta[:, :, None] - theta[:, None, :]
        expected = 1.0 / (1.0 + np.exp(-apart))
        slope = (wins - played * expected).sum(axis=2)
        bend = played * expected * (1.0 - expected)
        each = bend.sum(axis=2)
        # Slopes sum to 0: the same number in every cell keeps the strengths' sum at 0.
        hessian = each.mean(axis=1)[:, None, None] / n - bend
        hessian[:, place, place] += each
        step = np.linalg.solve(hessian, slope[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        theta += step * np.minimum(1.0, _LONGEST / np.maximum(longest, _ENOUGH))
        if longest.max() < _ENOUGH:
            break
    return np.asarray(theta - theta.mean(axis=1, keepdims=True))


COMPARED = ("subject_a", "subject_b")
"""Units columns that name whose answers are compared."""
MAX_SUBJECTS = 100
"""Most subjects whose strengths are fitted; more have win rates alone."""


def add_preference_rows(out: RatedView) -> None:
    """Add win rates and strengths of the subjects by human raters and by every grader; nothing
    where units do not name two subjects or no option favours a side.

    `win_rate` and `strength` are on all units that a rater compared. `win_rate_ppi` is what
    people's win rate would be on all units that a grader compared.
    """
    if (compared := Compared.of(out.labels, out.facts)) is None:
        return
    scores = rater_scores(out.labels, out.ratings, out.facts)
    for name, score in scores.items():
        _add_rates(out, compared, name, score)
    if "humans" in scores:
        for grader in [name for name in scores if name != "humans"]:
            _add_corrected_rates(out, compared, grader, scores["humans"], scores[grader])


def is_comparison(labels: LabelMatrix, facts: UnitFacts) -> bool:
    """Return True where a unit is two subjects' answers to one prompt."""
    return labels.scale.unit == "comparison" or Compared.of(labels, facts) is not None


@dataclass(frozen=True)
class Compared:
    """Whose answers each unit compares: `a` and `b` (units,) index `subjects`, -1 where the units
    table does not say.
    """

    subjects: tuple[str, ...]
    a: Codes
    b: Codes

    @classmethod
    def of(cls, labels: LabelMatrix, facts: UnitFacts) -> Compared | None:
        """Return the subjects of the units; None where they have none, the scale no sides, or a
        unit is one subject's.
        """
        if not labels.scale.favours or labels.scale.unit not in ("comparison", ""):
            return None
        columns = [facts.column(name) for name in COMPARED]
        subjects = tuple(sorted({*columns[0].values, *columns[1].values}))
        if len(subjects) < 2:
            return None
        place = {name: at for at, name in enumerate(subjects)}
        codes = [
            np.array([*(place[name] for name in column.values), -1], dtype=np.intp)[column.codes]
            for column in columns
        ]
        comparable = (codes[0] >= 0) & (codes[1] >= 0) & (codes[0] != codes[1])
        return cls(subjects, *(np.where(comparable, code, -1) for code in codes))

    @property
    def known(self) -> Mask:
        """Mask (units,) of units that compare two known subjects."""
        return np.asarray(self.a >= 0)

    def with_subject(self, subject: int) -> Mask:
        """Mask (units,) of the units that compare a subject with another."""
        return np.asarray((self.a == subject) | (self.b == subject))


def rater_scores(labels: LabelMatrix, ratings: DataFrame, facts: UnitFacts) -> dict[str, Array]:
    """Return each unit's score for side a by the humans together and by each grader, (units,); NaN
    for none.
    """
    table = (1.0 + favour_signs(labels.scale.categories, labels.scale.favours)[labels.codes]) / 2.0
    scores = {}
    if labels.humans:
        people = table[:, list(labels.humans)]
        scores["humans"] = ratio(np.nansum(people, axis=1), (~np.isnan(people)).sum(axis=1))
    for model in labels.models:
        name, score = labels.raters[model], table[:, model].copy()
        if (unsure := np.isnan(score)).any():
            score[unsure] = _of_both_orders(ratings, name, labels.scale, facts)[unsure]
        scores[name] = score
    return scores


def _of_both_orders(ratings: DataFrame, grader: str, scale: Scale, facts: UnitFacts) -> Array:
    """Return the mean of a grader's scores in the two orders, (units,), NaN without either; 0.5
    where other tools wrote that they differ.
    """
    signs = favour_signs(scale.categories, scale.favours)
    code = {category: at for at, category in enumerate(scale.categories)}
    graded = ratings[ratings["rater_id"].eq(grader)]
    differ = set(graded.loc[graded["unscored_reason"].eq("order_disagreement"), "unit_id"])
    graded = graded[graded["label"].ne("") & graded["order"].isin(("ab", "ba"))]
    score = (1.0 + signs[graded["label"].map(code).to_numpy(dtype=np.intp)]) / 2.0
    scored = graded.assign(score=score).groupby(["unit_id", "order"])["score"].mean()
    by_order = scored.unstack("order")
    both = by_order.mean(axis=1)[by_order.notna().all(axis=1) & (by_order.shape[1] == 2)]
    scores = both.reindex(facts.ids).to_numpy(dtype=float)
    return np.where([unit in differ for unit in facts.ids], 0.5, scores)


def _add_rates(out: Writer, compared: Compared, name: str, score: Array) -> None:
    if not (held := compared.known & ~np.isnan(score)).any():
        return
    n, won = len(compared.subjects), score[held]
    a, b = compared.a[held], compared.b[held]
    cells, codes = np.unique(np.concatenate([a * n + b, b * n + a]), return_inverse=True)
    scores = np.concatenate([won, 1.0 - won])[:, None]  # of side a, then of side b
    twice = out.on(out.subset, np.tile(out.clusters[held], 2))
    totals = corrected_rates.cell_sums(scores, codes, len(cells), twice)[0]
    flat = np.zeros((len(totals), n * n))
    flat[:, cells] = totals
    table = flat.reshape(-1, n, n)
    wins, losses = table.sum(axis=2), table.sum(axis=1)
    rates, met = ratio(wins, wins + losses), np.flatnonzero(losses[0] + wins[0] > 0).tolist()
    of_subject = {at: held & compared.with_subject(at) for at in met}
    for at, units in of_subject.items():
        out.add("win_rate", rates[:, at], units, a=name, at=compared.subjects[at])
    if len(met) > MAX_SUBJECTS:
        return
    table = table[:, met][:, :, met]
    why = why_undefined(table[0])
    for (at, units), strength in zip(of_subject.items(), strengths(table).T, strict=True):
        out.add("strength", strength, units, reason=why, a=name, at=compared.subjects[at])


def _add_corrected_rates(
    out: Writer, compared: Compared, grader: str, people: Array, graded: Array
) -> None:
    """Add `win_rate_ppi` by subject: people's win rate on all that the grader compared."""
    if not (held := compared.known & ~np.isnan(graded)).any():
        return
    subjects = np.concatenate([compared.a[held], compared.b[held]])
    y, f = (np.concatenate([labels[held], 1.0 - labels[held]]) for labels in (people, graded))
    features = corrected_rates.rate_features(y, f)
    twice = out.on(out.subset, np.tile(out.clusters[held], 2))
    cells = corrected_rates.cell_sums(features, subjects, len(compared.subjects), twice)
    sums = corrected_rates.RateSums(*cells)
    rates = sums.ppi(weight := sums.ppi_weight)
    for at in np.unique(subjects):
        pairs = held & compared.with_subject(at)
        about = About(a="humans", b=grader, at=compared.subjects[at])
        counts, labelled = out.count(pairs), out.count(pairs & ~np.isnan(people))
        if not 0 < labelled[0] < counts[0]:
            why = "no_unlabelled_units" if labelled[0] else "no_pairable_units"
            out.add("win_rate_ppi", np.nan, counts, reason=why, **about)
            continue
        interval = out.resamples.interval(rates[:, at], labelled[1])
        drawn = rates[1:, at]
        of_subject = np.where((subjects == at)[:, None], features, 0.0)
        reach = corrected_rates.ppi_reach(twice.each_cluster(of_subject), float(weight[0, at]))
        within = corrected_rates.corrected_interval(interval, drawn, counts[0], labelled, reach)
        about["note"] = f"{labelled[0]} of them labelled by annotators"
        out.add("win_rate_ppi", within, counts, **about)
