"""Each subject's rate of affirmative verdicts: as a grader counts it, and as people would.

The grader's verdicts on everything that it graded are corrected with the part that people labelled,
in two ways (see `analysis.subjects.plain`). Rogan-Gladen takes its error rates from all subjects
together: by subject they rest on a handful of units of the rarer verdict. That is wrong where a
grader errs differently from subject to subject, so it is tested. PPI++ is computed by subject and
makes no such assumption.

*People's rate* means the same everywhere: the mean over units of the share of people who affirm the
unit, as in `subject_score` and `prevalence`. Unlike the rate of majority verdicts it does not
depend on how many people labelled a unit, and has no ties.

The side of the pairs that a subject favours is where its answers are affirmative more often. The
two answers to a pair are compared with one another: their difference is -1, 0 or 1, by people
and by a grader, and people's mean difference is estimated from both by prediction-powered inference
(PPI++, Angelopoulos et al. 2023b), with a weight on the grader of its own. What both sides of a
pair share drops out, so that a difference is surer than the two sides' rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval, interval, unseen
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.bootstrap.shares import Reach
from evenhand.analysis.bootstrap.significance import bootstrap_p, holm
from evenhand.analysis.labels.combine import units_of_both_sides
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL, LabelMatrix
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.notes import Note, Reason, Remark, join_notes
from evenhand.analysis.results import from_to
from evenhand.analysis.subjects.plain import (
    RateSums,
    clipped,
    corrected_interval,
    invert,
    ppi_reach,
    rate_features,
    stratified_ppi,
)
from evenhand.analysis.subjects.scores import add_difference_rows, people_means, reach_together
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.analysis.writer import About, RubricView, Writer

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


def add_corrected_rate_rows(out: RubricView) -> None:
    """Rates by subject (at): people's own, and each grader's before and after correction.

    The labels have one row per unit that counts towards a rate. `rate_human` is people's on what
    they labelled; `rate_raw`, `rate_rogan_gladen` and `rate_ppi` are for all units that the grader
    graded; `sensitivity`, `specificity` and `youden_j` of those that people labelled too.
    `rogan_gladen_bias` is the corrected rate minus people's own rate on these. Where the labelled
    sample is stratified, PPI++ is too. Differences between subjects hold together over all rubrics.
    Where the units table names no subject, all units are one. Without people there is `rate_raw`
    alone.
    """
    labels, request = out.labels, out.request
    strata, rubrics = labels.columns(request.strata), request.rubrics
    reference, groups = people_means(labels), _Groups.of(labels)
    _add_people_rows(out, reference, groups)
    for model, grades in graded_verdicts(labels).items():
        features = rate_features(reference, grades)
        sums = groups.sums(features, out)
        grader = labels.raters[model]
        graded = ~np.isnan(grades)
        rates = _GradersRates(out, groups, grader, graded, reference, features, sums, rubrics)
        rates.add_rows(groups.powered(features, joint_strata(strata, len(grades)), sums, out))


def add_part_rate_rows(whole: RubricView, columns: Sequence[UnitColumn]) -> None:
    """Rates by subject (at) in every part of the sample, subset "column=value|binary": people's
    own, each grader's, and its PPI++ with the errors that it makes in that part.

    A rate that rests on fewer than `FEW_UNITS` labelled units says so. Without people there is
    `rate_raw` alone.
    """
    labels = whole.labels
    reference, groups, grades = people_means(labels), _Groups.of(labels), graded_verdicts(labels)
    for part, chosen in (part for column in columns for part in column.parts()):
        out, inside = whole.on(part + BINARY), groups.within(chosen)
        _add_people_rows(out, reference, inside)
        for model, own in grades.items():
            features, grader = rate_features(reference, own), labels.raters[model]
            sums, graded = inside.sums(features, out), ~np.isnan(own)
            rates = _GradersRates(out, inside, grader, graded, reference, features, sums)
            rates.add_raw_and_ppi(_Powered.plain(sums))


def graded_verdicts(labels: LabelMatrix) -> dict[int, Array]:
    """The verdicts (units,) of every grader that has any, 1 or 0, NaN for none."""
    verdicts = labels.verdict_values
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
            about, reach = join_notes(own, within), None
            if not why:
                inside = strata[:, None] == np.arange(count)
                columns = (inside[:, :, None] * self.features[:, None, :]).reshape(len(strata), -1)
                sums = self.out.each_cluster(columns).reshape(-1, count, 6)
                reach = ppi_reach(sums, float(powered.weight[0, at]))
            self._add_corrected("rate_ppi", powered.rates[:, at], name, mine, why, about, reach)

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
        of_type = self.out.resamples.cluster_sums(self.out.clusters, units)
        answered = self.out.resamples.each_cluster(of_type) > 0
        given = list(of.values()), rates, np.array(labelled), answered, self.rubrics
        add_difference_rows(self.out, self.grader, *given)

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
        self.out.add(statistic, within, counts, a="humans", b=self.grader, at=name, note=note)

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


STATISTIC = "rate_side_difference_ppi"


def add_side_difference_rows(view: RubricView, sign: Array) -> None:
    """Add `rate_side_difference_ppi` of every subject (at), subset "side=A>B|binary": the rate of
    affirmative answers to the first of the declared sides minus that to the second, by each grader.

    The labels have a row for each answer; `sign` (units,) is 1 where side a is the first of the
    sides, -1 where side b is, 0 where neither is known to be. An answer without its counterpart is
    left out, and a note says so. All intervals of a grader hold together, over all rubrics.
    """
    labels, request = view.labels, view.request
    a, b = units_of_both_sides(labels)
    if not len(a) or not labels.humans or not labels.models:
        return
    known = sign[a] != 0
    a, b, forward = a[known], b[known], sign[a[known]] > 0
    first, second = np.where(forward, a, b), np.where(forward, b, a)
    subset = f"side={from_to(*request.settings.sides)}{BINARY}"
    out = view.on(subset, labels.clusters[first])
    subject = labels.subject if labels.subjects else np.zeros(len(labels.codes), dtype=np.intp)
    subjects, people = labels.subjects or ("",), people_means(labels)
    of_people = people[first] - people[second]
    for model, own in graded_verdicts(labels).items():
        answered = (labels.side >= 0) & (sign != 0) & ~np.isnan(own) & (subject >= 0)
        answers = np.bincount(subject[answered], minlength=len(subjects))
        graded = own[first] - own[second]
        both, labelled = ~np.isnan(graded), ~np.isnan(graded) & ~np.isnan(of_people)
        pairs = [subject[first] == k for k in range(len(subjects))]
        with_label = [out.count(labelled & mine) for mine in pairs]
        features, clusters = pair_features(of_people, graded), np.array([n for _, n in with_label])
        found = _paired(out, features, subject[first], clusters, 0.05 / request.rubrics)
        for k in np.flatnonzero(answers):
            mine, alone = both & pairs[k], int(answers[k]) - 2 * int((both & pairs[k]).sum())
            about = About(a="humans", b=labels.raters[model], at=subjects[k])
            if not mine.any() or not with_label[k][0]:
                why = Remark("no_pairable_units" if mine.any() else "one_side_only")
                out.add(STATISTIC, Interval.undefined(why), mine, **about)
                continue
            about["note"] = join_notes(
                PEOPLES_OWN if out.count(mine) == with_label[k] else "",
                FEW if with_label[k][0] < FEW_UNITS else "",
                Remark("one_side_left_out", (alone,)) if alone else "",
                Remark("labelled_by_people", (with_label[k][0],)),
            )
            out.add(STATISTIC, found[k], mine, **about)


def _paired(
    out: Writer, features: Array, subject: Codes, clusters: Codes, alpha: float
) -> list[Interval]:
    """Return people's mean difference within pairs of each subject, from the features of pairs
    (pairs, 7) and whose they are (pairs,); the bounds hold together but in `alpha` of studies.
    `clusters` (subjects,) have a pair that people labelled.
    """
    rates, alone = paired_ppi(cell_sums(features, subject, len(clusters), out))
    drawn = out.resamples.plain(rates)
    found = [interval(drawn[:, k], count) for k, count in enumerate(clusters.tolist())]
    at = np.flatnonzero([not np.isnan(each.low) for each in found])
    if len(at):
        reach = paired_reach(drawn[1:, at], alone[at], clusters[at], alpha)
        for k, apart in zip(at.tolist(), reach.tolist(), strict=True):
            middle = float(np.clip(found[k].estimate, -1.0, 1.0))
            found[k] = replace(found[k], low=middle - apart, high=middle + apart)
    ends = np.clip([[each.estimate, each.low, each.high] for each in found], -1.0, 1.0).tolist()
    return [
        replace(each, estimate=estimate, low=low, high=high)
        for each, (estimate, low, high) in zip(found, ends, strict=True)
    ]


def pair_features(people: Array, graded: Array) -> Array:
    """Features of each pair whose sums `paired_ppi` takes, (pairs, 7), from the difference between
    its two answers by people and by a grader, each (pairs,), NaN for none.
    """
    return np.column_stack([rate_features(people, graded), np.nan_to_num(graded) ** 2])


def paired_ppi(sums: Array) -> tuple[Array, Array]:
    """People's mean difference by PPI++, (rows, ...), and the mean difference of the labelled pairs
    alone, (...), from sums of `pair_features`, (7, rows, ...).
    """
    *six, squares = sums
    parts = RateSums(*six)
    weight = parts.weight_for(ratio(squares, parts.labelled + parts.rest) - parts.raw**2)
    return parts.ppi(weight), parts.people[0]


def paired_reach(drawn: Array, labelled: Array, clusters: Codes, alpha: float) -> Array:
    """How far from the estimates the bounds of all subjects lie, (subjects,), so that they hold
    together. `drawn` are resampled differences (rows, subjects), `labelled` those of the labelled
    pairs alone, in so many `clusters` (subjects,).

    A difference varies as if one pair more favoured either side, as two rates with a case more on
    either side do (Agresti & Caffo 2000): these lie 1 - m and 1 + m from the mean m. Nor is it
    surer than the labelled clusters are that none goes the other way (`boundary.unseen`).
    """
    more = 2.0 * (1.0 + labelled**2) / clusters**2
    reach = reach_together(lambda some: drawn[:, some], clusters, [more], alpha)
    tail = alpha / 2.0 / len(clusters)
    least = np.array([unseen(count, tail) for count in clusters.tolist()])
    return np.maximum(reach, least * (1.0 + np.abs(labelled)))
