"""Labels as arrays, from which every statistic is computed, and facts about the rated units from
the units table: clusters, subjects, slices, groups, lengths.

`LabelMatrix` holds all labels of one rubric; `Coded` is one view of it (the rubric's own
categories, or the binary label) in the form that coefficients take.

Labels may be duplicates: a file that was handed over twice, or under two names. A grader that
repeats one human's labels agrees with that human for no merit of its own. Two raters who are both
nearly always right agree as often; so agreement is not enough: on the units on which the human
differs from everybody else, the grader must side with that human. Where two humans have identical
labels neither is ever alone, and it cannot be decided who is right and who copied: the identity is
reported, and decides nothing.

Units are weighted where some pairs were likelier to be picked for humans than others. A unit that
humans labelled represents 1 / p units like it, p its pair's probability of being picked (Horvitz &
Thompson 1952); every estimate is a quotient of such sums (Hajek 1971). A unit that only graders
labelled was passed over with probability 1 - p and represents 1 / (1 - p): so the humans' part and
the rest both represent all units, alone and together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from evenhand.analysis.labels.scale import Level, Scale
from evenhand.analysis.types import Array, Codes, DataFrame, Frequency, Integers, Labels, Mask
from evenhand.errors import InputError
from evenhand.study.settings.analysis import OrderedWeights
from evenhand.study.tables.columns import INCLUSION
from evenhand.texts import written

WEIGHT = "sampling_weight"
"""The units column that `with_weights` adds."""
_LEAST = 0.05
"""Least probability of being passed over: no such unit represents more than 20."""


def with_weights(units: DataFrame | None, ratings: DataFrame) -> DataFrame | None:
    """Add the weights of one rubric's rated units to a `units` table.

    They come from the column `inclusion_probability`; the table is unchanged where there is none,
    or where all weights are equal.

    Weights are 1 on average over the clusters that humans labelled, and over the others. Raises
    InputError where a rated unit has no probability above 0 and up to 1.

    >>> import pandas as pd
    >>> units = pd.DataFrame({"unit_id": ["u1", "u2"], "inclusion_probability": [0.2, 0.6]})
    >>> people = pd.DataFrame({"unit_id": ["u1", "u2"], "rater_kind": "human"})
    >>> with_weights(units, people)["sampling_weight"].tolist()
    [1.5, 0.5]
    """
    if units is None or INCLUSION not in units:
        return units
    table = units.drop_duplicates("unit_id").set_index("unit_id")
    rated = table.index.isin(ratings["unit_id"])
    if (table.loc[rated, INCLUSION].astype(str).str.strip() == "").all():
        return units
    import pandas as pd

    chance = pd.to_numeric(table[INCLUSION], errors="coerce").to_numpy(dtype=float)
    is_wrong = ~((chance > 0) & (chance <= 1))
    if (is_wrong & rated).any():
        at = int((is_wrong & rated).argmax())
        cell = str(table[INCLUSION].iloc[at])
        raise InputError(
            f"units: {INCLUSION} of item {table.index[at]!r} is {cell!r}; "
            "give every rated item a number above 0 and up to 1, or leave the column out"
        )
    chance = np.where(is_wrong, np.nan, chance)
    cluster = table["cluster_id"] if "cluster_id" in table else table.index.to_series()
    by_people = ratings.loc[ratings["rater_kind"] == "human", "unit_id"]
    labelled = cluster.isin(cluster.reindex(by_people).dropna()).to_numpy()
    weight = 1.0 / np.where(labelled, chance, np.maximum(1.0 - chance, _LEAST))
    first = ~cluster.where(rated).duplicated().to_numpy() & rated
    for part in (labelled, ~labelled):
        if (part & first).any():
            weight[part] /= weight[part & first].mean()
    if np.allclose(weight[rated], 1.0):
        return units
    by_unit = dict(zip(table.index, weight, strict=True))
    return units.assign(**{WEIGHT: units["unit_id"].map(by_unit)})


def effective_size(weight: Array) -> float:
    """Number of equally weighted clusters that would estimate a mean as precisely. This holds if
    weights are unrelated to the values (Kish 1965): the square of the sum over the sum of the
    squares.

    >>> effective_size(np.array([1.5, 0.5]))
    1.6
    """
    return float(weight.sum() ** 2 / (weight**2).sum())


MAX_VALUES = 50
"""A column with more values than this does not divide a sample: it identifies its units."""
MOST_SIDES = 12
"""A column of annotators with more values is not looked at unasked."""


@dataclass(frozen=True)
class UnitColumn:
    """A column as codes (units,), -1 for empty cells, into its values in sorted order."""

    name: str
    values: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, name: str, cells: Sequence[str]) -> UnitColumn:
        """Encode cells. Codes follow the values, so that the order of rows never matters."""
        values = sorted(set(cells) - {""})
        position = {value: code for code, value in enumerate(values)} | {"": -1}
        codes = np.array([position[cell] for cell in cells], dtype=np.intp)
        return cls(name, tuple(values), codes)

    def parts(self) -> Iterator[tuple[str, Mask]]:
        """Yield the name and the units (units,) of each part of the sample that has any."""
        for code, value in enumerate(self.values):
            chosen = np.asarray(self.codes == code)
            if chosen.any():
                yield f"{self.name}={value}", chosen


class UnitFacts:
    """Rated units, in the order of their ids, with their rows of a `units` table (or none). Methods
    that look up a column raise InputError where a unit is not in the table.

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
        """Return a column as text, "" where a cell is empty or there is no such column."""
        if self._rated is None or name not in self._rated:
            return [""] * len(self.ids)
        column = self._rated[name]
        return column.astype(str).where(column.notna(), "").tolist()

    @cached_property
    def _rated(self) -> DataFrame | None:
        """Rows of the rated units. Raises InputError where one has none."""
        if self.table is None:
            return None
        import pandas as pd

        at = self.table.index.get_indexer(pd.Index(self.ids))
        if (at < 0).any():
            missing = [self.ids[place] for place in np.flatnonzero(at < 0)]
            raise InputError(
                f"the units table has no row for item {missing[0]!r}, which is rated "
                f"({len(missing)} such items); add it or leave the units table out"
            )
        return self.table.iloc[at]

    def column(self, name: str) -> UnitColumn:
        """Return a column as codes, without values where there is no such column."""
        return UnitColumn.of(name, self.cells(name))

    def numbers(self, name: str) -> Array:
        """Return a column as numbers, NaN where a cell holds none."""
        import pandas as pd

        if self._rated is None or name not in self._rated:
            return np.full(len(self.ids), np.nan)
        return np.asarray(pd.to_numeric(pd.Series(self.cells(name)), errors="coerce"), dtype=float)

    def texts(self) -> list[str]:
        """Return the columns whose numbers of words are in another column (NAME_words)."""
        names = [] if self.table is None else [str(name) for name in self.table]
        return [name for name in names if f"{name}_words" in names]

    def slices(self, names: Sequence[str]) -> tuple[UnitColumn, ...]:
        """Return the columns to slice by. Raises InputError where one is missing."""
        return tuple(self._asked_for(name, "slice by") for name in names)

    def clusters(self, by: str = "pair") -> UnitColumn:
        """Return each unit's cluster: by "pair" (`cluster_id`), "unit" (its own), or a column.
        Without a table, or without `cluster_id`, every unit is its own cluster. Raises InputError
        where the column is missing, or a cluster is empty.
        """
        name = "cluster_id" if by == "pair" else by
        has_pairs = self.table is not None and "cluster_id" in self.table
        if by == "unit" or (by == "pair" and not has_pairs):
            return UnitColumn.of("unit_id", self.ids)
        clusters = self._asked_for(name, "cluster by")
        if (clusters.codes < 0).any():
            empty = self.ids[int(clusters.codes.argmin())]
            raise InputError(
                f"units: {name} of item {empty!r} is empty; every item needs a cluster"
            )
        return clusters

    def weights(self, clusters: UnitColumn) -> Array | None:
        """Return the weight of each cluster, (clusters,); None where all count equally. Raises
        InputError where a cluster's units differ."""
        if self.table is None or WEIGHT not in self.table:
            return None
        of_units = self.numbers(WEIGHT)
        weight = np.zeros(len(clusters.values))
        weight[clusters.codes] = of_units
        if (differs := weight[clusters.codes] != of_units).any():
            mixed = clusters.values[clusters.codes[int(differs.argmax())]]
            raise InputError(
                f"units: the pairs of {clusters.name} {mixed!r} were not equally likely to be "
                'picked, so it cannot be weighted as a whole; let pairs be the clusters ("pair")'
            )
        return weight

    def _asked_for(self, name: str, purpose: str) -> UnitColumn:
        if self.table is None:
            raise InputError(
                f"the column {name!r} to {purpose} needs a units table; give one or leave it out"
            )
        if name not in self.table:
            columns = ", ".join(str(column) for column in self.table) or "none"
            raise InputError(f"units has no column {name!r} to {purpose}; it has {columns}")
        return self.column(name)


