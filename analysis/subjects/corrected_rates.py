"""Each subject's rate of affirmative verdicts: as a grader counts it, and as people would.

The grader's verdicts on everything that it graded are corrected with the part that people labelled,
in two ways (see `analysis.subjects.formulas`). Rogan-Gladen takes its error rates from all subjects
together: by subject they rest on a handful of units of the rarer verdict. That is wrong where a
grader errs differently from subject to subject, so it is tested. PPI++ is computed by subject and
makes no such assumption.

*People's rate* means the same everywhere: the mean over units of the share of people who affirm the
unit, as in `subject_score` and `prevalence`. Unlike the rate of majority verdicts it does not
depend on how many people labelled a unit, and has no ties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.shares import Reach
from evenhand.analysis.bootstrap.significance import bootstrap_p, holm
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL, LabelMatrix
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.notes import Note, Reason, Remark, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.subjects.differences import add_difference_rows
from evenhand.analysis.subjects.formulas import (
    RateSums,
    clipped,
    corrected_interval,
    invert,
    ppi_reach,
    rate_features,
    stratified_ppi,
)
from evenhand.analysis.subjects.scores import people_means
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.analysis.writer import About, Writer

NOT_INFORMATIVE = Remark("grader_not_informative")
"""Rogan-Gladen divides by sensitivity + specificity - 1, which may be 0 for all that is known."""
NOTHING_UNLABELLED = Remark("no_unlabelled_units")
"""The grader graded only what people labelled: there is nothing to correct it on."""
PEOPLES_OWN = Remark("peoples_own")
"""People labelled all that the grader graded: PPI++ is their own rate."""
IMPOSSIBLE = Remark("outside_zero_one")
"""The whole interval lies beyond [0, 1]: the error rates cannot be those of this subject."""
_ALPHA = 0.05
FEW_UNITS = 30
FEW = Remark("few_labelled", (FEW_UNITS,))
MIN_STRATUM = 20
"""Strata of fewer labelled clusters, or fewer others, are taken together: a resample must not come
out without any, and a share of few says nothing of its own."""


def add_corrected_rate_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    resamples: Resamples,
    strata: Sequence[UnitColumn] = (),
    rubrics: int = 1,
) -> None:
    """Rates by subject (at): people's own, and each grader's before and after correction.

    `labels` has one row per unit that counts towards a rate. `rate_human` is people's on what they
    labelled; `rate_raw`, `rate_rogan_gladen` and `rate_ppi` are for all units that the grader
    graded; `sensitivity`, `specificity` and `youden_j` of those that people labelled too.
    `rogan_gladen_bias` is the corrected rate minus people's own rate on these. `strata` are the
    columns that the labelled sample is stratified by: PPI++ is stratified, too. Differences between
    subjects hold together over so many `rubrics`. Where the units table names no subject, all units
    are one. Without graders there is no row, without people `rate_raw` alone.
    """
    if not labels.models:
        return
    out = Writer(rows, resamples, labels.clusters, BINARY_ALL)
    reference, groups = people_means(labels), _Groups.of(labels)
    _add_people_rows(out, reference, groups)
    for model, grades in graded_verdicts(labels).items():
        features = rate_features(reference, grades)
        sums = groups.sums(features, out)
        grader = labels.raters[model]
        graded = ~np.isnan(grades)
        rates = _GradersRates(out, groups, grader, graded, reference, features, sums, rubrics)
        rates.add_rows(groups.powered(features, joint_strata(strata, len(grades)), sums, out))


def add_part_rate_rows(
    rows: ResultRows, labels: LabelMatrix, resamples: Resamples, columns: Sequence[UnitColumn]
) -> None:
    """Rates by subject (at) in every part of the sample, subset "column=value|binary": people's
    own, each grader's, and its PPI++ with the errors that it makes in that part.

    A rate that rests on fewer than `FEW_UNITS` labelled units says so. Without people there is
    `rate_raw` alone.
    """
    if not labels.models:
        return
    whole = Writer(rows, resamples, labels.clusters, BINARY_ALL)
    reference, groups, grades = people_means(labels), _Groups.of(labels), graded_verdicts(labels)
    for column in columns:
        for code, value in enumerate(column.values):
            out = whole.on(f"{column.name}={value}{BINARY}")
            inside = groups.within(column.codes == code)
            _add_people_rows(out, reference, inside)
            for model, own in grades.items():
                features = rate_features(reference, own)
                sums = inside.sums(features, out)
                grader = labels.raters[model]
                graded = ~np.isnan(own)
                rates = _GradersRates(out, inside, grader, graded, reference, features, sums)
                rates.add_raw_and_ppi(_Powered.plain(sums))


def graded_verdicts(labels: LabelMatrix) -> dict[int, Array]:
    """The verdicts (units,) of every grader that has any, 1 or 0, NaN for none."""
    verdicts = labels.verdicts.astype(float)
    verdicts[verdicts < 0] = np.nan
    return {model: verdicts[:, model] for model in labels.models if (verdicts[:, model] >= 0).any()}


def _add_people_rows(out: Writer, reference: Array, groups: _Groups) -> None:
    labelled = ~np.isnan(reference)
    features = rate_features(reference, np.where(labelled, 0.0, np.nan))
    people = groups.sums(features, out).people
    for at, name, member in groups:
        if (labelled & member).any():
            out.add("rate_human", people[:, at], labelled & member, a="humans", at=name)


@dataclass(frozen=True)
class _Groups:
    """The groups whose rates are estimated: the subjects, or one nameless group of everything."""

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

    def within(self, part: Mask) -> _Groups:
        """The same groups among the units of a part (units,)."""
        return _Groups(self.names, np.where(part, self.codes, -1))

    def sums(self, features: Array, out: Writer) -> RateSums:
        """The features (units, 6) summed by group in every resample: each (rows, groups)."""
        return RateSums(*cell_sums(features, self.codes, len(self.names), out))

    def powered(self, features: Array, strata: Codes, sums: RateSums, out: Writer) -> _Powered:
        """PPI++ by group, stratified where the labels of a group reach for two strata or more."""
        powered = _Powered.plain(sums)
        for at, _, member in self:
            joined, each = parted(features, strata, member, out)
            if each is not None:
                powered.rates[:, at], powered.weight[:, at] = stratified_ppi(each)
                powered.strata[at] = joined
        return powered


class _Powered(NamedTuple):
    """PPI++ rates and weights (rows, groups), and the stratum of each unit (units,) by group, for
    those that have several.
    """

    rates: Array
    weight: Array
    strata: dict[int, Codes]

    @classmethod
    def plain(cls, sums: RateSums) -> _Powered:
        """PPI++ without strata."""
        weight = sums.ppi_weight
        return cls(sums.ppi(weight), weight, {})


def joint_strata(columns: Sequence[UnitColumn], n_units: int) -> Codes:
    """The cell of the columns' joint values that each unit is in, (units,); 0 without columns."""
    if not columns:
        return np.zeros(n_units, dtype=np.intp)
    cells = np.column_stack([column.codes for column in columns])
    return np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)


