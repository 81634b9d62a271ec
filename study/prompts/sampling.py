"""The stratified sample of pairs that people label: reproducible, and extensible without loss; and
every other choice that a seed or a key fixes once and for all, on every machine.

A seed is public: anyone who reads study.toml, or tries the numbers from 0 on, can work out all that
it fixes. What annotators must not foresee is drawn with a key, which never leaves the store.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.errors import InputError
from evenhand.lazy import np, pd
from evenhand.study.prompts.pairs import CRITERIA, RESPONSE_ID


def digest(seed: int | bytes, *parts: str) -> str:
    """64 hexadecimal digits that the seed, or the key (in bytes: RFC 2104), and the parts fix."""
    if isinstance(seed, bytes):
        return hmac.digest(seed, "\x1f".join(parts).encode(), "sha256").hex()
    return hashlib.sha256("\x1f".join([str(seed), *parts]).encode()).hexdigest()


def drawn(seed: int | bytes, below: int, *parts: str) -> int:
    """A number from 0 to `below` - 1.

    >>> [drawn(1, 6, "die", str(throw)) for throw in range(5)]
    [3, 1, 5, 4, 5]
    """
    return int(digest(seed, *parts)[:8], 16) % below


# The sample. Joint cells of the stratification columns are rounded so that the margin of every
# column equals its own largest-remainder share of the sample. This is controlled rounding (Cox
# 1987), solved as a small integer programme. Which pairs of a cell are taken follows a seeded
# ranking of all pairs, so that a larger sample with the same seed contains the smaller one.

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
    pairs: pd.DataFrame, size: int, strata: Sequence[str], seed: int, already: Sequence[str] = ()
) -> list[str]:
    """The pair ids of a sample of `size` pairs, in the order in which they are to be labelled.
    `already` are pairs sampled before: they stay, in front, and the new ones follow. The criteria
    of a response are sampled together, so that there may be a few more. Raises InputError for a
    size that the pairs cannot give or a column that they do not have.
    """
    if not 1 <= size <= len(pairs):
        raise InputError(f"a sample of {size} cannot be drawn from {len(pairs)} pairs")
    for column in strata:
        if column not in pairs:
            raise InputError(
                f"there is no column {column!r} to stratify by; "
                f"the pairs have {', '.join(map(str, pairs.columns))}"
            )
    ranked = pairs["pair_id"].iloc[np.random.default_rng(seed).permutation(len(pairs))]
    cells = pairs[list(strata)].itertuples(index=False, name=None) if strata else [()] * len(pairs)
    cell_of = dict(zip(pairs["pair_id"], cells, strict=True))
    kept = set(already)
    target = _cell_sizes(list(cell_of.values()), size, [cell_of[pair] for pair in already])
    for pair in already:
        target[cell_of[pair]] -= 1
    whole = pairs[RESPONSE_ID if {*CRITERIA} <= {*pairs} else "pair_id"].to_numpy()
    groups = pairs["pair_id"].groupby(whole).agg(list)
    group_of, new = dict(zip(pairs["pair_id"], whole, strict=True)), list[str]()
    for pair in ranked:
        if pair not in kept and target[cell_of[pair]] > 0:
            taken = [group for group in groups[group_of[pair]] if group not in kept]
            for row in taken:
                target[cell_of[row]] -= 1
            kept.update(taken)
            new += taken
    return [*already, *new]


def _cell_sizes(cells: list[Stratum], size: int, taken: list[Stratum]) -> dict[Stratum, int]:
    """Return the number of pairs from each joint cell: close to its share, with every margin as
    wanted. Margins that cannot be met (nested columns, or a sample that is being extended) are
    missed by as little as possible, the first column taking precedence.
    """
    names = sorted(set(cells))
    available = np.array([cells.count(name) for name in names])
    fixed = np.array([taken.count(name) for name in names])
    margins: list[Margin] = []
    for column in range(len(names[0])):
        counts = Counter(cell[column] for cell in cells)
        for value, wanted in sorted(largest_remainder(counts, size).items()):
            members = [i for i, name in enumerate(names) if name[column] == value]
            margins.append((column, members, wanted))
    # With fractions the solver sometimes gives up, with whole numbers it does not; but these
    # pick another of several equally good samples, and a seed must keep drawing the same one.
    for unit in (1, len(cells)):
        if (sizes := _controlled_rounding(available, fixed, margins, size, unit)) is not None:
            return dict(zip(names, sizes.tolist(), strict=True))
    raise RuntimeError("controlled rounding failed")


def _controlled_rounding(
    available: np.ndarray, fixed: np.ndarray, margins: list[Margin], size: int, unit: int
) -> np.ndarray | None:
    """Counts by cell; None where the solver fails. Distances are in `unit` parts of a pair."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import lil_array

    exact = unit * size * available / available.sum()
    # Columns: per cell x (count), over, under (distance from its exact share); per margin a miss
    # in either direction. Every row is an equation.
    cell, margin = len(available), len(margins)
    width = 3 * cell + 2 * margin
    rows = lil_array((1 + cell + margin, width))
    rows[0, :cell] = 1
    for i in range(cell):
        rows[1 + i, [i, cell + i, 2 * cell + i]] = unit, -1, 1
    for j, (_, members, _) in enumerate(margins):
        rows[1 + cell + j, members] = 1
        rows[1 + cell + j, [3 * cell + j, 3 * cell + margin + j]] = -1, 1
    right = np.array([size, *exact, *(wanted for _, _, wanted in margins)], dtype=float)
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