def check_values(column: str, values: Sequence[str]) -> None:
    """Raise InputError if a column has too many values to slice by."""
    if len(values) > MAX_VALUES:
        raise InputError(
            f"the column {column!r} has {len(values)} values, and at most {MAX_VALUES} can be "
            "sliced by; group them into fewer, or slice by another column"
        )


ALIKE = 0.98
"""Share of units with the same label from which two raters may be copies."""
SIDES_WITH = 0.9
"""Share that a copy must match of the units on which the human's label is unique."""
MIN_UNITS, MIN_ALONE = 30, 5
"""Minimum of units that both labelled, and of units on which the human's label is unique (or on
which two identical humans chose another than their most frequent category), to suspect a copy."""


@dataclass(frozen=True)
class Copy:
    """A `rater` whose labels are those of another, on a `share` of the units that both labelled."""

    rater: int
    duplicate_of: int
    share: float


def copies_among(
    codes: Labels, people: Sequence[int], graders: Sequence[int], times: Frequency | None = None
) -> tuple[Copy, ...]:
    """Find graders that repeat a human's labels, and identical graders or humans. `codes` (units,
    raters) are -1 where there is no label; `times` (units,) is how often each unit occurs in the
    data, once unless given.

    >>> ann, ben = np.arange(40) % 2, np.arange(40) % 3 % 2
    >>> copies_among(np.column_stack([ann, ben, ben]), people=[0, 1], graders=[2])
    (Copy(rater=2, duplicate_of=1, share=1.0),)
    """
    from scipy.sparse import csr_array

    times = np.ones(len(codes), dtype=np.int64) if times is None else times
    copies = []
    for grader, person in product(graders, people):
        if (share := _alike(codes, times, grader, person, MIN_UNITS)) >= ALIKE:
            # The grader has to give the human's label where no other human does.
            given, others = codes[:, [person]], codes[:, [who for who in people if who != person]]
            alone = (others >= 0).any(axis=1) & (others != given).all(axis=1)
            if _alike(codes[alone], times[alone], grader, person, MIN_ALONE) >= SIDES_WITH:
                copies.append(Copy(grader, person, share))
    for raters, least in ((graders, 1), (people, MIN_ALONE)):
        held = csr_array(codes[:, list(raters)] >= 0, dtype=np.int64)
        shared = (held.T @ (held * times[:, None])).tocoo()
        enough = (shared.data >= MIN_UNITS) & (shared.row < shared.col)
        for a, b in sorted(zip(shared.row[enough], shared.col[enough], strict=True)):
            first, second = raters[int(a)], raters[int(b)]
            given = codes[:, first]
            counts = np.bincount(given[given >= 0], times[given >= 0])
            is_varied = counts.sum() - counts.max(initial=0) >= least
            if is_varied and _alike(codes, times, first, second, MIN_UNITS) == 1.0:
                copies.append(Copy(second, first, 1.0))
    return tuple(copies)