def large_strata(strata: Codes, parts: Sequence[Mask], count: Callable[[Mask], int]) -> Codes:
    """Renumber strata (units,) so that each has `MIN_STRATUM` of both parts, the labelled units and
    the rest, each (units,), by `count`. Smaller ones are one stratum, 0, with the smallest of the
    others if they are too small even so.
    """
    out, number, together = np.zeros(len(strata), dtype=np.intp), 0, np.zeros(2, dtype=np.intp)
    held = {
        stratum: np.array([count((strata == stratum) & part) for part in parts])
        for stratum in np.unique(strata[np.any(parts, axis=0)])
    }
    for stratum in sorted(held, key=lambda each: held[each].min()):
        short = together.any() and together.min() < MIN_STRATUM
        if short or held[stratum].min() < MIN_STRATUM:
            together += held[stratum]
        else:
            number += 1
            out[strata == stratum] = number
    return out if together.any() else np.maximum(out - 1, 0)


def parted(
    features: Array, strata: Codes, member: Mask, out: Writer
) -> tuple[Codes, RateSums | None]:
    """A group's sums by large strata, (rows, strata), or None where that is only one; and in which
    each unit is, (units,), -1 for units that are no `member` of the group.
    """
    parts = [member & (features[:, column] > 0) for column in (0, 4)]
    joined = large_strata(strata, parts, lambda units: out.count(units)[1])
    codes, count = np.where(member, joined, -1), int(joined.max(initial=0)) + 1
    return codes, RateSums(*cell_sums(features, codes, count, out)) if count > 1 else None


def cell_sums(features: Array, codes: Codes, count: int, out: Writer) -> Array:
    """Sum features (units, k) over the units of each code, in every resample: (k, rows, count)."""
    own, n_types = codes >= 0, out.resamples.n_types
    cell = out.clusters[own] * count + codes[own]
    size = n_types * count
    cells = [np.bincount(cell, weights=column[own], minlength=size) for column in features.T]
    shaped = np.stack(cells, axis=1).reshape(n_types, count, len(cells))
    return np.moveaxis(out.resamples.totals(shaped), -1, 0)


