"""Graders' probabilities beside people's shares, where many people label each unit.

And beside the noise ceiling: how far apart two groups of as many people are. The estimators are
those of `distances`, so that a grader looks no worse for being compared with few people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from evenhand.analysis.agreement.counts import category_shares, majority_codes
from evenhand.analysis.agreement.pairs import MAX_LISTED_RATERS
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.distributions import distances
from evenhand.analysis.distributions.response_sets import (
    AFFIRMED_SHARES,
    RIGHT_SHARES,
    affirmed,
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
from evenhand.analysis.writer import About, Writer

TOTAL_VARIATION, EXCESS = "total_variation", "total_variation_excess"
SQUARED, WORTH = "squared_distance", "people_worth"
CROSS_ENTROPY, CROSS_EXCESS, ENTROPY = "cross_entropy", "cross_entropy_excess", "people_entropy"
FORCED, FORCED_DIFFERENCE = "forced_choice_agreement", "forced_choice_difference"
SQUARED_DIFFERENCE = "squared_distance_difference"
RIGHT, SEVERAL, AFFIRMED = "response_set_agreement", "response_set_several", "share_rule_agreement"
HALVES = "halves"


def add_distribution_rows(rows: ResultRows, labels: LabelMatrix, resamples: Resamples) -> None:
    """For people, every grader and, beside graders, the baselines; nothing unless at least
    `MIN_PEOPLE` people labelled each of at least `MIN_UNITS` units, which alone count.

    `total_variation`, `total_variation_excess`, `squared_distance`, `people_worth`,
    `cross_entropy`, `cross_entropy_excess` and `people_entropy` hold probabilities against shares;
    `forced_choice_agreement`, `response_set_agreement`, `response_set_several` and
    `share_rule_agreement` hold labels against one right answer and several; and two graders are
    compared by `forced_choice_difference` and `squared_distance_difference`.
    """
    for view in labels.views:
        out = Writer.of(rows, view, resamples)
        humans = view.members("human")
        enough = (view.codes[:, list(humans)] >= 0).sum(axis=1) >= MIN_PEOPLE
        if out.count(enough)[0] < MIN_UNITS:
            continue
        everybody = People.of(view, humans)
        _add_people_rows(out, everybody)
        compared = [_compared(out, labels, view, grader) for grader in labels.models]
        for each in compared:
            _add_rows(each)
        if compared:
            for baseline in _baselines(out, view, everybody):
                _add_rows(_Compared(out, view, everybody, baseline))
        if len(compared) <= MAX_LISTED_RATERS:
            for first, second in combinations(compared, 2):
                _add_difference_rows(first, second)


@dataclass(frozen=True)
class _Compared:
    """One grader, or baseline, and the people that it is held against."""

    out: Writer
    view: Coded
    people: People
    stated: Stated

    @property
    def held(self) -> Mask:
        """The units that both have something to say of, (units,)."""
        return self.people.enough & self.stated.known

    @property
    def told(self) -> Mask:
        """The units with a label and a majority without a tie, (units,)."""
        return self.people.enough & self.stated.labelled & (self.majority >= 0)

    @property
    def majority(self) -> Codes:
        """What most people say, (units,), -1 where that is tied."""
        return majority_codes(self.people.counts)

    @property
    def right(self) -> Array:
        """How often its label is what most people say, (units,): 0 or 1 of a grader."""
        said = np.take_along_axis(self.stated.label, self.majority[:, None].clip(0), axis=1)
        return np.asarray(said[:, 0])

    @property
    def squared(self) -> Array:
        """Squared distance from all people, (units,)."""
        return distances.squared_distance(self.stated.shares, self.people.counts)


def _compared(out: Writer, labels: LabelMatrix, view: Coded, grader: int) -> _Compared:
    people = People.of(view, view.people_beside(grader))
    return _Compared(out, view, people, stated_by(labels, view, grader))


def _baselines(out: Writer, view: Coded, people: People) -> list[Stated]:
    counts = people.counts * people.enough[:, None]
    shares = category_shares(counts, view, out.resamples)[0]
    return baselines_at(shares, BASELINES, len(counts))


def _means(out: Writer, units: Mask, *features: Numbers) -> list[Array]:
    """Means over some units of features (units,) or (units, k), each column (rows,)."""
    columns = np.column_stack([*features, np.ones(len(units))])
    sums = out.sums(np.where(units[:, None], columns, 0.0))
    return list(ratio(sums[:, :-1], sums[:, -1:]).T)


def _add_people_rows(out: Writer, people: People) -> None:
    """What people are to each other: the ceiling for graders, and the floor of a cross entropy."""
    counts, units = people.counts, people.enough
    quarter, half, steps, one_person, entropy, others, number = _means(
        out,
        units,
        people.groups,
        people.one_person,
        distances.entropy(counts),
        distances.cross_entropy_of_others(counts),
        people.number,
    )
    add = partial(out.add, units=out.count(units), a="humans")
    whole = distances.between_whole_groups(quarter, half, steps)
    as_many = f"another group of as many people, {number[0]:.4g} a unit"
    add(TOTAL_VARIATION, whole, note=f"{as_many}; carried on from halves")
    add(TOTAL_VARIATION, half, at=HALVES, note="two halves of the people")
    add(SQUARED, one_person, note="one person's label")
    add(CROSS_ENTROPY, others, note="a person's label by the shares of the others")
    add(ENTROPY, entropy)
    for share in RIGHT_SHARES:
        several = right_labels(counts, share).sum(axis=1) > 1
        add(SEVERAL, *_means(out, units, several), at=f"{share:g}")
        by_others = right_by_others(counts, share)
        add(RIGHT, *_means(out, units, by_others), at=f"{share:g}", note="a person by the others")


def _add_rows(of: _Compared) -> None:
    held, certain = of.held, of.out.count(of.held & of.stated.certain)[0]
    note: Note = of.stated.method
    if certain and of.stated.name not in BASELINES:
        hard = Remark("hard_labels") if certain == of.out.count(held)[0] else ""
        note = join_notes(note, hard or f"hard labels taken as certain on {certain} units")
    add = partial(of.out.add, reason="no_pairable_units", a="humans", b=of.stated.name)
    _add_distance_rows(of, partial(add, units=of.out.count(held)), note)
    _add_cross_entropy_rows(of, add)
    _add_label_rows(of, add)


def _add_distance_rows(of: _Compared, add: Callable[..., object], note: Note) -> None:
    people = of.people
    apart, squared, quarter, half, steps, one_person = _means(
        of.out,
        of.held,
        distances.total_variation(of.stated.shares, people.counts),
        of.squared,
        people.groups,
        people.one_person,
    )
    worth = distances.worth_people(squared, one_person)
    most = distances.MOST_PEOPLE
    capped = Remark("people_or_more", (most,)) if worth[0] >= most else ""
    add(TOTAL_VARIATION, apart, note=note)
    add(EXCESS, apart - distances.between_whole_groups(quarter, half, steps), note=note)
    add(SQUARED, squared, note=note)
    unclear = "no_variation" if of.held.any() else "no_pairable_units"
    add(WORTH, worth, note=join_notes(note, capped), reason=unclear)


def _add_cross_entropy_rows(of: _Compared, add: Callable[..., object]) -> None:
    """On the units with probabilities: a certainty has no cross entropy, or an infinite one."""
    units = of.held & ~of.stated.certain
    shares, counts = of.stated.shares, of.people.counts
    raised = of.out.count(units & ((shares < distances.LEAST) & (counts > 0)).any(axis=1))[0]
    note = f"a probability below {distances.LEAST:g} counts as that on {raised} units"
    own, others = _means(
        of.out,
        units,
        distances.cross_entropy(shares, counts),
        distances.cross_entropy_of_others(counts),
    )
    about = {
        "units": of.out.count(units),
        "note": join_notes(of.stated.method, note if raised else ""),
        "reason": Remark("hard_labels") if of.held.any() else "no_pairable_units",
    }
    add(CROSS_ENTROPY, own, **about)
    add(CROSS_EXCESS, own - others, **about)


def _add_label_rows(of: _Compared, add: Callable[..., object]) -> None:
    """The label against most people's, against the right ones, and against a share of people."""
    units, label, counts = of.people.enough & of.stated.labelled, of.stated.label, of.people.counts
    on, told = of.out.count(units), of.told
    untold = of.out.count(units & ~told)[0]
    note = f"{untold} tied units left out" if untold else ""
    add(FORCED, *_means(of.out, told, of.right), units=of.out.count(told), note=note)
    right = [(label * right_without_one(counts, share)).sum(axis=1) for share in RIGHT_SHARES]
    for share, values in zip(RIGHT_SHARES, _means(of.out, units, *right), strict=True):
        add(RIGHT, values, units=on, at=f"{share:g}")
    if of.view.is_binary:
        same = [
            np.where(affirmed(counts, share), label[:, 0], label[:, 1]) for share in AFFIRMED_SHARES
        ]
        for share, values in zip(AFFIRMED_SHARES, _means(of.out, units, *same), strict=True):
            add(AFFIRMED, values, units=on, at=f"{share:g}")


def _add_difference_rows(one: _Compared, other: _Compared) -> None:
    """The first less the second, on the units that both stand on."""
    out, names = one.out, About(a=one.stated.name, b=other.stated.name)
    told, held = one.told & other.told, one.held & other.held
    for statistic, units, apart in (
        (FORCED_DIFFERENCE, told, one.right - other.right),
        (SQUARED_DIFFERENCE, held, one.squared - other.squared),
    ):
        values = _means(out, units, apart)[0]
        out.add(statistic, values, units, reason="no_pairable_units", **names)
