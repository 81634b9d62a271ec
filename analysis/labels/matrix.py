"""Labels as arrays, from which every statistic is computed, and facts about the rated units from
the units table: clusters, subjects, slices, groups, lengths.

`LabelMatrix` holds all labels of one rubric; `Coded` is one view of it (the rubric's own
categories, or the binary label), which coefficients are computed from. `UnitFacts` are the facts.

*Copies.* Labels may be duplicates, such as one file under two names. The agreement of a grader with
a human whose labels it repeats says nothing about the grader. But two raters who are nearly always
right also agree nearly always. So a grader is taken for a copy only if it also has the human's
label where no other human has it. Two humans with identical labels are reported, and both kept.

*Weights.* Units are weighted if pairs had unequal probabilities p of being selected for humans. A
unit that humans or adjudicators labelled represents 1 / p units (Horvitz & Thompson 1952); every
estimate is a ratio of such sums (Hajek 1971). A unit that only graders labelled was not selected,
with probability 1 - p, and represents 1 / (1 - p). Each of the two parts represents all units. As
units that are nearly always selected are hardly ever in the second part, it has all of them, those
that people labelled, too, and each represents itself (`LabelMatrix.times_in_rest`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from evenhand.analysis.labels.scale import Level, Scale
from evenhand.analysis.types import Array, Codes, DataFrame, Frequency, Integers, Labels, Mask
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.settings.analysis import OrderedWeights
from evenhand.study.tables.columns import INCLUSION
from evenhand.texts import written

WEIGHT, TIMES_IN_REST = "sampling_weight", "times_in_rest"  # columns that `with_weights` adds
_MIN_CHANCE = 0.05  # lowest probability of not being selected: a unit represents at most 20 units
MAX_VALUES = 50  # most values of a column to slice by: with more, a column identifies units
MOST_SIDES = 12  # most values of a column of annotators that may explain their labels
MIN_EQUAL = 0.98  # lowest share of units with the same label at which a grader may be a copy
MIN_FOLLOWED = 0.9  # lowest share with the human's label of the units on which that is unique
MIN_UNITS, MIN_UNIQUE = 30, 5
"""To suspect a copy: fewest units that both labelled, and fewest on which the human's label is
unique (for two humans: on which the first did not choose their most frequent category)."""
BINARY = "|binary"  # suffix of `subset` for the binary label
BINARY_ALL = "all" + BINARY
COLLAPSED = "|collapsed"  # suffix of `subset` for a rubric's coarser categories
AFFIRMATIVE = "affirmative"
UNCLEAR = "unclear"
MIN_COMPLETE, _MAX_COMPLETE = 10, 12  # fewest units and most raters of a complete block
FEWEST_CLUSTERS_FOR_PATTERNS = 10_000  # from which resampling patterns of labels is faster
MOST_POINTS_OF_GRID = 201  # most different numbers that kappa with linear weights does not round
_MAX_REPEATING = 100  # raters above which units with the same labels are rare, and not looked for
KIND_ORDER = {"human": 0, "adjudicator": 1, "model": 2}


def with_weights(units: DataFrame | None, ratings: DataFrame, cluster: str) -> DataFrame | None:
    """Return a `units` table with the weights of one rubric's rated units, from the column
    `inclusion_probability`; unchanged without this column.

    Weights are 1 on average over the clusters (`UnitFacts.clusters`) that humans or adjudicators
    labelled, and over the rest. Raises InputError unless rated units have 0 < probability <= 1.

    >>> import pandas as pd
    >>> units = pd.DataFrame({"unit_id": ["u1", "u2"], "inclusion_probability": [0.2, 0.6]})
    >>> people = pd.DataFrame({"unit_id": ["u1", "u2"], "rater_kind": "human"})
    >>> with_weights(units, people, "pair")["sampling_weight"].tolist()
    [1.5, 0.5]
    """
    if units is None or INCLUSION not in units:
        return units
    table = units.drop_duplicates("unit_id").set_index("unit_id")
    rated = table.index.isin(ratings["unit_id"])
    if (table.loc[rated, INCLUSION].astype(str).str.strip() == "").all():
        return units
    chance = pd.to_numeric(table[INCLUSION], errors="coerce").to_numpy(dtype=float)
    is_wrong = ~((chance > 0) & (chance <= 1))
    if (is_wrong & rated).any():
        row = int((is_wrong & rated).argmax())
        cell = str(table[INCLUSION].iloc[row])
        raise InputError(
            f"units: {INCLUSION} of item {table.index[row]!r} is {cell!r}; "
            "give every rated item a number above 0 and up to 1, or leave the column out"
        )
    chance = np.where(is_wrong, np.nan, chance)
    name = "cluster_id" if cluster == "pair" else cluster
    clusters = table[name] if name in table and cluster != "unit" else table.index.to_series()
    people_units = ratings.loc[ratings["rater_kind"] != "model", "unit_id"]
    people_clusters = clusters.reindex(people_units).dropna()
    labelled = clusters.isin(people_clusters).to_numpy()  # all units of these clusters
    is_certain = 1.0 - chance < _MIN_CHANCE
    weight, rest_weight = 1.0 / chance, 1.0 / np.where(is_certain, 1.0, 1.0 - chance)
    # Divide by each part's mean over clusters: the first rated unit represents its cluster.
    is_first_of_cluster = ~clusters.where(rated).duplicated().to_numpy() & rated
    for values, part in ((weight, labelled), (rest_weight, ~labelled | is_certain)):
        if (part & is_first_of_cluster).any():
            values /= values[part & is_first_of_cluster].mean()
    is_in_both = labelled & is_certain & (rated & ~labelled).any()
    times_in_rest = np.where(is_in_both, rest_weight / weight, 0.0)
    columns = {WEIGHT: np.where(labelled, weight, rest_weight), TIMES_IN_REST: times_in_rest}
    by_unit = pd.DataFrame(columns, table.index).reindex(units["unit_id"])
    return units.assign(**{name: by_unit[name].to_numpy() for name in columns})


def effective_size(weight: Array) -> float:
    """Return the number of equally weighted clusters that would estimate a mean as precisely, if
    weights are unrelated to the values (Kish 1965): (sum of weights)^2 / (sum of squares).

    >>> effective_size(np.array([1.5, 0.5]))
    1.6
    """
    return float(weight.sum() ** 2 / (weight**2).sum())


@dataclass(frozen=True)
class UnitColumn:
    """A column of a table: `codes` (units,) index its sorted `values`, -1 for empty cells."""

    name: str
    values: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, name: str, cells: Sequence[str]) -> UnitColumn:
        """Return the column with these cells; codes do not depend on the order of rows."""
        values = sorted(set(cells) - {""})
        position = {value: code for code, value in enumerate(values)} | {"": -1}
        return cls(name, tuple(values), np.array([position[cell] for cell in cells], dtype=np.intp))

    def parts(self) -> Iterator[tuple[str, Mask]]:
        """Yield the name and the mask (units,) of each part of the sample that has units."""
        for code, value in enumerate(self.values):
            chosen = np.asarray(self.codes == code)
            if chosen.any():
                yield f"{self.name}={value}", chosen


class UnitFacts:
    """Rated units, in the order of `unit_ids`, with their rows of a `units` table, if there is one.
    Methods that look up a column raise InputError if a unit is not in the table.

    >>> import pandas as pd
    >>> units = pd.DataFrame({"unit_id": ["u1", "u2"], "response_words": ["12", ""]})
    >>> UnitFacts(["u2", "u1"], units).numbers("response_words")
    array([nan, 12.])
    """

    def __init__(self, unit_ids: Sequence[str], units: DataFrame | None) -> None:
        self.ids, self.table = list(unit_ids), None
        if units is not None:
            self.table = units.drop_duplicates("unit_id").set_index("unit_id")

    def cells(self, name: str) -> list[str]:
        """Return a column as texts, "" where a cell is empty or there is no such column."""
        if self._rated is None or name not in self._rated:
            return [""] * len(self.ids)
        column = self._rated[name]
        return column.astype(str).where(column.notna(), "").tolist()

    @cached_property
    def _rated(self) -> DataFrame | None:
        """Rows of the rated units. Raises InputError for a unit without a row."""
        if self.table is None:
            return None
        rows = self.table.index.get_indexer(pd.Index(self.ids))
        if (rows < 0).any():
            missing = [self.ids[row] for row in np.flatnonzero(rows < 0)]
            raise InputError(
                f"the units table has no row for item {missing[0]!r}, which is rated "
                f"({len(missing)} such items); add it or leave the units table out"
            )
        return self.table.iloc[rows]

    def column(self, name: str) -> UnitColumn:
        """Return a column as codes, -1 for all units if there is no such column."""
        return UnitColumn.of(name, self.cells(name))

    def numbers(self, name: str) -> Array:
        """Return a column as numbers, NaN where a cell is not a number."""
        return np.asarray(pd.to_numeric(pd.Series(self.cells(name)), errors="coerce"), dtype=float)

    def texts(self) -> list[str]:
        """Return the names of the text columns: those with a column NAME_words."""
        names = [] if self.table is None else [str(name) for name in self.table]
        return [name for name in names if f"{name}_words" in names]

    def slices(self, names: Sequence[str]) -> tuple[UnitColumn, ...]:
        """Return the columns to slice by. Raises InputError if one is missing."""
        return tuple(self._required_column(name, "slice by") for name in names)

    def clusters(self, by: str = "pair") -> UnitColumn:
        """Return each unit's cluster: by "pair" (`cluster_id`), "unit" (its own), or a column.
        Without a table, or without `cluster_id`, every unit is its own cluster. Raises InputError
        if the column is missing, or has an empty cell.
        """
        name = "cluster_id" if by == "pair" else by
        has_pairs = self.table is not None and "cluster_id" in self.table
        if by == "unit" or (by == "pair" and not has_pairs):
            return UnitColumn.of("unit_id", self.ids)
        clusters = self._required_column(name, "cluster by")
        if (clusters.codes < 0).any():
            empty = self.ids[int(clusters.codes.argmin())]
            raise InputError(
                f"units: {name} of item {empty!r} is empty; every item needs a cluster"
            )
        return clusters

    def weights(self, clusters: UnitColumn) -> Array | None:
        """Return the weight of each cluster, (clusters,); None if all have the same. Raises
        InputError if a cluster has units of different weights.
        """
        if self.table is None or WEIGHT not in self.table:
            return None
        unit_weights = self.numbers(WEIGHT)
        if np.allclose(unit_weights, 1.0):
            return None
        weight = np.zeros(len(clusters.values))
        weight[clusters.codes] = unit_weights
        is_mixed = weight[clusters.codes] != unit_weights
        if is_mixed.any():
            cluster = clusters.values[clusters.codes[int(is_mixed.argmax())]]
            raise InputError(
                f"units: items of {clusters.name} {cluster!r} were not equally likely to be "
                'picked, so it cannot be weighted as a whole; let items be the clusters ("unit")'
            )
        return weight

    def _required_column(self, name: str, purpose: str) -> UnitColumn:
        """Return a column; InputError names the `purpose` of one that is missing."""
        if self.table is None:
            raise InputError(
                f"the column {name!r} to {purpose} needs a units table; give one or leave it out"
            )
        if name not in self.table:
            columns = ", ".join(str(column) for column in self.table) or "none"
            raise InputError(f"units has no column {name!r} to {purpose}; it has {columns}")
        return self.column(name)


def check_values(column: str, values: Sequence[str]) -> None:
    """Raise InputError if a column has too many values to slice by, or one that names a view."""
    if len(values) > MAX_VALUES:
        raise InputError(
            f"the column {column!r} has {len(values)} values, and at most {MAX_VALUES} can be "
            "sliced by; group them into fewer, or slice by another column"
        )
    if reserved := [value for value in values if value.endswith((BINARY, COLLAPSED))]:
        raise InputError(
            f"the column {column!r} has the value {reserved[0]!r}, whose ending names a view of "
            "the labels in the results; rename the value, or slice by another column"
        )


@dataclass(frozen=True)
class Copy:
    """A `rater` with the labels of another on a `share` of the units that both labelled."""

    rater: int
    duplicate_of: int
    share: float


def copies_among(
    codes: Labels, kinds: Sequence[str], times: Frequency | None = None
) -> tuple[Copy, ...]:
    """Return the graders that repeat a human's labels, and identical graders or humans. `codes`
    (units, raters) are -1 if missing; `times` (units,) is the frequency of each unit, 1 by default.

    >>> ann, ben = np.arange(40) % 2, np.arange(40) % 3 % 2
    >>> copies_among(np.column_stack([ann, ben, ben]), kinds=["human", "human", "model"])
    (Copy(rater=2, duplicate_of=1, share=1.0),)
    """
    times = np.ones(len(codes), dtype=np.int64) if times is None else times
    people = [column for column, kind in enumerate(kinds) if kind == "human"]
    graders = [column for column, kind in enumerate(kinds) if kind == "model"]
    copies = []
    for grader, person in product(graders, people):
        share = _share_equal(codes, times, grader, person, MIN_UNITS)
        if share >= MIN_EQUAL:
            # The grader must give the human's label where no other human does.
            others = codes[:, [human for human in people if human != person]]
            is_unique = (others >= 0).any(axis=1) & (others != codes[:, [person]]).all(axis=1)
            followed = _share_equal(codes[is_unique], times[is_unique], grader, person, MIN_UNIQUE)
            if followed >= MIN_FOLLOWED:
                copies.append(Copy(grader, person, share))
    # People who nearly always choose one category may agree by chance, so more is asked of them.
    for raters, fewest_varied in ((graders, 1), (people, MIN_UNIQUE)):
        identical = _identical_pairs(codes, times, raters, fewest_varied)
        copies += [Copy(second, first, 1.0) for first, second in identical]
    return tuple(copies)


def _identical_pairs(
    codes: Labels, times: Frequency, raters: Sequence[int], fewest_varied: int
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of raters with equal labels on all of at least `MIN_UNITS` units that both
    labelled, if the first chose another category than the most frequent one `fewest_varied` times.
    """
    from scipy.sparse import csr_array

    labelled = csr_array(codes[:, list(raters)] >= 0, dtype=np.int64)
    shared = (labelled.T @ (labelled * times[:, None])).tocoo()
    is_enough = (shared.data >= MIN_UNITS) & (shared.row < shared.col)
    for a, b in sorted(zip(shared.row[is_enough], shared.col[is_enough], strict=True)):
        first, second = raters[int(a)], raters[int(b)]
        has_label = codes[:, first] >= 0
        counts = np.bincount(codes[has_label, first], times[has_label])
        is_varied = counts.sum() - counts.max(initial=0) >= fewest_varied
        if is_varied and _share_equal(codes, times, first, second, MIN_UNITS) == 1.0:
            yield first, second


