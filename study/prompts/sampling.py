"""The stratified, reproducible sample of pairs that people label, which can be enlarged later.

First `digest` and `seeded_number`: with them a seed or a key fixes every random choice of a study.
A seed is public: anyone who reads study.toml can work out all that it fixes. What annotators must
not foresee is drawn with a key, which never leaves the store. Then samples with equal probabilities
within strata (`draw_sample`), and with unequal known ones (`chances_for`, `draw_pairs`).
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.errors import InputError
from evenhand.lazy import np, pd
from evenhand.study.prompts.pairs import CRITERIA, RESPONSE_ID


def digest(seed: int | bytes, *parts: str) -> str:
    """Return 64 hexadecimal digits fixed by the parts and a seed, or a key (HMAC, RFC 2104)."""
    if isinstance(seed, bytes):
        return hmac.digest(seed, "\x1f".join(parts).encode(), "sha256").hex()
    return hashlib.sha256("\x1f".join([str(seed), *parts]).encode()).hexdigest()


def seeded_number(seed: int | bytes, below: int, *parts: str) -> int:
    """Return a number from 0 to `below` - 1, fixed by the seed or key and the parts.

    >>> [seeded_number(1, 6, "die", str(throw)) for throw in range(5)]
    [3, 1, 5, 4, 5]
    """
    return int(digest(seed, *parts)[:8], 16) % below  # of 32 bits: nearly uniform


# ---- the sample with equal probabilities within strata ------------------------------------------
# A cell is a combination of values of the stratification columns. The cells' sizes are rounded so
# that the margin of every column equals its largest-remainder share of the sample. This is
# controlled rounding (Cox 1987), solved as a small integer programme. A seed fixes the order in
# which a cell's pairs are taken, so that a larger sample with the same seed contains the smaller.
DEFAULT_STRATA = ("template_category", "main_category")

Cell = tuple[str, ...]  # one value of each stratification column
_MARGIN_PENALTY = 1e3  # cost of a pair too many or too few in a margin, where one in a cell costs 1


class Margin(NamedTuple):
    """A value of a stratification column, and the number of pairs to be sampled with it."""

    column: int  # position among the stratification columns
    cells: list[int]  # indices of the cells with this value
    size: int


def largest_remainder(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """Return shares of `total` in proportion to `counts` (Hamilton's method); ties by name.

    >>> largest_remainder({"x": 5, "y": 3, "z": 1}, 4)
    {'x': 2, 'y': 1, 'z': 1}
    """
    sum_of_counts = sum(counts.values())
    shares = {name: total * count // sum_of_counts for name, count in counts.items()}
    n_left = total - sum(shares.values())
    by_remainder = sorted(counts, key=lambda name: (-(total * counts[name] % sum_of_counts), name))
    for name in by_remainder[:n_left]:
        shares[name] += 1
    return shares


def draw_sample(
    pairs: pd.DataFrame, size: int, strata: Sequence[str], seed: int, already: Sequence[str] = ()
) -> list[str]:
    """Return the ids of a sample of `size` pairs, stratified by the columns `strata`, in order of
    labelling. Pairs in `already` were sampled before: they come first, and the new ones follow.
    Pairs that are criteria of one response are sampled together, so that there may be a few more.
    Raises InputError for a size that the pairs cannot give or a column that they do not have.
    """
    if not 1 <= size <= len(pairs):
        raise InputError(f"a sample of {size} cannot be drawn from {len(pairs)} pairs")
    for column in strata:
        if column not in pairs:
            raise InputError(
                f"there is no column {column!r} to stratify by; "
                f"the pairs have {', '.join(map(str, pairs.columns))}"
            )
    shuffled = pairs["pair_id"].iloc[np.random.default_rng(seed).permutation(len(pairs))]
    cells = pairs[list(strata)].itertuples(index=False, name=None) if strata else [()] * len(pairs)
    cell_of = dict(zip(pairs["pair_id"], cells, strict=True))
    sampled, sampled_cells = set(already), [cell_of[pair] for pair in already]
    n_left = _cell_sizes(list(cell_of.values()), size, sampled_cells)  # counted down
    for cell in sampled_cells:
        n_left[cell] -= 1
    # A group is sampled as a whole: the criteria of one response, else one pair.
    group_ids = pairs[RESPONSE_ID if {*CRITERIA} <= {*pairs} else "pair_id"].to_numpy()
    groups = pairs["pair_id"].groupby(group_ids).agg(list)
    group_of = dict(zip(pairs["pair_id"], group_ids, strict=True))
    new_pairs: list[str] = []
    for pair in shuffled:
        if pair not in sampled and n_left[cell_of[pair]] > 0:
            members = [member for member in groups[group_of[pair]] if member not in sampled]
            for member in members:
                n_left[cell_of[member]] -= 1
            sampled.update(members)
            new_pairs += members
    return [*already, *new_pairs]


def _cell_sizes(cells: list[Cell], size: int, sampled_cells: list[Cell]) -> dict[Cell, int]:
    """Return the number of pairs of each cell: close to its share of `size`, with every margin as
    it should be. Margins that cannot be met (nested columns, or a sample that is being extended)
    are missed by as little as possible, the first column taking precedence. `cells` has the cell of
    every pair, `sampled_cells` those of pairs sampled before.
    """
    distinct_cells = sorted(set(cells))
    available = np.array([cells.count(cell) for cell in distinct_cells])
    fixed = np.array([sampled_cells.count(cell) for cell in distinct_cells])
    margins: list[Margin] = []
    for column in range(len(distinct_cells[0])):
        counts = Counter(cell[column] for cell in cells)
        for value, margin_size in sorted(largest_remainder(counts, size).items()):
            members = [index for index, cell in enumerate(distinct_cells) if cell[column] == value]
            margins.append(Margin(column, members, margin_size))
    # The solver sometimes gives up on fractional shares. Scaled to whole numbers they may give
    # another, equally good sample, and a seed must keep drawing the same one: so fractions first.
    for scale in (1, len(cells)):
        if (sizes := _controlled_rounding(available, fixed, margins, size, scale)) is not None:
            return dict(zip(distinct_cells, sizes.tolist(), strict=True))
    raise RuntimeError("controlled rounding failed")


def _controlled_rounding(
    available: np.ndarray, fixed: np.ndarray, margins: list[Margin], size: int, scale: int
) -> np.ndarray | None:
    """Return the number of pairs of each cell, shape (cells,); None where the solver fails.
    `available` and `fixed` are the pairs of each cell in all and those sampled before, shape
    (cells,). Distances from exact shares are multiplied by `scale`.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import lil_array

    exact = scale * size * available / available.sum()
    # Variables, by index: for each cell its size, its excess over the exact share and its lack of
    # it; for each margin its excess and its lack.
    n_cells, n_margins = len(available), len(margins)
    cell_excess, cell_lack, margin_excess = n_cells, 2 * n_cells, 3 * n_cells  # the first ones
    margin_lack = margin_excess + n_margins
    n_variables = margin_lack + n_margins
    # Equations: the total; for each cell scale * size - excess + lack = exact; margins likewise.
    equations = lil_array((1 + n_cells + n_margins, n_variables))
    equations[0, :n_cells] = 1
    for cell in range(n_cells):
        equations[1 + cell, [cell, cell_excess + cell, cell_lack + cell]] = scale, -1, 1
    for index, margin in enumerate(margins):
        row = 1 + n_cells + index
        equations[row, margin.cells] = 1
        equations[row, [margin_excess + index, margin_lack + index]] = -1, 1
    values = np.array([size, *exact, *(margin.size for margin in margins)], dtype=float)
    penalty = np.array([_MARGIN_PENALTY / (1 + margin.column) for margin in margins])
    cost = np.concatenate([np.zeros(n_cells), np.full(2 * n_cells, 1 / scale), penalty, penalty])
    upper = np.concatenate([available, np.full(n_variables - n_cells, math.inf)])
    lower = np.concatenate([fixed, np.zeros(n_variables - n_cells)])
    solution = milp(
        cost,
        integrality=np.arange(n_variables) < n_cells,  # the sizes are whole numbers
        bounds=Bounds(lower, upper),
        constraints=LinearConstraint(equations.tocsr(), values, values),
        options={"time_limit": 20.0, "mip_rel_gap": 0.0},
    )
    return None if solution.x is None else np.rint(solution.x[:n_cells]).astype(int)


# ---- samples with unequal known probabilities ---------------------------------------------------
# With these, every estimate can be weighted. A pair's probability of being in the sample rises with
# its score; it is never below what earlier draws gave it, so no probability is near 0. Pairs are
# drawn by the pivotal method (Deville & Tille 1998), which keeps to these probabilities exactly and
# to their sum within one pair.
MAX_RATIO = 2.0
"""Largest ratio of the probabilities of the pairs with the highest and the lowest score. If scores
are uninformative, the sample's efficiency is at least 4 r / (1 + r)^2 of one picked by chance, r
being this ratio: eight ninths, where 3 would leave three quarters (Kantorovich's inequality). The
gain is in benchmarks/results/uncertainty.md."""
MAX_CHANCE = 0.9  # largest probability of a pair, so that some pairs like it are not picked


@dataclass(frozen=True, kw_only=True)
class Wave:
    """A draw with known probabilities, made `by` "chance" or "uncertainty". `chances` has each
    pair's probability of being taken if it is not in the sample yet, also for pairs that were in it
    already; `taken` are the pairs that it took.
    """

    by: str
    chances: Mapping[str, float]
    taken: Sequence[str]


def inclusion(waves: Sequence[Wave], labelled: Sequence[float] = ()) -> dict[str, float]:
    """Return each pair's probability of being picked by any of the waves.

    `labelled` has the share of each wave's pairs that people have labelled so far; if empty, all
    are. As a wave is labelled in random order, part of it is a smaller wave.

    >>> first = Wave(by="chance", chances={"p1": 0.5, "p2": 0.5}, taken=["p1"])
    >>> second = Wave(by="uncertainty", chances={"p1": 0.2, "p2": 0.6}, taken=["p2"])
    >>> inclusion([first, second])
    {'p1': 0.6, 'p2': 0.8}
    """
    not_picked: dict[str, float] = {}
    for wave, share in zip(waves, labelled or [1.0] * len(waves), strict=True):
        for pair, chance in wave.chances.items():
            not_picked[pair] = not_picked.get(pair, 1.0) * (1.0 - share * chance)
    return {pair: 1.0 - chance for pair, chance in not_picked.items()}


def chances_for(
    scores: Mapping[str, float], prior: Mapping[str, float], more: int
) -> dict[str, float]:
    """Return each pair's probability of being taken if it is not in the sample yet, such that about
    `more` pairs are drawn.

    `scores` are from 0 to 1, `prior` the probabilities of having been picked earlier. A pair's
    total probability is proportional to the root of its score plus a floor - optimal where scores
    are variances (Neyman 1934) - or its earlier probability if that is larger. Raises InputError
    where `more` pairs cannot be picked that way.
    """
    floor = 1.0 / (MAX_RATIO**2 - 1.0)  # so that sqrt((floor + 1) / floor) is MAX_RATIO
    root_scores = np.sqrt([floor + score for score in scores.values()])
    priors = np.array([prior[pair] for pair in scores])
    max_more = float(np.maximum(MAX_CHANCE - priors, 0.0).sum())
    if more > max_more:
        raise InputError(
            f"at most {math.floor(max_more)} more pairs can be picked by uncertainty, not {more}: "
            "so many leave no choice; take fewer, or leave --by out"
        )
    low_factor, high_factor = 0.0, MAX_CHANCE / float(root_scores.min())  # all 0; all MAX_CHANCE
    for _ in range(100):  # bisection, to the precision of a float
        factor = (low_factor + high_factor) / 2.0
        # The sum of the added chances is the expected number of pairs.
        n_added = np.maximum(np.minimum(factor * root_scores, MAX_CHANCE) - priors, 0.0).sum()
        if n_added < more:
            low_factor = factor
        else:
            high_factor = factor
    total_chances = np.minimum(high_factor * root_scores, MAX_CHANCE)
    new_chances = np.maximum(total_chances - priors, 0.0) / (1.0 - priors)  # if not picked yet
    return dict(zip(scores, new_chances.tolist(), strict=True))


def draw_pairs(chances: Mapping[str, float], rng: np.random.Generator) -> list[str]:
    """Draw pairs with these probabilities by the pivotal method; return them in random order."""
    eligible = [pair for pair, chance in chances.items() if chance > 0]
    taken: list[str] = []
    pending: tuple[str, float] | None = None  # the pair that is not decided yet, and its chance
    for pair in (eligible[index] for index in rng.permutation(len(eligible))):
        if pending is None:
            pending = pair, chances[pair]
            continue
        other, other_chance = pending
        total = other_chance + chances[pair]
        # A duel decides one of the two: out if their chances sum to less than 1, else taken.
        if total < 1.0:
            pending = (other if rng.random() * total < other_chance else pair), total
        else:
            pair_is_taken = rng.random() * (2.0 - total) < 1.0 - other_chance
            taken.append(pair if pair_is_taken else other)
            pending = (other if pair_is_taken else pair), total - 1.0
    if pending is not None and rng.random() < pending[1]:
        taken.append(pending[0])
    return [taken[index] for index in np.argsort(rng.random(len(taken)))]