@dataclass(frozen=True)
class _GradersRates:
    """Rates of one grader. `reference`, `graded` and `features` are by unit, `sums` by row and
    group. What is said of every two groups holds together over so many `rubrics`.
    """

    out: Writer
    groups: _Groups
    grader: str
    graded: Mask
    reference: Array
    features: Array
    sums: RateSums
    rubrics: int = 1

    def add_rows(self, powered: _Powered) -> None:
        """All rows of this grader; before people have labelled anything its raw rates."""
        if np.isnan(self.reference).all():
            self.add_raw_and_ppi(powered)
            return
        pooled = RateSums(*(each.sum(axis=1, keepdims=True) for each in self.sums))
        useless = self._add_error_rates(pooled)
        differ = set() if useless else self._add_subject_bias(pooled)
        self.add_raw_and_ppi(powered)
        inverted = invert(self.sums.raw, pooled.sensitivity, pooled.specificity)
        labelled = ~np.isnan(self.reference)
        for at, name, member in self.groups:
            mine = self.graded & member
            if not mine.any():
                continue
            needless = None if (mine & ~labelled).any() else NOTHING_UNLABELLED
            about = Remark("errors_differ") if name in differ else ""
            why = needless or useless
            self._add_corrected("rate_rogan_gladen", inverted[:, at], name, mine, why, about)
        self._add_differences(powered)

    def add_raw_and_ppi(self, powered: _Powered) -> None:
        """Add each group's raw rate, and PPI++."""
        labelled = ~np.isnan(self.reference)
        for at, name, member in self.groups:
            mine = self.graded & member
            if not mine.any():
                continue
            self._add("rate_raw", self.sums.raw[:, at], name, mine)
            if not labelled.any():
                continue
            why = None if (mine & labelled).any() else Remark("no_pairable_units")
            own: Note = "" if (mine & ~labelled).any() else PEOPLES_OWN
            strata = powered.strata.get(at, np.where(mine, 0, -1))
            count = int(strata.max()) + 1
            within: Note = f"in {count} strata" if count > 1 else ""
            if self.out.subset != BINARY_ALL and self.out.count(mine & labelled)[0] < FEW_UNITS:
                within = FEW
            about = join_notes(own, within)
            reach = None if why else self._reach(strata, float(powered.weight[0, at]))
            self._add_corrected("rate_ppi", powered.rates[:, at], name, mine, why, about, reach)

    def _reach(self, strata: Codes, weight: float) -> Reach | None:
        """Return the score reach of a PPI++ rate with this weight on the grader.

        `strata` (units,) are -1 outside.
        """
        count = int(strata.max()) + 1
        inside = strata[:, None] == np.arange(count)
        columns = (inside[:, :, None] * self.features[:, None, :]).reshape(len(strata), -1)
        return ppi_reach(self.out.each_cluster(columns).reshape(-1, count, 6), weight)

    def _add_differences(self, powered: _Powered) -> None:
        """Add the differences of the groups' corrected rates, if there are two that are defined."""
        found = {
            at: self.out.rows.get("rate_ppi", "humans", self.grader, self.out.subset, name)
            for at, name, _ in self.groups
        }
        of = {at: row for at, row in found.items() if row and not np.isnan(row["estimate"])}
        if len(of) < 2:
            return
        rates = self.out.resamples.plain(powered.rates)[:, list(of)]
        both = self.graded & ~np.isnan(self.reference)
        labelled = [self.out.count(both & member)[1] for at, _, member in self.groups if at in of]
        rates[0] = clipped(rates[0])  # as the rows of the rates have it
        # A grade that is missing is an answer, too.
        units = np.column_stack([member for at, _, member in self.groups if at in of])
        resamples = self.out.resamples
        of_type = resamples.cluster_sums(self.out.clusters, units)
        answered = resamples.each_cluster(of_type) > 0
        add_difference_rows(
            self.out, self.grader, list(of.values()), rates, np.array(labelled), answered,
            self.rubrics,
        )  # fmt: skip

    def _add_error_rates(self, pooled: RateSums) -> Remark | None:
        """Add sensitivity and specificity overall and by group; return why they cannot be used, if
        so.

        J is not given by group: with few units of the rarer verdict it tells little.
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
        """Add the bias of Rogan-Gladen with pooled error rates on each subject; return the subjects
        whose bias is significant.

        On the labelled units people's own rate is known: the corrected rate of the grader there,
        minus people's, is its bias. Holm's correction over a grader's subjects.
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
        reach: Reach | None = None,
    ) -> None:
        """A corrected rate within [0, 1], of PPI++ with its `reach`; or `why` there is none."""
        if why:
            self._add(statistic, np.full(len(values), np.nan), name, units, reason=why)
            return
        counts, known = self.out.count(units), ~np.isnan(self.reference)
        labelled = self.out.count(units & known)
        pooled = statistic == "rate_rogan_gladen"
        rests_on = self.out.count(self.graded & known) if pooled else labelled
        if pooled:  # what it may be off by is not bounded by people's own labels
            reach = Reach(np.inf, np.inf, rests_on[1])
        found = self.out.resamples.interval(values, rests_on[1])
        if found.low > 1 or found.high < 0:
            found = Interval.undefined(IMPOSSIBLE)
        outside = "clipped to [0, 1]" if found.estimate < 0 or found.estimate > 1 else ""
        note = join_notes(about, outside, Remark("labelled_by_people", (labelled[0],)))
        drawn = self.out.resamples.plain(values)[1:]
        within = corrected_interval(found, drawn, counts[0], rests_on, reach)
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
