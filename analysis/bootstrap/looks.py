"""How often a verdict may be looked at: what each look may spend of the error.

Whoever looks again after labelling more has another chance to be wrong. The error of all looks
together stays within `alpha` where the levels of the single looks add up to no more, whatever the
sample sizes were and why (alpha spending by the union bound; Lan & DeMets 1983 spend in the same
way, and gain a little from knowing how looks are correlated).

By default the first look has four fifths, so that whoever looks once pays little, and every further
look half of what is left: there may be any number. A study that declares its looks shares the error
evenly among them, and has none beyond.
"""

from __future__ import annotations

from evenhand.analysis.bootstrap.influence import ALPHA

FIRST = 0.8
"""The share of the error that the first look has."""


def level_of_look(look: int, declared: int = 0, alpha: float = ALPHA) -> float:
    """The one-sided level of a study's `look`, counted from 1; 0.0 where none is left, or for none.

    >>> [round(level_of_look(look), 5) for look in (1, 2, 3)]
    [0.02, 0.0025, 0.00125]
    >>> [level_of_look(look, declared=2) for look in (1, 2, 3)]
    [0.0125, 0.0125, 0.0]
    """
    if not look:
        return 0.0
    if declared:
        return alpha / declared if look <= declared else 0.0
    return alpha * (FIRST if look == 1 else (1.0 - FIRST) * 0.5 ** (look - 1))