def people_alike(copies: Sequence[Copy], raters: Sequence[str], people: Sequence[int]) -> list[str]:
    """Write a sentence for each group of humans with identical labels; `raters` are names.

    >>> people_alike([Copy(1, 0, 1.0), Copy(2, 0, 1.0), Copy(2, 1, 1.0)], "abc", [0, 1, 2])[0][:48]
    'a, b and c gave the same label on every item tha'
    """
    pairs = [(copy.duplicate_of, copy.rater) for copy in copies if copy.rater in people]
    repeating, groups = {rater for _, rater in pairs}, dict[int, list[int]]()
    for first, rater in pairs:
        if first not in repeating:
            groups.setdefault(first, [first]).append(rater)
    return [
        written("note.same_people", names=listed([raters[at] for at in group]))
        for group in groups.values()
    ]


def listed(names: Sequence[str]) -> str:
    """Join names for use within a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _alike(codes: Labels, times: Frequency, first: int, second: int, least: int) -> float:
    """Return the share of units with the same label; 0 where fewer than `least` have both."""
    both = (codes[:, first] >= 0) & (codes[:, second] >= 0)
    if times[both].sum() < least:
        return 0.0
    same = codes[both, first] == codes[both, second]
    return float(times[both][same].sum() / times[both].sum())


BINARY = "|binary"
"""Suffix of `subset` for the binary label."""
BINARY_ALL = "all" + BINARY
COLLAPSED = "|collapsed"
"""Suffix of `subset` for a rubric's coarser categories."""
AFFIRMATIVE = "affirmative"
UNCLEAR = "unclear"
MIN_COMPLETE, _MAX_COMPLETE = 10, 12
"""Fewest units and most raters of a complete part."""
MANY_CLUSTERS = 10_000
"""From this many clusters, resampling patterns of labels is faster than resampling clusters."""
MOST_POINTS_OF_GRID = 201
"""With more different numbers, kappa with linear weights rounds them."""
_MOST_REPEATING = 100
"""Of more raters hardly two units have the same labels."""
KIND_ORDER = {"human": 0, "adjudicator": 1, "model": 2}
_BY_UNIT = (
    *("codes", "positive", "confidence", "thresholds", "asked", "withheld", "counted"),
    *("clusters", "subject", "pair", "side"),
)
"""Arrays of a `LabelMatrix` with a row for each unit."""


