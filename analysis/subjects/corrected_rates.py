"""Each subject's rate of affirmative verdicts: as a grader counts it, and as people would.

The grader's verdicts on everything that it graded are corrected with the part that people labelled,
in two ways (see `analysis.subjects.formulas`). Rogan-Gladen takes its error rates from all subjects
together: by subject they rest on a handful of units of the rarer verdict. That is wrong where a
grader errs differently from subject to subject, so it is tested. PPI++ is computed by subject and
takes nothing of the kind for granted.

The reference is people's majority; a tied unit counts half on either side, since leaving out what
people part over would make the labelled units easier than the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.significance import bootstrap_p, holm
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.notes import Note, Reason, Remark, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.subjects.formulas import RateSums, clipped, invert, rate_features
from evenhand.analysis.subjects.order import add_order_rows
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.analysis.writer import About, Writer

NOT_INFORMATIVE = Remark("grader_not_informative")
"""Rogan-Gladen divides by sensitivity + specificity - 1, which may be 0 for all that is known."""
NOTHING_UNLABELLED = Remark("no_unlabelled_units")
"""The grader graded only what people labelled: their own rate is the answer."""
IMPOSSIBLE = Remark("outside_zero_one")
"""The whole interval lies beyond [0, 1]: the error rates cannot be those of this subject."""

_ALPHA = 0.05


def people_verdicts(labels: LabelMatrix) -> Array:
    """The majority of people's verdicts (units,), 0.5 where tied and NaN for none."""
    verdicts = labels.verdicts[:, list(labels.humans)]
    yes, no = ((verdicts == value).sum(axis=1) for value in (1, 0))
    return np.where(yes + no > 0, np.where(yes == no, 0.5, yes > no), np.nan)


def add_corrected_rate_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """Rates by subject (at): people's own, and each grader's before and after correction.

    `labels` has one row per unit that counts towards a rate. `rate_human` is people's on what they
    labelled; `rate_raw`, `rate_rogan_gladen` and `rate_ppi` with its `rate_ppi_lambda` speak of all
    units that the grader graded; `sensitivity`, `specificity` and `youden_j` of those that people
    labelled too. `rogan_gladen_bias` is by how much that correction misses people's own rate among
    these. Where the units table names no subject, all units are one. For the order of the subjects
    see `analysis.subjects.order`. Without people or without graders there is no row.
    """
    if not labels.humans or not labels.models:
        return
    out = Writer(rows, resamples, labels.clusters, BINARY_ALL)
    reference, groups = people_verdicts(labels), _Groups.of(labels)
    _add_people_rows(out, reference, groups)
    verdicts = labels.verdicts.astype(float)
    verdicts[verdicts < 0] = np.nan
    for model in labels.models:
        grades = verdicts[:, model]
        graded = ~np.isnan(grades)
        if graded.any():
            sums = groups.sums(rate_features(reference, grades), out)
            _Case(out, groups, labels.raters[model], graded, reference, sums).add_rows()


def _add_people_rows(out: Writer, reference: Array, groups: _Groups) -> None:
    labelled = ~np.isnan(reference)
    features = rate_features(reference, np.where(labelled, 0.0, np.nan))
    people = groups.sums(features, out).people
    for at, name, member in groups:
        if (labelled & member).any():
            tied, _ = out.count((reference == 0.5) & member)
            note = f"{tied} tied units count half" if tied else ""
            values, units = people[:, at], labelled & member
            out.add("rate_human", values, units, a="humans", at=name, note=note)


@dataclass(frozen=True)
class _Groups:
    """Whose rate is asked for: the subjects, or one nameless group of everything."""

    names: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, labels: LabelMatrix) -> _Groups:
        if labels.subjects:
            return cls(labels.subjects, labels.subject)
        return cls(("",), np.zeros(len(labels.codes), dtype=np.intp))

    def __iter__(self) -> Iterator[tuple[int, str, Mask]]:
        """Place, name and which units (units,) are its own."""
        for at, name in enumerate(self.names):
            yield at, name, self.codes == at

    def sums(self, features: Array, out: Writer) -> RateSums:
        """The features (units, 6) summed by group in every resample: each (rows, groups)."""
        own, count, n_types = self.codes >= 0, len(self.names), out.resamples.n_types
        cell = out.clusters[own] * count + self.codes[own]
        size = n_types * count
        cells = [np.bincount(cell, weights=column[own], minlength=size) for column in features.T]
        shaped = np.stack(cells, axis=1).reshape(n_types, count, len(cells))
        return RateSums(*np.moveaxis(out.resamples.totals(shaped), -1, 0))


