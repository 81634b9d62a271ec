"""Graders' probabilities compared with humans' shares, where many humans label each unit.

The noise ceiling is how far apart two groups of as many humans are. The estimators are those of
`distances`, so that a grader looks no worse for being compared with few humans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from evenhand.analysis.agreement.counts import category_shares, majority_codes
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.distributions import distances
from evenhand.analysis.distributions.response_sets import (
    RIGHT_SHARES,
    right_by_others,
    right_labels,
    right_without_one,
)
from evenhand.analysis.distributions.stated import (
    MIN_PEOPLE,
    MIN_UNITS,
    People,
    Stated,
    baselines_at,
    stated_by,
)
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.notes import Note, Remark, join_notes
from evenhand.analysis.results import BASELINES, ResultRows
from evenhand.analysis.types import Array, Codes, Mask, Numbers
from evenhand.analysis.writer import Writer

TOTAL_VARIATION, EXCESS = "total_variation", "total_variation_excess"
SQUARED, WORTH = "squared_distance", "people_worth"
FORCED = "forced_choice_agreement"
RIGHT, SEVERAL = "response_set_agreement", "response_set_several"
HALVES = "halves"


def add_distribution_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """Add rows for humans, every grader and the baselines.

    Nothing is added without graders, or unless at least `MIN_PEOPLE` humans labelled each of at
    least `MIN_UNITS` units, which alone count.

    `total_variation`, `total_variation_excess`, `squared_distance` and `people_worth` compare
    probabilities with shares; `forced_choice_agreement`, `response_set_agreement`,
    `response_set_several` compare labels with one right answer and with
    several.
    """
    for view in labels.views if labels.models else ():
        out = Writer.of(rows, view, resamples)
        humans = view.members("human")
        enough = (view.codes[:, list(humans)] >= 0).sum(axis=1) >= MIN_PEOPLE
        if out.count(enough)[0] < MIN_UNITS:
            continue
        everybody = People.of(view, humans)
        _add_people_rows(out, everybody)
        for grader in labels.models:
            beside = view.people_beside(grader)
            whom = everybody if beside == humans else People.of(view, beside)
            _add_rows(_Compared(out, view, whom, stated_by(labels, view, grader)))
        for baseline in _baselines(out, view, everybody):
            _add_rows(_Compared(out, view, everybody, baseline))


@dataclass(frozen=True)
class _Compared:
    """A grader or baseline, with the humans that it is compared with."""

    out: Writer
    view: Coded
    people: People
    stated: Stated

    @property
    def held(self) -> Mask:
        """Mask (units,) of the units that both the humans and the grader rated."""
        return self.people.enough & self.stated.known

    @property
    def labelled(self) -> Mask:
        """Mask (units,) of the units with a label by the grader."""
        return self.people.enough & self.stated.labelled

    @property
    def told(self) -> Mask:
        """Mask (units,) of the `labelled` units whose majority is not tied."""
        return self.labelled & (self.majority >= 0)

    @cached_property
    def majority(self) -> Codes:
        """Majority of the humans, (units,), -1 where it is tied."""
        return majority_codes(self.people.counts)

    @cached_property
    def right(self) -> Array:
        """Probability that its label is the majority's, (units,): 0 or 1 for a grader."""
        said = np.take_along_axis(self.stated.label, self.majority[:, None].clip(0), axis=1)
        return np.asarray(said[:, 0])

    @cached_property
    def squared(self) -> Array:
        """Squared distance from all humans, (units,)."""
        return distances.squared_distance(self.stated.shares, self.people.counts)


def _baselines(out: Writer, view: Coded, people: People) -> list[Stated]:
    counts = people.counts * people.enough[:, None]
    shares = category_shares(counts, view, out.resamples)[0]
    return baselines_at(shares, BASELINES, len(counts))


def _means(out: Writer, *parts: tuple[Mask, Sequence[Numbers]]) -> list[list[Array]]:
    """Return means over the units of each part, (units,), of its features (units,): (rows,) each.

    All in one product with the resamples' weights, which is the most expensive step.
    """
    columns = [
        np.where(units, each, 0.0)
        for units, features in parts
        for each in (*features, np.ones(len(units)))
    ]
    sums = iter(out.sums(*columns).T)
    found = ([next(sums) for _ in range(len(features) + 1)] for _, features in parts)
    return [[ratio(each, count) for each in totals] for *totals, count in found]


def _add_people_rows(out: Writer, people: People) -> None:
    """Add rows of humans: the ceiling for graders."""
    counts, units = people.counts, people.enough
    several = [right_labels(counts, share).sum(axis=1) > 1 for share in RIGHT_SHARES]
    by_others = [right_by_others(counts, share) for share in RIGHT_SHARES]
    features = [*people.groups.T, people.one_person]
    (quarter, half, steps, one_person), several, by_others = _means(
        out, (units, features), (units, several), (units, by_others)
    )
    add = partial(out.add, units=out.count(units), a="humans")
    whole = distances.between_whole_groups(quarter, half, steps)
    add(TOTAL_VARIATION, whole, note="another group of as many people; carried on from halves")
    add(TOTAL_VARIATION, half, at=HALVES, note="two halves of the people")
    add(SQUARED, one_person, note="one person's label")
    for share, values, right in zip(RIGHT_SHARES, several, by_others, strict=True):
        add(SEVERAL, values, at=f"{share:g}")
        add(RIGHT, right, at=f"{share:g}", note="a person by the others")


def _add_rows(of: _Compared) -> None:
    people, label = of.people, of.stated.label
    right = [
        (label * right_without_one(people.counts, share)).sum(axis=1) for share in RIGHT_SHARES
    ]
    apart = distances.total_variation(of.stated.shares, people.counts)
    shares, [forced], right = _means(
        of.out,
        (of.held, [apart, of.squared, *people.groups.T, people.one_person]),
        (of.told, [of.right]),
        (of.labelled, right),
    )
    add = partial(of.out.add, reason="no_pairable_units", a="humans", b=of.stated.name)
    _add_distance_rows(of, add, shares)
    untold = of.out.count(of.labelled & ~of.told)[0]
    note = f"{untold} tied units left out" if untold else ""
    add(FORCED, forced, units=of.out.count(of.told), note=note)
    for share, values in zip(RIGHT_SHARES, right, strict=True):
        add(RIGHT, values, units=of.out.count(of.labelled), at=f"{share:g}")


def _add_distance_rows(of: _Compared, add: Callable[..., object], means: list[Array]) -> None:
    apart, squared, quarter, half, steps, one_person = means
    held, certain = of.out.count(of.held), of.out.count(of.held & of.stated.certain)[0]
    note: Note = of.stated.method
    if certain and of.stated.name not in BASELINES:
        hard = Remark("hard_labels") if certain == held[0] else ""
        note = join_notes(note, hard or f"hard labels taken as certain on {certain} units")
    worth = distances.worth_people(squared, one_person)
    most = distances.MOST_PEOPLE
    capped = Remark("people_or_more", (most,)) if worth[0] >= most else ""
    excess = apart - distances.between_whole_groups(quarter, half, steps)
    for statistic, values in ((TOTAL_VARIATION, apart), (EXCESS, excess), (SQUARED, squared)):
        add(statistic, values, units=held, note=note)
    unclear = "no_variation" if held[0] else "no_pairable_units"
    add(WORTH, worth, units=held, note=join_notes(note, capped), reason=unclear)