def identical_people(
    copies: Sequence[Copy], raters: Sequence[str], people: Sequence[int]
) -> list[str]:
    """Return a sentence for each group of humans with identical labels; `raters` are names.

    >>> copies = [Copy(1, 0, 1.0), Copy(2, 0, 1.0), Copy(2, 1, 1.0)]
    >>> identical_people(copies, "abc", [0, 1, 2])[0][:48]
    'a, b and c gave the same label on every item tha'
    """
    pairs = [(copy.duplicate_of, copy.rater) for copy in copies if copy.rater in people]
    # A group a, b, c is the pairs (a, b), (a, c), (b, c). Rater a, who repeats nobody, has all.
    repeaters, groups = {rater for _, rater in pairs}, dict[int, list[int]]()
    for first, rater in pairs:
        if first not in repeaters:
            groups.setdefault(first, [first]).append(rater)
    names_by_group = ([raters[column] for column in group] for group in groups.values())
    return [written("note.same_people", names=listed(names)) for names in names_by_group]


def listed(names: Sequence[str]) -> str:
    """Return names joined for use within a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _share_equal(codes: Labels, times: Frequency, first: int, second: int, at_least: int) -> float:
    """Return two raters' share of equal labels on shared units; 0 if these are below `at_least`."""
    shared = (codes[:, first] >= 0) & (codes[:, second] >= 0)
    if times[shared].sum() < at_least:
        return 0.0
    is_equal = codes[shared, first] == codes[shared, second]
    return float(times[shared][is_equal].sum() / times[shared].sum())