def number_sides(values: Sequence[float]) -> Array:
    """Return what numbers add to the sides of a table of two raters, (numbers, 3): the Bernstein
    polynomials of degree two on the range of the `values`.

    They are three shares that add up to one, so that a table of numbers has 3 x 3 cells however
    many numbers there are. It keeps the sums of x, y, x^2, y^2 and xy: all that coefficients with
    squared distances know of the labels.

    >>> number_sides([0, 50, 100]).tolist()
    [[1.0, 0.0, 0.0], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0]]
    """
    at = np.asarray(values, dtype=float)
    at = (at - at.min()) / max(float(np.ptp(at)), 1e-300)
    return np.column_stack([(1.0 - at) ** 2, 2.0 * at * (1.0 - at), at**2])


@dataclass(frozen=True)
class Coded:
    """View of the labels: codes (units, raters), -1 missing, and the meaning of the codes.

    `clusters` (units,) indexes the resampling clusters. For the binary label code 0 is
    affirmative, so that tables have the affirmative verdict first. `ordered` are the weights of
    the deciding kappa where categories have an order. `tie_breaks` says that a unit's third label
    was given because the first two differ (`analysis.people.annotators`).
    """

    raters: tuple[str, ...]
    kinds: tuple[str, ...]
    codes: Labels
    clusters: Codes
    categories: tuple[str, ...]
    values: tuple[float, ...]
    level: Level
    subset: str
    copies: tuple[Copy, ...] = ()
    is_number: bool = False
    ordered: OrderedWeights = "linear"
    tie_breaks: bool = False

    @cached_property
    def grid(self) -> tuple[Codes, Array]:
        """The points of the categories (q,), numbers, on a grid, and the points' values (points,)
        from 0 to 1. Many different numbers are rounded to a two-hundredth of their range.
        """
        at = np.asarray(self.values, dtype=float)
        at = (at - at.min()) / max(float(np.ptp(at)), 1e-300)
        if self.q <= MOST_POINTS_OF_GRID:
            return np.arange(self.q), at
        steps = MOST_POINTS_OF_GRID - 1
        return np.rint(at * steps).astype(np.intp), np.arange(steps + 1) / steps

    @cached_property
    def sides(self) -> Array:
        """Terms that each category adds to a side of a table, (q, width): one of q, or for a number
        the three terms of a quadratic (`number_sides`).
        """
        return number_sides(self.values) if self.is_number else np.eye(self.q)

    def spread(self, codes: Integers) -> Array:
        """Return what labels (...) add to a side of a table, (..., width): zeros where missing."""
        return np.asarray(np.vstack([self.sides, 0.0 * self.sides[:1]])[codes])

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
        """Return some of the units, with their clusters renumbered in the same order."""
        _, clusters = np.unique(self.clusters[chosen], return_inverse=True)
        codes = self.codes[chosen]
        return replace(self, codes=codes, clusters=clusters.reshape(-1), subset=subset)

    @cached_property
    def labelled(self) -> Mask:
        """Mask (units, raters) of the labels present."""
        return self.codes >= 0

    def labelled_by_any(self, raters: Sequence[int]) -> Mask:
        """Return a mask (units,) of the units that at least one of the raters labelled."""
        return np.asarray(self.labelled[:, list(raters)].any(axis=1))

    def members(self, kind: str) -> tuple[int, ...]:
        """Return the positions of the raters of one kind."""
        return tuple(at for at, of in enumerate(self.kinds) if of == kind)

    def people_beside(self, grader: int) -> tuple[int, ...]:
        """Return the humans to compare a grader with: not those whose labels it repeats."""
        copied = {copy.duplicate_of for copy in self.copies if copy.rater == grader}
        return tuple(human for human in self.members("human") if human not in copied)


