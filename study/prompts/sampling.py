"""The stratified sample of pairs that people label: reproducible, and extensible without loss.

Joint cells of the stratification columns are rounded so that the margin of every column equals its
own largest-remainder share of the sample. This is controlled rounding (Cox 1987), solved as a small
integer programme. Which pairs of a cell are taken follows a seeded ranking of all pairs, so that a
larger sample with the same seed contains the smaller one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

DEFAULT_STRATA = ("template_category", "main_category")

Stratum = tuple[str, ...]
Margin = tuple[int, list[int], int]
"""A column's number, its cells of one value, and how many pairs of it are wanted."""


def largest_remainder(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """Shares of `total` in proportion to `counts` (Hamilton's method); ties by name.

    >>> largest_remainder({"x": 5, "y": 3, "z": 1}, 4)
    {'x': 2, 'y': 1, 'z': 1}
    """
    everything = sum(counts.values())
    exact = {name: (total * count, everything) for name, count in counts.items()}
    shares = {name: top // bottom for name, (top, bottom) in exact.items()}
    left = total - sum(shares.values())
    by_remainder = sorted(counts, key=lambda name: (-(exact[name][0] % everything), name))
    for name in by_remainder[:left]:
        shares[name] += 1
    return shares


def draw_sample(
    pairs: pd.DataFrame,
    size: int,
    strata: Sequence[str],
    seed: int,
    already: Sequence[str] = (),
) -> list[str]:
    """The pair ids of a sample of `size` pairs, in the order in which they are to be labelled.

    `already` are pairs sampled before: they stay, in front, and the new ones follow. Raises
    InputError for a size that the pairs cannot give or a column that they do not have.
    """
    if not 1 <= size <= len(pairs):
        raise InputError(f"a sample of {size} cannot be drawn from {len(pairs)} pairs")
    for column in strata:
        if column not in pairs:
            raise InputError(
                f"there is no column {column!r} to stratify by; "
                f"the pairs have {', '.join(map(str, pairs.columns))}"
            )
    ranked = _ranked(pairs["pair_id"].tolist(), seed)
    cell_of = dict(
        zip(
            pairs["pair_id"],
            pairs[list(strata)].itertuples(index=False, name=None) if strata else [()] * len(pairs),
            strict=True,
        )
    )
    kept = set(already)
    target = _cell_sizes(list(cell_of.values()), size, [cell_of[pair] for pair in already])
    for pair in already:
        target[cell_of[pair]] -= 1
    new = []
    for pair in ranked:
        if pair not in kept and target[cell_of[pair]] > 0:
            target[cell_of[pair]] -= 1
            new.append(pair)
    return [*already, *new]


def _ranked(pair_ids: list[str], seed: int) -> list[str]:
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(pair_ids))
    return [pair_ids[index] for index in order]


def _cell_sizes(cells: list[Stratum], size: int, taken: list[Stratum]) -> dict[Stratum, int]:
    """Return the number of pairs from each joint cell: close to its share, with every margin as
    wanted.

    Margins that cannot be met (nested columns, or a sample that is being extended) are missed by as
    little as possible, the first column taking precedence.
    """
    import numpy as np

    names = sorted(set(cells))
    available = np.array([cells.count(name) for name in names])
    fixed = np.array([taken.count(name) for name in names])
    margins = _margins(names, cells, size)
    # With fractions the solver sometimes gives up, with whole numbers it does not; but these
    # pick another of several equally good samples, and a seed must keep drawing the same one.
    for unit in (1, len(cells)):
        counts = _controlled_rounding(available, fixed, margins, size, unit)
        if counts is not None:
            return dict(zip(names, counts.tolist(), strict=True))
    raise RuntimeError("controlled rounding failed")


def _controlled_rounding(
    available: np.ndarray, fixed: np.ndarray, margins: list[Margin], size: int, unit: int
) -> np.ndarray | None:
    """Counts by cell, None where the solver fails. Distances from exact shares are counted in
    `unit` parts of a pair.
    """
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import lil_array

    exact = unit * size * available / available.sum()
    # Columns: per cell x (count), over, under (distance from its exact share); per margin a miss
    # in either direction. Every row is an equation.
    cell, margin = len(available), len(margins)
    width = 3 * cell + 2 * margin
    rows = lil_array((1 + cell + margin, width))
    right = np.zeros(1 + cell + margin)
    rows[0, :cell] = 1
    right[0] = size
    for i in range(cell):
        rows[1 + i, i], rows[1 + i, cell + i], rows[1 + i, 2 * cell + i] = unit, -1, 1
        right[1 + i] = exact[i]
    for j, (_, members, wanted) in enumerate(margins):
        for i in members:
            rows[1 + cell + j, i] = 1
        rows[1 + cell + j, 3 * cell + j], rows[1 + cell + j, 3 * cell + margin + j] = -1, 1
        right[1 + cell + j] = wanted
    penalty = np.array([1e3 / (1 + column) for column, _, _ in margins])
    cost = np.concatenate([np.zeros(cell), np.full(2 * cell, 1 / unit), penalty, penalty])
    upper = np.concatenate([available, np.full(width - cell, math.inf)])
    lower = np.concatenate([fixed, np.zeros(width - cell)])
    integral = np.concatenate([np.ones(cell), np.zeros(width - cell)])
    solution = milp(
        cost,
        integrality=integral,
        bounds=Bounds(lower, upper),
        constraints=LinearConstraint(rows.tocsr(), right, right),
        options={"time_limit": 20.0, "mip_rel_gap": 0.0},
    )
    return None if solution.x is None else np.rint(solution.x[:cell]).astype(int)


def _margins(names: list[Stratum], cells: list[Stratum], size: int) -> list[Margin]:
    """Return, for every value of every column, the column's number, its cells, and its wanted
    count.
    """
    margins = []
    for column in range(len(names[0])):
        counts: dict[str, int] = {}
        for cell in cells:
            counts[cell[column]] = counts.get(cell[column], 0) + 1
        wanted = largest_remainder(counts, size)
        for value in sorted(counts):
            members = [i for i, name in enumerate(names) if name[column] == value]
            margins.append((column, members, wanted[value]))
    return margins
