"""Dawid & Skene's consensus (1979): each unit's most likely category, and how each rater errs.

Every unit has one latent category; a rater who meets category k says l with a probability of their
own, independently of the others. Maximum likelihood by EM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.analysis.types import Array, Codes, Integers, Labels, Mask

MIN_RATERS = 3
"""With two raters the model has more unknowns than their table has cells: no unique answer."""
MAX_ITERATIONS = 20_000
_TOLERANCE = 1e-12
_TIE = 1e-6


@dataclass(frozen=True)
class DawidSkene:
    """A fit: `posterior` (units, q), `prevalence` (q,) and `confusion` (raters, q, q).

    `confusion[j, k, l]` is how likely rater j says l where the category is k (NaN where no unit
    that the rater labelled has it); `log_likelihood` is that of the labels; rows of `posterior`
    are NaN for units that nobody labelled.
    """

    posterior: Array
    prevalence: Array
    confusion: Array
    log_likelihood: float
    iterations: int
    converged: bool

    @property
    def codes(self) -> Codes:
        """The most likely category (units,); -1 without labels or where two are equally likely."""
        ranked = np.sort(self.posterior, axis=1)
        clear = ranked[:, -1] - ranked[:, -2] > _TIE
        best = np.nan_to_num(self.posterior).argmax(axis=1)
        return np.where(clear, best, -1)


def counts_of_codes(codes: Integers, q: int) -> Labels:
    """Label counts (units, raters, q) of one label per rater: codes (units, raters), -1 missing."""
    return np.asarray(codes[:, :, None] == np.arange(q), dtype=np.int8)


def fit(counts: Integers, *, frequency: Integers | None = None) -> DawidSkene:
    """Fit the model to label counts (units, raters, q): how often each rater said each category.

    `frequency` (units,) says how often a unit stands in the data. EM starts from each unit's shares
    of labels, as the authors do, and ends when a step raises the log-likelihood by less than 1e-12
    of it and moves no posterior by 1e-7; the likelihood never falls. After 20,000 steps it gives up
    and says so in `converged`.
    """
    raters = counts.shape[1]
    patterns, where, times = _distinct(counts, frequency)
    said = patterns.reshape(len(patterns), -1).astype(float)
    labelled = np.asarray(patterns.any(axis=(1, 2)))
    weight = np.where(labelled, times, 0.0)[:, None]
    votes = patterns.sum(axis=1, dtype=float)
    posterior = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
    likelihood, step, converged = -np.inf, 0, False
    while step < MAX_ITERATIONS and not converged:
        step += 1
        prevalence, confusion = _maximise(posterior, said, weight, raters)
        moved, reached = _expect(prevalence, confusion, said, weight, labelled)
        gain = reached - likelihood
        still = np.abs(moved - posterior).max(initial=0.0) < 1e-7
        converged = bool(still and gain <= _TOLERANCE * max(1.0, abs(reached)))
        posterior, likelihood = moved, reached
    prevalence, confusion = _maximise(posterior, said, weight, raters)
    posterior[~labelled] = np.nan
    met = confusion.sum(axis=2, keepdims=True) > 0
    return DawidSkene(
        posterior=posterior[where],
        prevalence=prevalence,
        confusion=np.where(met, confusion, np.nan),
        log_likelihood=float(likelihood),
        iterations=step,
        converged=converged,
    )


def _maximise(posterior: Array, said: Array, weight: Array, raters: int) -> tuple[Array, Array]:
    """Prevalence (q,) and confusion (raters, q, q) that the posteriors make most likely."""
    belief = posterior * weight
    q = posterior.shape[1]
    joint = (belief.T @ said).reshape(q, raters, q).transpose(1, 0, 2)
    total = joint.sum(axis=2, keepdims=True)
    confusion = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
    return belief.sum(axis=0) / max(float(weight.sum()), 1.0), confusion


def _expect(
    prevalence: Array,
    confusion: Array,
    said: Array,
    weight: Array,
    labelled: Mask,
) -> tuple[Array, float]:
    """Posteriors of the units and the log-likelihood of the labels."""
    q = len(prevalence)
    with np.errstate(divide="ignore"):
        log_prevalence = np.log(prevalence)
        # A finite floor: 0 * -inf would be NaN. It is far below any sum of real logarithms.
        log_confusion = np.maximum(np.log(confusion), -1e9)
    joint = log_prevalence + said @ log_confusion.transpose(0, 2, 1).reshape(-1, q)
    top = joint.max(axis=1, keepdims=True)
    shares = np.exp(joint - top)
    total = shares.sum(axis=1, keepdims=True)
    log_likelihood = float((weight * (top + np.log(total)))[labelled].sum())
    return np.where(labelled[:, None], shares / total, 0.0), log_likelihood


def _distinct(counts: Integers, frequency: Integers | None) -> tuple[Integers, Codes, Array]:
    """Distinct units, which of them each unit is like, and how often each stands."""
    rows = np.ascontiguousarray(counts.reshape(len(counts), -1))
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, kept, where = np.unique(keys, return_index=True, return_inverse=True)
    times = np.bincount(where, weights=frequency, minlength=len(kept))
    return counts[kept], where, times.astype(float)
