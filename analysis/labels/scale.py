"""Scale of a rubric: its categories, and the probability from which a label is affirmative."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, get_args

from evenhand.analysis.types import Categories
from evenhand.errors import InputError
from evenhand.study.settings.analysis import OrderedWeights

if TYPE_CHECKING:
    from evenhand.rubrics import Rubric

Level = Literal["nominal", "ordinal", "interval"]
Origin = Literal["default", "declared", "tuned"]
"""Source of a threshold: the rubric, a declaration, or tuning on labels."""

MAX_CATEGORIES = 100
"""Most categories of a scale whose labels are not numbers."""
MOST_POINTS = 11
"""Most points of an interval scale on which labels are categories; with more, they are numbers."""
MAX_NUMBERS = 2001
"""Most different values of labels that are numbers."""


def category_values(categories: Categories, level: Level = "ordinal") -> tuple[float, ...]:
    """Return the categories as numbers, or their ranks from 1 if they are not numbers. Raises
    InputError at the interval level, which needs numbers.
    """
    try:
        return tuple(float(str(category)) for category in categories)
    except ValueError:
        if level == "interval":
            names = ", ".join(map(str, categories))
            raise InputError(
                f"the interval level needs categories that are numbers, not {names}"
            ) from None
        return tuple(float(rank) for rank in range(1, len(categories) + 1))


@dataclass(frozen=True)
class Tuning:
    """Basis of a tuned threshold: the threshold with the best `objective` in the labels of these
    `clusters` (ids), against the `reference` ("humans", or a rater), in place of `instead_of`.
    """

    clusters: frozenset[str]
    objective: str
    reference: str
    instead_of: float


@dataclass(frozen=True)
class Scale:
    """A declared scale; no part of it is inferred from the labels.

    - `categories`: in their order. `level`: the level of measurement.
    - `affirmative`: categories affirmative in the binary label; if none, there is no such label.
    - `unclear`: categories that mean that no decision is possible.
    - `collapse`: by coarser category, the categories in it, without the unclear ones.
    - `favours`: by category, the side of a pair that it favours, "a" or "b".
    - `threshold`: probability from which a label is affirmative. `thresholds`: exceptions by
      grader. `tunings`: basis of those that were tuned, by grader.
    - `unit`: what one label is about: "pair", "comparison", "response", or "" if not known.
    - `variant_of`: rubric of which this is another wording.
    - `part_of`: rubric whose labels are sets of options, if this scale is yes/no for one option.
    - `withheld`: by grader, units whose labels do not count, because the grader was made from
      people's labels of them (`evenhand improve`).
    - `number`: True if labels are any numbers, even few (see `is_number`); these are those seen.
    - `ordered`: weights of the kappa that verdicts use for ordered labels.
    - `ids`: ids of raters with display names, by display name; raters are sorted by id.

    >>> Scale("helpful", ("1", "2", "3"), "ordinal", frozenset({"3"})).affirmative_codes
    (2,)
    """

    name: str
    categories: tuple[str, ...]
    level: Level = "nominal"
    affirmative: frozenset[str] = frozenset()
    threshold: float = 0.5
    thresholds: Mapping[str, float] = field(default_factory=dict)
    tunings: Mapping[str, Tuning] = field(default_factory=dict)
    unit: Literal["pair", "comparison", "response", ""] = ""
    favours: Mapping[str, str] = field(default_factory=dict)
    unclear: frozenset[str] = frozenset()
    collapse: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variant_of: str = ""
    withheld: Mapping[str, frozenset[str]] = field(default_factory=dict)
    number: bool = False
    part_of: str = ""
    ordered: OrderedWeights = "linear"
    ids: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if fault := next(self._faults(), ""):
            raise InputError(f"{f'scale {self.name!r}' if self.name else 'the scale'}: {fault}")

    def _faults(self) -> Iterator[str]:
        """Yield a sentence for each fault of the declaration."""
        names, n_categories = ", ".join(self.categories), len(self.categories)
        if not self.categories or len(set(self.categories)) < n_categories:
            yield f"the categories must be at least one and all different, not {names or 'none'}"
        if self.is_number and n_categories > MAX_NUMBERS:
            yield (
                f"{n_categories} different numbers, more than {MAX_NUMBERS}; round them, "
                "for example to two places"
            )
        if n_categories > MAX_CATEGORIES and not self.is_number:
            yield (
                f"{n_categories} categories, more than {MAX_CATEGORIES}: labels that "
                "differ from item to item are no categories of a scale"
            )
        if self.level not in get_args(Level):
            yield f"the level is {self.level!r}; it must be one of {', '.join(get_args(Level))}"
        for unknown in sorted(self.affirmative - set(self.categories)):
            yield f"affirmative names {unknown!r}, which is none of the categories {names}"
        for category, side in self.favours.items():
            if category not in self.categories or side not in ("a", "b"):
                yield (
                    f"{category!r} is said to favour side {side!r}; it must be one of {names}, and "
                    "the side a or b"
                )
        for grader, threshold in {"": self.threshold, **self.thresholds}.items():  # "": all others
            if not 0 <= threshold <= 1:
                of_grader = f" of {grader}" if grader else ""
                yield f"the threshold{of_grader} is {threshold}; it must lie between 0 and 1"

    @classmethod
    def from_rubric(
        cls,
        rubric: Rubric,
        thresholds: Mapping[str, float] | None = None,
        tunings: Mapping[str, Tuning] | None = None,
    ) -> Scale:
        """Return a rubric's scale with the study's `thresholds` and `tunings` by grader."""
        return cls(
            name=rubric.name,
            categories=rubric.categories,
            level=rubric.level,
            affirmative=frozenset(rubric.affirmative),
            threshold=rubric.threshold,
            thresholds=dict(thresholds or {}),
            tunings=dict(tunings or {}),
            unit=rubric.unit,
            favours={option.key: option.favours for option in rubric.options if option.favours},
            unclear=frozenset(rubric.unclear),
            collapse={group.name: group.options for group in rubric.collapse},
            variant_of=rubric.variant_of,
        )

    def including(self, labels: Iterable[str]) -> Scale:
        """Return the scale; if its labels are any numbers, with the further ones of these."""
        if not self.number:
            return self
        labels = sorted({*self.categories, *labels} - {""}, key=float)
        return replace(self, categories=tuple(labels))

    @property
    def is_number(self) -> bool:
        """True if labels are numbers: on an interval scale of many points, or declared so."""
        has_many_points = len(self.categories) > MOST_POINTS or self.number
        return self.level == "interval" and has_many_points and self.has_numbers

    @property
    def has_numbers(self) -> bool:
        """True if all categories are finite numbers."""
        try:
            return all(math.isfinite(float(category)) for category in self.categories)
        except ValueError:
            return False

    @property
    def deciding_kappa(self) -> str:
        """Statistic of the kappa that verdicts use: unweighted for nominal labels."""
        return "cohen_kappa" if self.level == "nominal" else f"weighted_kappa_{self.ordered}"

    @property
    def affirmative_codes(self) -> tuple[int, ...]:
        """Codes of the affirmative categories."""
        return tuple(code for code, name in enumerate(self.categories) if name in self.affirmative)

    @property
    def values(self) -> tuple[float, ...]:
        """Categories as numbers, or else their ranks 1, 2, ..."""
        return category_values(self.categories)

    def threshold_for(self, rater: str) -> float:
        """Return the probability from which this rater's label is affirmative."""
        return self.thresholds.get(rater, self.threshold)

    def untuned_threshold_for(self, rater: str) -> float:
        """Return a rater's threshold without tuning: the rubric's, or the declared one."""
        tuning = self.tunings.get(rater)
        return tuning.instead_of if tuning else self.threshold_for(rater)
