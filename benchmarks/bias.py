"""How often the bias audit accuses a grader that has no bias: `python -m benchmarks.bias`.

Every run draws a new study (synthetic) in which affirmative units are more frequent in one part of
the sample than in the rest, and graders whose errors know nothing of parts. The audit's scaled
shift stands beside the plain one, *difference of the grader less difference of people*. Two
populations: one in which a rater either sees the truth or tosses a coin, as the audit's model of
errors has it, and one in which raters see a normal variable with an error and call what lies above
0, in which that model holds roughly at best.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from benchmarks.documents import library_versions
from evenhand.analysis.bias.beside_people import BesidePeople
from evenhand.analysis.bias.calls import Calls
from evenhand.analysis.bootstrap.resamples import Resamples

OUT = Path(__file__).parent.parent / "docs" / "bias-audit.md"
SEED = 20231206
PAIRS, SUBJECTS, PEOPLE = 250, 4, 3
SHARES = (0.5, 0.2)
"""How many units are affirmative in the part and in the rest."""
PERSON = 0.8
GRADERS = (0.8, 0.6, 0.4, 0.2, 0.0)
"""How much of the truth a rater sees: a share of units, or of the variance."""
LEAN = 0.15
"""What share of the other units of the part the leaning grader calls affirmative."""

Array = np.ndarray
See = Callable[[float], Array]


def coin(part: Array, rng: np.random.Generator) -> See:
    """Raters who see the truth in a share of units and toss a fair coin in the others."""
    truth = rng.random(len(part)) < np.where(part, *SHARES)

    def see(share: float) -> Array:
        guess = rng.random(len(part)) < 0.5
        return np.where(rng.random(len(part)) < share, truth, guess)

    return see


def normal(part: Array, rng: np.random.Generator) -> See:
    """Raters who see a normal variable, half of its variance the pair's, with an error."""
    shared = np.repeat(rng.normal(size=PAIRS), SUBJECTS)
    own = (shared + rng.normal(size=len(part))) / np.sqrt(2.0)
    latent = own + ndtri(np.where(part, *SHARES))

    def see(share: float) -> Array:
        error = rng.normal(size=len(part))
        return np.sqrt(share) * latent + np.sqrt(1.0 - share) * error > 0

    return see


POPULATIONS = {"coin": coin, "normal": normal}


def study(population: str, seed: int, resamples: int) -> Array:
    """One study: (graders and the leaning one, scaled and plain, estimate low high)."""
    rng = np.random.default_rng([SEED, seed])
    part = np.repeat(rng.random(PAIRS) < 0.5, SUBJECTS)
    see = POPULATIONS[population](part, rng)
    people = np.column_stack([see(PERSON) for _ in range(PEOPLE)]).astype(float)
    graders = [see(share) for share in GRADERS]
    graders.append(see(PERSON) | (part & (rng.random(len(part)) < LEAN)))
    drawn = Resamples(np.ones(PAIRS), resamples, rng)
    x = part[:, None].astype(float)
    out = []
    for grader in graders:
        for beside in (people, people.mean(axis=1, keepdims=True)):
            # Beside the mean of people as if it were one person there is nothing to scale by.
            values = np.column_stack([beside, grader])
            found = BesidePeople(_calls(values), values.shape[1] - 1, drawn).slopes(x)[:, 0]
            each = drawn.interval(found, PAIRS)
            out.append((each.estimate, each.low, each.high))
    return np.array(out).reshape(len(graders), 2, 3)


def _calls(values: Array) -> Calls:
    n, raters = values.shape
    return Calls(
        raters=tuple(map(str, range(raters))),
        kinds=("human",) * (raters - 1) + ("model",),
        values=values,
        clusters=np.repeat(np.arange(PAIRS), SUBJECTS),
        subjects=(),
        subject=np.full(n, -1),
        unit=np.arange(n),
        subset="all|binary",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    found = {}
    with ProcessPoolExecutor(given.processes) as pool:
        for name in POPULATIONS:
            runs = pool.map(
                study, repeat(name), range(given.runs), repeat(given.resamples), chunksize=10
            )
            found[name] = np.stack(list(runs))
    given.out.write_text(page(found, given.runs, given.resamples), "utf-8")


def page(found: dict[str, Array], runs: int, resamples: int) -> str:
    """The page, from (runs, graders, scaled and plain, estimate low high) by population."""
    today = datetime.now(UTC).date()
    lines = [
        "# How often the bias audit accuses the innocent",
        "",
        f"Written by `python -m benchmarks.bias`, {today}, seed {SEED}, {library_versions()}.",
        "",
        f"In {runs:,} simulated studies a population (synthetic): {PAIRS} pairs x {SUBJECTS} "
        f"subjects, {PEOPLE} people, {resamples:,} resamples. {SHARES[0]:.0%} of the units are "
        f"affirmative in one half of the sample and {SHARES[1]:.0%} in the other. The graders' "
        "errors know nothing of that, but for the last grader's, which calls a further "
        f"{LEAN:.0%} of the units of the first half affirmative. *Accused* is the share of studies "
        "whose 95% interval leaves out 0, before any correction for many looks: 5% is the nominal "
        "share where there is no bias. *Plain* is the difference of the grader less the difference "
        "of people; *scaled* is what the audit reports (see [statistics](statistics.md)).",
        "",
        "In the population *coin* a rater sees the truth or guesses, which is the audit's model of "
        "errors; in *normal* raters see a normal variable with an error, which is not.",
        "",
        "| population | grader | scaled: mean shift | accused | plain: mean shift | accused |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    names = [f"sees {share:g}, people {PERSON:g}" for share in GRADERS]
    names.append(f"sees {PERSON:g}, leans")
    for population, each in found.items():
        accused = (each[..., 1] > 0) | (each[..., 2] < 0)
        for at, name in enumerate(names):
            cells = [
                f"{each[:, at, way, 0].mean():+.3f} | {accused[:, at, way].mean():.3f}"
                for way in (0, 1)
            ]
            lines.append(f"| {population} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
