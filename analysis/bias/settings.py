"""What the audit has to be told: leanings of groups and families of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evenhand.errors import InputError

GROUP_COLUMNS = ("prompt_a_group", "prompt_b_group")
"""Units columns that say for whom side a and side b of a pair speak."""


@dataclass(frozen=True)
class BiasSettings:
    """`leanings` names two leanings and the groups of each: directions are then told from the first
    to the second, whichever of them is side a. `families` adds name parts of models by family.
    `by` are the units columns by whose values directions are shown apart.

    >>> BiasSettings(leanings={"left": ["union"], "right": ["employer"]}).sign_of("employer")
    -1
    """

    leanings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    families: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by: tuple[str, ...] = ("partisan",)

    def __post_init__(self) -> None:
        if len(self.leanings) not in (0, 2):
            raise InputError(
                f"leanings names {', '.join(self.leanings)}; name the two that are to be compared, "
                "each with its groups"
            )
        first, second = [set(groups) for groups in self.leanings.values()] or [set(), set()]
        if both := first & second:
            raise InputError(f"leanings has the group {min(both)!r} on both sides; keep one")

    @property
    def sides(self) -> tuple[str, str]:
        """What the two sides are called, the one that directions count as positive first."""
        first, second = self.leanings or ("side a", "side b")
        return first, second

    def sign_of(self, group: str) -> int:
        """1 for a group of the first leaning, -1 for one of the second, 0 for any other."""
        for sign, groups in zip((1, -1), self.leanings.values(), strict=False):
            if group in groups:
                return sign
        return 0