def number_terms(values: Sequence[float]) -> Array:
    """Return the three terms of each number, (numbers, 3): (1 - x)^2, 2 x (1 - x) and x^2, with x
    from 0 for the lowest of the `values` to 1 for the highest (Bernstein polynomials of degree 2).

    As the terms sum to one, a table of two raters has 3 x 3 cells for any number of values: sums of
    products of terms. It determines the sums of x, y, x^2, y^2 and xy, which are sufficient for
    coefficients with squared distances.

    >>> number_terms([0, 50, 100]).tolist()
    [[1.0, 0.0, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]]
    """
    x = on_unit_scale(values)
    return np.column_stack([(1.0 - x) ** 2, 2.0 * x * (1.0 - x), x**2])


def on_unit_scale(values: Sequence[float]) -> Array:
    """Return values moved and scaled to the range 0 to 1; 0 if all are equal."""
    numbers = np.asarray(values, dtype=float)
    return np.asarray((numbers - numbers.min()) / max(float(np.ptp(numbers)), 1e-300))


@dataclass(frozen=True)
class Coded:
    """View of the labels: codes and the meaning of the codes. In the binary label code 0 is
    affirmative, so that tables have the affirmative verdict first.
    """

    raters: tuple[str, ...]
    kinds: tuple[str, ...]  # of the raters
    codes: Labels  # (units, raters), -1 missing
    clusters: Codes  # resampling cluster of each unit, (units,)
    categories: tuple[str, ...]
    values: tuple[float, ...]  # of the categories
    level: Level
    subset: str  # name of the units and the view in the results
    copies: tuple[Copy, ...] = ()
    is_number: bool = False
    ordered: OrderedWeights = "linear"  # weights of the deciding kappa, if categories are ordered
    tie_breaks: bool = False  # True if third labels were given because the first two differ

    @cached_property
    def grid(self) -> tuple[Codes, Array]:
        """Grid point of each numeric category, (q,), and the points' values from 0 to 1, (points,).
        Above 201 different numbers, they are rounded to 1/200 of their range.
        """
        position = on_unit_scale(self.values)
        if self.q <= MOST_POINTS_OF_GRID:
            return np.arange(self.q), position
        steps = MOST_POINTS_OF_GRID - 1
        return np.rint(position * steps).astype(np.intp), np.arange(steps + 1) / steps

    @cached_property
    def terms(self) -> Array:
        """Terms by which a label of each category is counted, (q, terms): an indicator of each
        category, or for a number the three terms of `number_terms`.
        """
        return number_terms(self.values) if self.is_number else np.eye(self.q)

    def terms_of(self, codes: Integers) -> Array:
        """Return the terms of labels with these codes (...), (..., terms); 0 where missing."""
        zeros = 0.0 * self.terms[:1]  # the last row, which the code -1 of a missing label selects
        return np.asarray(np.vstack([self.terms, zeros])[codes])

    @property
    def q(self) -> int:
        """Number of categories."""
        return len(self.categories)

    @property
    def is_binary(self) -> bool:
        """True for the binary label."""
        return self.subset.endswith(BINARY)

    def part(self, name: str) -> str:
        """Return the `subset` of rows on a part of the units."""
        return name + BINARY if self.is_binary else name

    def only(self, chosen: Mask, subset: str) -> Coded:
        """Return the view of some units, with their clusters renumbered in the same order."""
        _, clusters = np.unique(self.clusters[chosen], return_inverse=True)
        return replace(self, codes=self.codes[chosen], clusters=clusters.reshape(-1), subset=subset)

    @cached_property
    def labelled(self) -> Mask:
        """Mask (units, raters) of the labels present."""
        return self.codes >= 0

    def labelled_by_any(self, raters: Sequence[int]) -> Mask:
        """Return the mask (units,) of units that at least one of the raters labelled."""
        return np.asarray(self.labelled[:, list(raters)].any(axis=1))

    def members(self, kind: str) -> tuple[int, ...]:
        """Return the columns of the raters of one kind."""
        return tuple(column for column, other in enumerate(self.kinds) if other == kind)

    def humans_not_copied(self, grader: int) -> tuple[int, ...]:
        """Return the columns of the humans to compare a grader with: those it does not copy."""
        copied = {copy.duplicate_of for copy in self.copies if copy.rater == grader}
        return tuple(human for human in self.members("human") if human not in copied)