# Unequal probabilities that are known, so that every estimate can weight. A pair's probability of
# being in the sample rises with its score; it is never below what earlier draws gave it, so no
# probability comes near 0. Pairs are drawn by the pivotal method (Deville & Tille 1998), which
# keeps to these probabilities exactly and to their sum within one pair.

RATIO = 2.0
"""Ratio by which the pair with the highest score is likelier picked than one with the lowest, at
most. If scores turn out to say nothing, the sample is worth no less than 4 RATIO / (1 + RATIO)^2 of
one picked by chance: eight ninths, where 3 would leave three quarters (Kantorovich's inequality,
for weights). What it brings is in benchmarks/results/uncertainty.md."""
MOST = 0.9
"""No pair is surer than this to be picked: those passed over must speak for others like them."""


@dataclass(frozen=True, kw_only=True)
class Wave:
    """A draw with known probabilities. `chances` has each pair's probability of being taken if it
    is not in the sample yet, also for pairs that were in it already; `taken` are the pairs that it
    took.
    """

    by: str
    chances: Mapping[str, float]
    taken: Sequence[str]


def inclusion(waves: Sequence[Wave], labelled: Sequence[float] = ()) -> dict[str, float]:
    """Return each pair's probability of being picked by any of the waves.

    `labelled` is the share of each wave's pairs that people have labelled so far, all of them if
    empty: as a wave is labelled in an order of its own, part of it is a smaller wave.

    >>> first = Wave(by="chance", chances={"p1": 0.5, "p2": 0.5}, taken=["p1"])
    >>> second = Wave(by="uncertainty", chances={"p1": 0.2, "p2": 0.6}, taken=["p2"])
    >>> inclusion([first, second])
    {'p1': 0.6, 'p2': 0.8}
    """
    shares = labelled or [1.0] * len(waves)
    missed: dict[str, float] = {}
    for wave, share in zip(waves, shares, strict=True):
        for pair, chance in wave.chances.items():
            missed[pair] = missed.get(pair, 1.0) * (1.0 - share * chance)
    return {pair: 1.0 - missing for pair, missing in missed.items()}


def chances_for(
    scores: Mapping[str, float], before: Mapping[str, float], more: int
) -> dict[str, float]:
    """Return the probability of taking each pair if it is not in the sample yet, to draw `more`
    pairs.

    `scores` are from 0 to 1, `before` the probabilities of having been picked earlier. A pair's
    total probability is then proportional to the root of its score above a floor - optimal where
    scores are variances (Neyman 1934) - or its earlier probability if that is larger. Raises
    InputError where `more` pairs cannot be picked that way.
    """
    floor = 1.0 / (RATIO**2 - 1.0)
    size = np.sqrt([floor + scores[pair] for pair in scores])
    prior = np.array([before[pair] for pair in scores])
    room = float(np.maximum(MOST - prior, 0.0).sum())
    if more > room:
        raise InputError(
            f"at most {math.floor(room)} more pairs can be picked by uncertainty, not {more}: so "
            "many leave no choice; take fewer, or leave --by out"
        )
    low, high = 0.0, MOST / float(size.min())
    for _ in range(100):
        middle = (low + high) / 2.0
        gained = np.maximum(np.minimum(middle * size, MOST) - prior, 0.0).sum()
        low, high = (middle, high) if gained < more else (low, middle)
    chance = np.maximum(np.minimum(high * size, MOST) - prior, 0.0) / (1.0 - prior)
    return dict(zip(scores, chance.tolist(), strict=True))


def pick(chances: Mapping[str, float], rng: np.random.Generator) -> list[str]:
    """Draw pairs with these probabilities, as many as these add up to, in random order."""
    names = [pair for pair, chance in chances.items() if chance > 0]
    left = {pair: chances[pair] for pair in (names[n] for n in rng.permutation(len(names)))}
    taken: list[str] = []
    duel: tuple[str, float] | None = None
    for pair, chance in left.items():
        if duel is None:
            duel = pair, chance
            continue
        (other, its), both = duel, duel[1] + chance
        # One of the two is settled: out where both chances fit into one, else taken.
        if both < 1.0:
            duel = (other if rng.random() * both < its else pair), both
        else:
            stays = rng.random() * (2.0 - both) < 1.0 - its
            taken.append(pair if stays else other)
            duel = (other if stays else pair), both - 1.0
    if duel is not None and rng.random() < duel[1]:
        taken.append(duel[0])
    return [taken[n] for n in np.argsort(rng.random(len(taken)))]