@dataclass(frozen=True)
class _Case:
    """One grader's rates. `reference` and `graded` are by unit, `sums` by row and group."""

    out: Writer
    groups: _Groups
    grader: str
    graded: Mask
    reference: Array
    sums: RateSums

    def add_rows(self) -> None:
        """All rows of this grader."""
        pooled = RateSums(*(each.sum(axis=1, keepdims=True) for each in self.sums))
        useless = self._add_error_rates(pooled)
        differ = set() if useless else self._add_subject_bias(pooled)
        inverted = invert(self.sums.raw, pooled.sensitivity, pooled.specificity)
        weight = self.sums.ppi_weight
        powered = self.sums.ppi(weight)
        labelled = ~np.isnan(self.reference)
        for at, name, member in self.groups:
            mine = self.graded & member
            if not mine.any():
                continue
            needless = None if (mine & ~labelled).any() else NOTHING_UNLABELLED
            alone = None if (mine & labelled).any() else Remark("no_pairable_units")
            about = Remark("errors_differ") if name in differ else ""
            self._add("rate_raw", self.sums.raw[:, at], name, mine)
            why = needless or useless
            self._add_corrected("rate_rogan_gladen", inverted[:, at], name, mine, why, about)
            self._add_corrected("rate_ppi", powered[:, at], name, mine, needless or alone)
            if not (needless or alone):
                self._add("rate_ppi_lambda", weight[:, at], name, mine)
        names, corrected = self.groups.names, clipped(powered)
        add_order_rows(self.out, self.grader, names, self.sums.raw, corrected)

    def _add_error_rates(self, pooled: RateSums) -> Remark | None:
        """Sensitivity and specificity of all and by group; returns why they are of no use, if so.

        J of one group is not given: with few units of the rarer verdict it says little.
        """
        both = self.graded & ~np.isnan(self.reference)
        affirmed, refused = (both & (self.reference > 0)), (both & (self.reference < 1))
        self._add("sensitivity", pooled.sensitivity[:, 0], "", affirmed)
        self._add("specificity", pooled.specificity[:, 0], "", refused)
        j = self._add("youden_j", pooled.youden_j[:, 0], "", both)
        if len(self.groups.names) > 1:
            for at, name, member in self.groups:
                if (both & member).any():
                    self._add("sensitivity", self.sums.sensitivity[:, at], name, affirmed & member)
                    self._add("specificity", self.sums.specificity[:, at], name, refused & member)
        if np.isnan(j.estimate):
            return Remark("no_variation" if both.any() else "no_pairable_units")
        if np.isnan(j.low):
            return j.remarks[0]
        return None if j.low > 0 else NOT_INFORMATIVE

    def _add_subject_bias(self, pooled: RateSums) -> set[str]:
        """By how much pooled error rates mislead on each subject; returns where that is no chance.

        On the labelled units people's own rate is known: what the correction makes of the grader's
        rate there, less theirs, is its bias. Holm's correction over a grader's subjects.
        """
        if len(self.groups.names) < 2:
            return set()
        inverted = invert(self.sums.graded_labelled, pooled.sensitivity, pooled.specificity)
        bias = inverted - self.sums.people
        adjusted = holm([bootstrap_p(self.out.resamples.plain(values)) for values in bias.T])
        both = self.graded & ~np.isnan(self.reference)
        for at, name, member in self.groups:
            if (both & member).any():
                note = f"Holm p {adjusted[at]:.4g}" if adjusted[at] <= 1 else ""
                self._add("rogan_gladen_bias", bias[:, at], name, both & member, note)
        return {name for at, name, _ in self.groups if adjusted[at] < _ALPHA}

    def _add_corrected(
        self,
        statistic: str,
        values: Array,
        name: str,
        units: Mask,
        why: Remark | None,
        about: Note = "",
    ) -> None:
        """A corrected rate, kept within [0, 1]; or `why` there is none."""
        if why:
            self._add(statistic, np.full(len(values), np.nan), name, units, reason=why)
            return
        counts = self.out.count(units)
        labelled, _ = self.out.count(units & ~np.isnan(self.reference))
        found = self.out.resamples.interval(values, counts[1])
        if found.low > 1 or found.high < 0:
            found = Interval.undefined(IMPOSSIBLE)
        outside = "clipped to [0, 1]" if found.estimate < 0 or found.estimate > 1 else ""
        estimate, low, high = clipped(np.array([found.estimate, found.low, found.high])).tolist()
        note = join_notes(about, outside, f"{labelled} of them labelled by people")
        within = Interval(estimate, low, high, found.remarks)
        self.out.add_interval(
            statistic, within, counts, a="humans", b=self.grader, at=name, note=note
        )

    def _add(
        self,
        statistic: str,
        values: Array,
        at: str,
        units: Mask,
        note: Note = "",
        reason: Reason = "no_variation",
    ) -> Interval:
        of = About(a="humans", b=self.grader, at=at, note=note)
        return self.out.add(statistic, values, units, reason=reason, **of)