@dataclass(frozen=True, kw_only=True)
class LabelMatrix:
    """All labels of a rubric, a row per unit and a column per rater, by `KIND_ORDER` and name."""

    scale: Scale
    # By unit, (units,): codes, -1 if the units table has none.
    clusters: Codes  # of resampling
    n_clusters: int
    weight: Array | None = None  # sampling weights, (clusters,); None if all are equal
    times_in_rest: Array  # how often a labelled unit is in the second part, too (see *Weights*)
    subjects: tuple[str, ...]
    subject: Codes  # whose response the unit is
    pairs: tuple[str, ...]
    pair: Codes
    side: Codes  # of the pair
    slices: tuple[UnitColumn, ...] = ()  # the requested units columns
    # By label, (units, raters).
    codes: Labels  # of the categories, -1 missing
    positive: Array  # probability of the affirmative categories, NaN if unknown
    thresholds: Array  # lowest `positive` of an affirmative verdict
    confidence: Array  # probability of the likeliest category, NaN if unknown
    assigned: Mask  # units assigned to each rater
    withheld: Mask | None = None  # labels of graders that do not count (see `Scale`); None for none
    counted: Mask | None = None  # labels that agreement is computed from; None for all
    # By rater, (raters,).
    raters: tuple[str, ...]
    kinds: tuple[str, ...]  # those of `KIND_ORDER`, or "left out" for a human not counted
    reasons: tuple[Counter[str], ...]  # counts of the reasons for missing labels
    methods: tuple[str, ...] = ()  # how probabilities were obtained (`Readings`), like `draws`
    draws: tuple[int, ...] = ()
    copies: tuple[Copy, ...] = ()
    tie_breaks: bool = False  # that of `Coded`

    def weight_of(self, chosen: Mask | Codes) -> Array | None:
        """Return the weight of each chosen unit, (chosen units,); None if all have the same."""
        return None if self.weight is None else self.weight[self.clusters[chosen]]

    def columns(self, names: Iterable[str]) -> list[UnitColumn]:
        """Return the units columns with these names."""
        by_name = {column.name: column for column in self.slices}
        return [by_name[name] for name in names]

    @property
    def sides(self) -> list[UnitColumn]:
        """Sides of pairs as a column, if units are single responses; else no column."""
        has_both = len(np.unique(self.side[self.side >= 0])) == 2
        return [UnitColumn("side", ("a", "b"), self.side)] if has_both else []

    @property
    def in_agreement(self) -> LabelMatrix:
        """Matrix of the labels that agreement is computed from (`analysis.people.annotators`).
        Humans without any such label do not count as humans in it.
        """
        if self.counted is None:
            return self
        kinds, is_counted = list(self.kinds), self.scored & self.counted
        for column in self.humans:
            kinds[column] = "human" if is_counted[:, column].any() else "left out"
        return replace(
            self,
            codes=np.where(self.counted, self.codes, -1),
            positive=np.where(self.counted, self.positive, np.nan),
            assigned=self.assigned & self.counted,
            kinds=tuple(kinds),
            counted=None,
        )

    @property
    def labelled_by_people(self) -> Mask:
        """Mask (units,) of units with a usable label or probability by a human."""
        return np.asarray(self.scored[:, list(self.humans)].any(axis=1))

    @property
    def sampled(self) -> Mask:
        """Mask (units,) of units with a usable label or probability by a human or adjudicator."""
        return np.asarray(self.scored[:, [kind != "model" for kind in self.kinds]].any(axis=1))

    @property
    def people_weight(self) -> Array:
        """Weight of each cluster that humans or adjudicators labelled, (those clusters,)."""
        clusters = np.unique(self.clusters[self.sampled])
        return np.ones(len(clusters)) if self.weight is None else self.weight[clusters]

    @property
    def verdicts(self) -> Labels:
        """Binary verdicts (units, raters): 1 affirmative, 0 not, -1 missing."""
        affirmative = np.zeros(len(self.scale.categories) + 1, dtype=np.int8)
        affirmative[list(self.scale.affirmative_codes)] = 1
        affirmative[-1] = -1  # where the code -1 of a missing label points
        by_label, by_probability = affirmative[self.codes], self.positive >= self.thresholds
        return np.where(np.isnan(self.positive), by_label, by_probability).astype(np.int8)

    @property
    def verdict_values(self) -> Array:
        """Binary verdicts as numbers (units, raters), NaN where missing."""
        verdicts = self.verdicts
        return np.where(verdicts < 0, np.nan, verdicts)

    @cached_property
    def scored(self) -> Mask:
        """Mask (units, raters) of usable labels or probabilities."""
        return (self.codes >= 0) | ~np.isnan(self.positive)

    def assigned_to(self, rater: int) -> Mask:
        """Return the mask (units,) of units that were assigned to a rater. Graders are also
        assigned all units that humans labelled, and no units withheld from them.
        """
        assigned = self.assigned[:, rater]
        if self.kinds[rater] == "model":
            assigned = assigned | self.labelled_by_people
        return assigned if self.withheld is None else assigned & ~self.withheld[:, rater]

    @property
    def has_binary(self) -> bool:
        """True if the scale declares affirmative categories."""
        return bool(self.scale.affirmative)

    def with_reference(self, reference: str) -> LabelMatrix:
        """Return the labels with one rater, human or adjudicator, as the only human."""
        kinds = (
            "human" if rater == reference else "left out" if kind == "human" else kind
            for rater, kind in zip(self.raters, self.kinds, strict=True)
        )
        return replace(self, kinds=tuple(kinds), copies=())  # copies are compared with it, too

    @property
    def humans(self) -> tuple[int, ...]:
        """Columns of the human raters."""
        return tuple(column for column, kind in enumerate(self.kinds) if kind == "human")

    @property
    def models(self) -> tuple[int, ...]:
        """Columns of the model graders."""
        return tuple(column for column, kind in enumerate(self.kinds) if kind == "model")

    @property
    def views(self) -> list[Coded]:
        """Views of the labels: the categories, and the binary label if there is one."""
        return [self.on_categories(), *([self.on_binary()] if self.has_binary else [])]

    def view_of(self, graders: Sequence[int]) -> Coded:
        """Return the categories, or the binary labels if a grader gives no category."""
        has_categories = (self.codes[:, list(graders)] >= 0).any(axis=0).all()
        return self.on_categories() if has_categories or not self.has_binary else self.on_binary()

    def on_categories(self, subset: str = "all") -> Coded:
        """Return the labels on the rubric's own categories."""
        return Coded(
            raters=self.raters,
            kinds=self.kinds,
            codes=self.codes,
            clusters=self.clusters,
            categories=self.scale.categories,
            values=self.scale.values,
            level=self.scale.level,
            subset=subset,
            copies=self.copies,
            is_number=self.scale.is_number,
            ordered=self.scale.ordered,
            tie_breaks=self.tie_breaks,
        )

    def on_binary(self) -> Coded:
        """Return the binary labels, affirmative first."""
        verdicts = self.verdicts
        codes = np.where(verdicts < 0, verdicts, 1 - verdicts).astype(np.int8)
        return self._nominal(codes, (AFFIRMATIVE, "other"), (1.0, 0.0), BINARY_ALL)

    def on_collapsed(self) -> Coded:
        """Return the labels on the rubric's coarser categories; unclear labels are missing."""
        names = tuple(self.scale.collapse)
        groups = enumerate(self.scale.collapse.values())
        position = {category: code for code, group in groups for category in group}
        new_codes = [*(position.get(category, -1) for category in self.scale.categories), -1]
        codes = np.array(new_codes, dtype=np.int8)[self.codes]  # -1, missing, selects the last
        values = tuple(float(rank) for rank in range(1, len(names) + 1))
        return self._nominal(codes, names, values, "all" + COLLAPSED)

    def on_collapsed_or_unclear(self) -> Coded:
        """Return the labels on the coarser categories with "unclear" as the last category. If there
        are no coarser categories, these are the labels on the rubric's own categories.
        """
        if not self.scale.collapse:
            return self.on_categories()
        coded = self.on_collapsed()
        if not self.scale.unclear:
            return coded
        codes = np.where((self.codes >= 0) & (coded.codes < 0), coded.q, coded.codes)
        return replace(
            coded,
            codes=codes.astype(np.int8),
            categories=(*coded.categories, UNCLEAR),
            values=(*coded.values, float(coded.q + 1)),
        )

    def _nominal(
        self, codes: Labels, categories: tuple[str, ...], values: tuple[float, ...], subset: str
    ) -> Coded:
        """Return a nominal view of the labels with other codes and categories."""
        view = replace(self.on_categories(subset), codes=codes, categories=categories)
        return replace(view, values=values, level="nominal", is_number=False)

    def folded(self) -> tuple[LabelMatrix, Frequency]:
        """Return the distinct units, and the frequency of each, (units,): a resample of units
        depends only on how often it has each distinct row of labels.

        If a cluster has several units, a rater gave probabilities, or units rarely repeat, the
        matrix is returned unchanged, with frequencies of 1.
        """
        n, once = len(self.codes), np.ones(self.n_clusters, dtype=np.int64)
        if n != self.n_clusters or not self._may_repeat:
            return self, once
        first, _, frequency = self._distinct_units()
        return (self, once) if len(first) > n // 2 else (self._as_clusters(first), frequency)

    def in_patterns(self) -> tuple[LabelMatrix, Any]:
        """Return the distinct units, each as its own cluster, and their number in every cluster, a
        sparse matrix (clusters, units), for `PatternResamples`. If there are few clusters, or units
        rarely repeat, return the matrix unchanged and None.
        """
        n, has_many = len(self.codes), self.n_clusters >= FEWEST_CLUSTERS_FOR_PATTERNS
        if n == self.n_clusters or not has_many or self.weight is not None or not self._may_repeat:
            return self, None
        from scipy.sparse import csr_array

        first, pattern, _ = self._distinct_units()
        if len(first) > self.n_clusters // 4:
            return self, None
        cells = np.ones(n, dtype=np.int64), (self.clusters, pattern)  # equal cells are added up
        return self._as_clusters(first), csr_array(cells, shape=(self.n_clusters, len(first)))

    @property
    def _may_repeat(self) -> bool:
        """True if units can repeat: with few raters, without probabilities and sides of pairs."""
        if len(self.raters) > _MAX_REPEATING or self.side.max(initial=-1) >= 0:
            return False
        return bool(np.isnan(self.positive).all() and np.isnan(self.confidence).all())

    def _distinct_units(self) -> tuple[Codes, Codes, Frequency]:
        """Return patterns' first units, each unit's pattern (units,), and patterns' frequencies."""
        columns = [column.codes for column in self.slices]
        for mask in (self.withheld, self.counted):
            if mask is not None:
                columns += list(mask.T)
        if self.weight is not None:  # identical units must have equal weights
            columns.append(np.unique(self.weight[self.clusters], return_inverse=True)[1])
        rows = np.column_stack([self.codes, self.assigned, self.subject, *columns]).astype(np.int32)
        first, pattern = distinct_bytes(rows)
        return first, pattern, np.bincount(pattern, minlength=len(first)).astype(np.int64)

    def of_units(self, units: Codes) -> LabelMatrix:
        """Return the labels of the units at these positions, in the same clusters."""
        names = ["clusters", "subject", "pair", "side", "codes", "positive", "confidence"]
        names += ["times_in_rest", "thresholds", "assigned", "withheld", "counted"]
        arrays = ((name, getattr(self, name)) for name in names)
        parts: dict[str, Any] = {name: array[units] for name, array in arrays if array is not None}
        slices = tuple(replace(column, codes=column.codes[units]) for column in self.slices)
        return replace(self, **parts, slices=slices)

    def _as_clusters(self, units: Codes) -> LabelMatrix:
        """Return the labels of the units at these positions, each as its own cluster."""
        part, n = self.of_units(units), len(units)
        return replace(part, clusters=np.arange(n), n_clusters=n, weight=self.weight_of(units))