@dataclass(frozen=True, kw_only=True)
class LabelMatrix:
    """All labels of one rubric, one row per unit and one column per rater.

    `clusters` (units,) index the resampling clusters. `subject`, `pair` and `side` (units,) are
    codes, -1 where the units table has none; `slices` are the requested units columns. `weight`
    (clusters,) is how much a cluster counts where pairs were not equally likely to be
    picked.

    Raters are ordered humans first, then adjudicators, then models, each by name. `asked` marks the
    raters that a unit was assigned to, `withheld` (None: nowhere) where a grader's labels do not
    count (`Scale.withheld`); `positive` (units, raters) are probabilities of the
    affirmative categories and `confidence` (units, raters) those of the likeliest category, NaN
    where unknown; `thresholds` (units, raters) turn the former into verdicts. `methods` and `draws`
    describe how each rater's probabilities were obtained (see `analysis.labels.encoding.Readings`),
    `copies` which raters' labels are duplicates. `distributions` holds the probabilities of the
    categories, (units, q), NaN where unknown, by the column of each rater who gave them.
    `counted` (units, raters) are the labels of which agreement is computed (None: all), and
    `tie_breaks` says that third labels were given where the first two differ.
    """

    clusters: Codes
    n_clusters: int
    subjects: tuple[str, ...]
    subject: Codes
    pairs: tuple[str, ...]
    pair: Codes
    side: Codes
    slices: tuple[UnitColumn, ...] = ()
    weight: Array | None = None
    scale: Scale
    raters: tuple[str, ...]
    kinds: tuple[str, ...]
    codes: Labels
    positive: Array
    confidence: Array
    thresholds: Array
    asked: Mask
    reasons: tuple[Counter[str], ...]
    methods: tuple[str, ...] = ()
    draws: tuple[int, ...] = ()
    copies: tuple[Copy, ...] = ()
    distributions: Mapping[int, Array] = field(default_factory=dict)
    withheld: Mask | None = None
    tie_breaks: bool = False
    counted: Mask | None = None

    def weight_of(self, chosen: Mask | Codes) -> Array | None:
        """Return the weight of each chosen unit, (chosen units,); None where all count equally."""
        return None if self.weight is None else self.weight[self.clusters[chosen]]

    def columns(self, names: Iterable[str]) -> list[UnitColumn]:
        """Return the units columns with these names."""
        by_name = {column.name: column for column in self.slices}
        return [by_name[name] for name in names]

    @property
    def sides(self) -> list[UnitColumn]:
        """Sides of pairs as a column, where units are single responses."""
        both = len(np.unique(self.side[self.side >= 0])) == 2
        return [UnitColumn("side", ("a", "b"), self.side)] if both else []

    @property
    def in_agreement(self) -> LabelMatrix:
        """The labels of which agreement is computed (`analysis.people.annotators`). A rater with
        none of them is no human rater there.
        """
        if self.counted is None:
            return self
        kinds = list(self.kinds)
        for column in self.humans:
            if not (self.scored[:, column] & self.counted[:, column]).any():
                kinds[column] = "left out"
        return replace(
            self,
            codes=np.where(self.counted, self.codes, -1),
            positive=np.where(self.counted, self.positive, np.nan),
            asked=self.asked & self.counted,
            kinds=tuple(kinds),
            counted=None,
        )

    @property
    def labelled_by_people(self) -> Mask:
        """Mask (units,) of units with a usable label or probability by a human."""
        return np.asarray(self.scored[:, list(self.humans)].any(axis=1))

    @property
    def people_weight(self) -> Array:
        """Weight of each cluster that humans labelled, (those clusters,)."""
        kept = np.unique(self.clusters[self.labelled_by_people])
        return np.ones(len(kept)) if self.weight is None else self.weight[kept]

    @property
    def verdicts(self) -> Labels:
        """Binary verdicts (units, raters): 1 affirmative, 0 not, -1 missing."""
        affirmative = np.zeros(len(self.scale.categories) + 1, dtype=np.int8)
        affirmative[list(self.scale.affirmative_codes)] = 1
        affirmative[-1] = -1
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
        """Return a mask (units,) of the units that were assigned to a rater. A grader was also
        assigned the units that humans labelled: a row that is missing altogether is not an answer
        either. Those withheld from it do not count as assigned.
        """
        asked = self.asked[:, rater]
        if self.kinds[rater] == "model":
            asked = asked | self.scored[:, list(self.humans)].any(axis=1)
        return asked if self.withheld is None else asked & ~self.withheld[:, rater]

    @property
    def has_verdicts(self) -> bool:
        """True if the scale declares affirmative categories."""
        return bool(self.scale.affirmative)

    def with_reference(self, reference: str) -> LabelMatrix:
        """Return the labels with one rater, human or adjudicator, as the only human."""
        kinds = (
            "human" if rater == reference else "left out" if kind == "human" else kind
            for rater, kind in zip(self.raters, self.kinds, strict=True)
        )
        return replace(self, kinds=tuple(kinds), copies=())

    @property
    def humans(self) -> tuple[int, ...]:
        """Columns of the human raters."""
        return tuple(at for at, kind in enumerate(self.kinds) if kind == "human")

    @property
    def models(self) -> tuple[int, ...]:
        """Columns of the model graders."""
        return tuple(at for at, kind in enumerate(self.kinds) if kind == "model")

    @property
    def views(self) -> list[Coded]:
        """Views of the labels: the categories, and the binary label where there is one."""
        return [self.on_categories(), *([self.on_verdicts()] if self.has_verdicts else [])]

    def view_of(self, graders: Sequence[int]) -> Coded:
        """Return the categories, or the binary labels where a grader gives no category."""
        gives = (self.codes[:, list(graders)] >= 0).any(axis=0).all()
        return self.on_categories() if gives or not self.has_verdicts else self.on_verdicts()

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

    def on_verdicts(self) -> Coded:
        """Return the binary labels, affirmative first."""
        verdicts = self.verdicts
        codes = np.where(verdicts < 0, verdicts, 1 - verdicts).astype(np.int8)
        return self._nominal(codes, (AFFIRMATIVE, "other"), (1.0, 0.0), BINARY_ALL)

    def on_collapsed(self) -> Coded:
        """Return the labels on the rubric's coarser categories; unclear ones are missing."""
        names, groups = tuple(self.scale.collapse), enumerate(self.scale.collapse.values())
        position = {category: at for at, categories in groups for category in categories}
        coarser = [*(position.get(category, -1) for category in self.scale.categories), -1]
        codes = np.array(coarser, dtype=np.int8)[self.codes]
        values = tuple(float(rank) for rank in range(1, len(names) + 1))
        return self._nominal(codes, names, values, "all" + COLLAPSED)

    def on_sorted(self) -> Coded:
        """Return the labels on the coarser categories with unclear as one more, the last. Without
        coarser categories these are the labels on the rubric's own categories.
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
        view = replace(self.on_categories(subset), codes=codes, categories=categories)
        return replace(view, values=values, level="nominal", is_number=False)

    def folded(self) -> tuple[LabelMatrix, Frequency]:
        """Deduplicate identical units, with their frequencies.

        Only where every unit is its own cluster and no rater gives probabilities (those hardly
        repeat).

        A resample of units depends only on how often each distinct row of labels comes up, so a
        million labels cost what their few hundred patterns cost. Otherwise the matrix itself.
        """
        n, alone = len(self.codes), np.ones(self.n_clusters, dtype=np.int64)
        if n != self.n_clusters or not self._repeats:
            return self, alone
        kept, _, often = self._distinct()
        return (self, alone) if len(kept) > n // 2 else (self._apart(kept), often)

    def in_patterns(self) -> tuple[LabelMatrix, Any]:
        """Deduplicate identical units within clusters, for `PatternResamples`.

        Returns each distinct unit once, as its own cluster, and the number of each in every
        cluster, a sparse matrix (clusters, units). Where units rarely repeat, returns the matrix
        itself and None.
        """
        n, many = len(self.codes), self.n_clusters >= MANY_CLUSTERS and self.weight is None
        if n == self.n_clusters or not (many and self._repeats):
            return self, None
        from scipy.sparse import csr_array

        kept, which, _ = self._distinct()
        if len(kept) > self.n_clusters // 4:
            return self, None
        cells = np.ones(n, dtype=np.int64), (self.clusters, which)
        return self._apart(kept), csr_array(cells, shape=(self.n_clusters, len(kept)))

    @property
    def _repeats(self) -> bool:
        """True if units may repeat: few raters, without probabilities and sides of pairs."""
        if len(self.raters) > _MOST_REPEATING or self.side.max(initial=-1) >= 0:
            return False
        return bool(np.isnan(self.positive).all() and np.isnan(self.confidence).all())

    def _distinct(self) -> tuple[Codes, Codes, Frequency]:
        """Return a unit of each kind (kinds,), each unit's kind (units,), and the frequencies."""
        sliced = [column.codes for column in self.slices]
        for mask in (self.withheld, self.counted):
            if mask is not None:
                sliced += list(mask.T)
        if self.weight is not None:  # identical units must have equal weights
            sliced.append(np.unique(self.weight[self.clusters], return_inverse=True)[1])
        row = np.column_stack([self.codes, self.asked, self.subject, *sliced]).astype(np.int32)
        kept, which = distinct_bytes(row)
        return kept, which, np.bincount(which, minlength=len(kept)).astype(np.int64)

    def of_units(self, kept: Codes) -> LabelMatrix:
        """Return some of the units, by their positions, in the same clusters."""
        arrays = ((name, getattr(self, name)) for name in _BY_UNIT)
        parts: dict[str, Any] = {name: given[kept] for name, given in arrays if given is not None}
        slices = tuple(replace(column, codes=column.codes[kept]) for column in self.slices)
        return replace(self, **parts, slices=slices)

    def _apart(self, kept: Codes) -> LabelMatrix:
        """Return some of the units, each as a cluster of its own."""
        weight, clusters = self.weight_of(kept), np.arange(len(kept))
        part = self.of_units(kept)
        return replace(part, clusters=clusters, n_clusters=len(kept), weight=weight)


def distinct_bytes(rows: Integers) -> tuple[Codes, Codes]:
    """Return the first of each kind of row (kinds,), in the order of their bytes, and each row's
    kind (rows,).
    """
    rows = np.ascontiguousarray(rows)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return first, kind


def complete_block(codes: Labels) -> tuple[tuple[int, ...], Codes]:
    """Find the raters and units of the largest complete part of labels (units, raters), -1 missing.
    Largest in comparisons: units times (raters - 1). Empty where no two raters share enough units.
    Above twelve raters those with the most labels are considered.
    """
    labelled = codes >= 0
    busiest = np.argsort(-labelled.sum(axis=0), kind="stable")[:_MAX_COMPLETE]
    best: tuple[int, tuple[int, ...]] = (0, ())
    for size in range(2, len(busiest) + 1):
        for chosen in combinations(sorted(int(rater) for rater in busiest), size):
            shared = int(labelled[:, chosen].all(axis=1).sum())
            if shared >= MIN_COMPLETE and shared * (size - 1) > best[0]:
                best = (shared * (size - 1), chosen)
    if not best[1]:
        return (), np.array([], dtype=np.intp)
    return best[1], np.flatnonzero(labelled[:, best[1]].all(axis=1))


def favour_signs(categories: tuple[str, ...], favours: Mapping[str, str]) -> Array:
    """Return 1, -1 or 0 for each category, and NaN last, which a missing code of -1 selects.

    >>> favour_signs(("A", "B", "C"), {"A": "a", "B": "b"})
    array([ 1., -1.,  0., nan])
    """
    sign = {"a": 1.0, "b": -1.0, "": 0.0}
    return np.array([*(sign[favours.get(category, "")] for category in categories), np.nan])


@dataclass(frozen=True)
class Public:
    """A column of annotators that explains their labels, with its p, and kappa within and across
    its sides.
    """

    p: float
    within: float
    across: float


def sides_of(
    people: Mapping[str, frozenset[str]], raters: Coded | LabelMatrix, least: int = 2
) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the positions of the humans of each side of each column, from the raters of every
    `column=value`. A side has `least` humans or more, and a column two sides.
    """
    columns: dict[str, dict[str, tuple[int, ...]]] = {}
    for part, members in people.items():
        column, _, value = part.partition("=")
        named = enumerate(zip(raters.raters, raters.kinds, strict=True))
        members_at = tuple(at for at, (who, kind) in named if kind == "human" and who in members)
        if len(members_at) >= least:
            columns.setdefault(column, {})[value] = members_at
    return {column: sides for column, sides in columns.items() if len(sides) > 1}