def distinct_bytes(rows: Integers) -> tuple[Codes, Codes]:
    """Return the first row of each pattern, sorted by bytes, and each row's pattern (rows,)."""
    rows = np.ascontiguousarray(rows)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, pattern = np.unique(keys, return_index=True, return_inverse=True)
    return first, pattern


def complete_block(codes: Labels, times: Frequency | None = None) -> tuple[tuple[int, ...], Mask]:
    """Return the raters and the mask of units of the largest complete block of labels (units,
    raters), -1 missing: that with the most comparisons, units times (raters - 1). Empty if no two
    raters share `MIN_COMPLETE` units. Of more than twelve raters, those with the most labels are
    considered. `times` (units,) is the frequency of each unit, 1 by default.
    """
    labelled = codes >= 0
    times = np.ones(len(codes), dtype=np.int64) if times is None else times
    raters = np.argsort(-(times @ labelled), kind="stable")[:_MAX_COMPLETE]
    most_comparisons, block = 0, tuple[int, ...]()
    for size in range(2, len(raters) + 1):
        for chosen in combinations(sorted(int(rater) for rater in raters), size):
            shared = int(times[labelled[:, chosen].all(axis=1)].sum())
            if shared >= MIN_COMPLETE and shared * (size - 1) > most_comparisons:
                most_comparisons, block = shared * (size - 1), chosen
    return block, np.asarray(labelled[:, block].all(axis=1) & bool(block))


def favour_signs(categories: tuple[str, ...], favours: Mapping[str, str]) -> Array:
    """Return 1 for categories that favour side a, -1 for side b, 0 for neither, (q + 1,); the last
    is NaN, which the code -1 of a missing label selects.

    >>> favour_signs(("A", "B", "C"), {"A": "a", "B": "b"})
    array([ 1., -1.,  0., nan])
    """
    sign = {"a": 1.0, "b": -1.0, "": 0.0}
    return np.array([*(sign[favours.get(category, "")] for category in categories), np.nan])


@dataclass(frozen=True)
class RaterColumn:
    """A column that explains the annotators' labels (see `slices.explaining_columns`)."""

    p: float  # of the hypothesis that labels are unrelated to the column
    within: float  # mean kappa of annotators with the same value
    across: float  # mean kappa of annotators with different values


def sides_of(
    people: Mapping[str, frozenset[str]], raters: Coded | LabelMatrix, at_least: int = 2
) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the sides (groups of humans with one value) of each column of annotators, by value:
    positions in the arrays of `raters`. `people` are the humans by "column=value", such as
    "party=left". Sides have at least `at_least` humans, and columns at least two such sides.
    """
    columns: dict[str, dict[str, tuple[int, ...]]] = {}
    humans = [rater for rater, kind in enumerate(raters.kinds) if kind == "human"]
    for part, members in people.items():
        column, _, value = part.partition("=")
        side = tuple(human for human in humans if raters.raters[human] in members)
        if len(side) >= at_least:
            columns.setdefault(column, {})[value] = side
    return {column: sides for column, sides in columns.items() if len(sides) > 1}
