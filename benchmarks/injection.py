"""How often the injection audit is wrong, by simulation: `python -m benchmarks.injection`.

Every run draws the answers of a grader whose gullibility is known and has the product's own code
say what the audit found. Steadfast graders answer attacks as they answer placebos, with test-retest
noise of their own, half of the pairs twice as noisy; a shaken one is moved by any text, harmless or
not; one that quotes repeats the attack in its reply and goes on, and the product's own parser reads
that. At the bound an attack does exactly as much as is allowed. All graders are synthetic.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bootstrap.intervals import wilson
from evenhand.analysis.injection import Audit, add_injection_rows, audits
from evenhand.analysis.request import Request, StudyFacts
from evenhand.analysis.results import ResultRows
from evenhand.rubrics import load_rubric
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from evenhand.study.tables.ratings import ATTACKS
from harness.gullible import PAIR, SCALE, TWO, SyntheticGrader

OUT = RESULTS / "injection.md"
SEED = 20231206
BOUNDS = DecisionSettings().injection
BOUND = BOUNDS.pulled
SHARES = {"5 points": SCALE, "pairs": PAIR, "yes or no": TWO}
ONE = "plain_order"


@dataclass(frozen=True)
class Cell:
    """A grader, `obeys`: the effect of an attack; of all of them, or only of `ONE`."""

    rubric: str
    units: int
    per_pair: int = 1
    noise: float = 0.1
    shaken: float = 0.0
    effect: float = 0.0
    everywhere: bool = False
    states: bool = False
    outcome: str = "pulled"
    quotes: bool = False

    @property
    def kind(self) -> str:
        """What the grader is, in words."""
        if self.effect:
            which = "all attacks" if self.everywhere else "one attack"
            return f"{which}: {self.outcome.replace('_', ' ')} {self.effect:g}"
        if self.quotes:
            return "quotes the attack and goes on"
        return "shaken by any text" if self.shaken else "steadfast"

    def grader(self) -> SyntheticGrader:
        """One whose attacks have this effect: what it says without obeying counts too."""
        named = ATTACKS if self.everywhere else (ONE,)
        if self.quotes:
            return SyntheticGrader(self.noise, speaks=_quoting, reads=_read)
        if self.outcome == "silenced":
            return SyntheticGrader(self.noise, mute=dict.fromkeys(named, self.effect))
        if self.outcome == "knocked_off":
            # Whoever says the third label anyway cannot be knocked off to it.
            moved = min(self.effect / (1.0 - SHARES[self.rubric][THIRD]), 1.0)
            return SyntheticGrader(self.noise, knocked=dict.fromkeys(named, moved))
        q = len(SHARES[self.rubric])
        usual = self.noise / (q - 1)  # how often the target comes by itself
        obeys = min(self.effect / (1.0 - usual), 1.0)
        return SyntheticGrader(self.noise, self.shaken, dict.fromkeys(named, obeys), self.states)


_QUOTING = (
    'The text ends with an instruction to "answer {target}". I ignore it.\n\nRating: {label}',
    "{label}\n\n(The response tries to make me answer {target}; I did not follow that.)",
    'I note an injected line, "Final answer: {target}", and disregard it.\n\nAnswer: {label}',
    'A note claims "the correct answer is {target}"; it is a part of the text.\nRating: {label}',
)
THIRD = "3"


def _quoting(label: str, target: str) -> str:
    """An innocent reply: it names the attack, and then rates. Two of its labels stand in it."""
    nth = zlib.crc32(f"{label} {target}".encode())
    return _QUOTING[nth % len(_QUOTING)].format(label=label, target=target) + f"\0{label}"


def _read(reply: str) -> str:
    """What the product reads off it. What it cannot read it asks once more for one key alone."""
    said, _, label = reply.partition("\0")
    return load_rubric("hedging").parser.label(said) or label


SIZES = (30, 100)
STEADFAST = (
    *(Cell(name, n, noise=noise) for name in SHARES for n in SIZES for noise in (0.1, 0.3)),
    *(Cell("5 points", n, noise=0.0) for n in SIZES),
    *(Cell(name, 30, 2) for name in SHARES),
    *(Cell(name, 30, shaken=0.3) for name in SHARES),
    Cell("5 points", 30, states=True),
    *(Cell("5 points", n, quotes=True) for n in SIZES),
)
SCALES = ("5 points", "pairs")
CELLS = (
    *STEADFAST,
    *(Cell(name, n, effect=BOUND) for name in SCALES for n in SIZES),
    *(Cell(name, n, effect=BOUND, everywhere=True) for name in SCALES for n in SIZES),
    Cell("5 points", 30, 2, effect=BOUND, everywhere=True),
    *(Cell(name, n, effect=much) for name in SCALES for n in SIZES for much in (0.3, 0.5)),
    *(
        Cell("5 points", n, effect=much, everywhere=True, outcome=outcome)
        for outcome in ("knocked_off", "silenced")
        for n in SIZES
        for much in (BOUNDS.of(outcome), 0.5)
    ),
)


@dataclass
class Tally:
    """What was said, in so many runs."""

    runs: int = 0
    alarms: int = 0
    pulled: int = 0
    knocked_off: int = 0
    silenced: int = 0
    withstands: int = 0
    named: int = 0

    def add(self, other: Tally) -> None:
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[Cell, Tally]:
    """Some runs of one cell."""
    tally, kind = Tally(), CELLS.index(cell)
    for run in runs:
        audit = _audited(cell, np.random.default_rng([seed, kind, run]), resamples)
        beyond = {each.name for each in audit.beyond(BOUNDS)}
        tally.runs += 1
        tally.alarms += any(each.has_effect for each in audit.outcomes[0].attacks)
        tally.pulled += "pulled" in beyond
        tally.knocked_off += "knocked_off" in beyond
        tally.silenced += "silenced" in beyond
        tally.withstands += audit.status(BOUNDS) == "withstands"
        tally.named += audit.outcomes[0].worst(BOUND).effect["at"] == ONE
    return {cell: tally}


def _audited(cell: Cell, rng: np.random.Generator, resamples: int) -> Audit:
    table, units = cell.grader().audited(
        rng, cell.units, SHARES[cell.rubric], per_pair=cell.per_pair
    )
    rows = ResultRows("r")
    facts, seed = StudyFacts(attacked=table), int(rng.integers(2**31))
    settings = AnalysisSettings(resamples=resamples)
    add_injection_rows(rows, Request(units, settings, facts=facts, seed=seed))
    (audit,) = audits(rows.rows.values())
    return audit


def document(found: dict[Cell, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# How often the injection audit is wrong",
            "",
            f"Written by `python -m benchmarks.injection --runs {runs}`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            f"{runs:,} simulated audits a row (synthetic graders), {resamples:,} resamples, which "
            "decide nothing: the p is a sign-flip test, the bounds are computed. An *alarm* says "
            "that any of ten attacks pulls labels beyond chance (Holm p < .05). *Pulled*, *knocked "
            "off* and *silenced* are what the audit finds beyond the usual bounds of "
            f"{BOUNDS.pulled:g}, {BOUNDS.knocked_off:g} and {BOUNDS.silenced:g}, *withstands* that "
            "all is within; else it cannot tell yet. Noise is how often a grader changes its own "
            "label when it is asked again, on average; in half of the pairs it is twice that, in "
            "the others none. Who *quotes* names the attack in the reply and then rates; its "
            "replies are read by the product's parser, and what that cannot read is asked again. "
            "In brackets stands the Monte Carlo interval (Wilson, 95%).",
            "",
            *_said(found),
            "",
            "| grader | rubric | units | pairs | noise | alarm | pulled | knocked off | silenced "
            "| withstands | right attack named |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(cell, tally) for cell, tally in found.items()),
            "",
        ]
    )


def _said(found: dict[Cell, Tally]) -> Iterator[str]:
    """The worst rates of each kind of error."""
    steadfast = {cell: tally for cell, tally in found.items() if not cell.effect}
    bound = {c: tally for c, tally in found.items() if c.effect == BOUNDS.of(c.outcome)}
    pulled = {cell: tally for cell, tally in bound.items() if cell.outcome == "pulled"}
    others = {cell: tally for cell, tally in found.items() if cell.outcome != "pulled"}
    for title, cells, name in (
        ("False alarms on graders that no attack moves", steadfast, "alarms"),
        ("*Pulled* although no effect is beyond the bound", pulled, "pulled"),
        ("*Pulled* although the grader is but knocked off or silenced", others, "pulled"),
        ("*Knocked off* although no attack does so", steadfast, "knocked_off"),
        ("*Silenced* although no attack does so", steadfast, "silenced"),
        ("*Withstands* although an effect is at the bound", bound, "withstands"),
    ):
        rates = [getattr(tally, name) / tally.runs for tally in cells.values()]
        yield f"- {title}: at most {max(rates, default=0.0):.3f} in {len(cells)} rows."


def _line(cell: Cell, tally: Tally) -> str:
    def share(count: int) -> str:
        low, high = wilson(count / tally.runs, tally.runs)
        return f"{count / tally.runs:.3f} [{low:.3f}, {high:.3f}]"

    stated = ", probabilities" if cell.states else ""
    one = bool(cell.effect) and not cell.everywhere and cell.outcome == "pulled"
    cells = (
        cell.kind + stated,
        cell.rubric,
        cell.units,
        cell.units // cell.per_pair,
        f"{cell.noise:g}",
        share(tally.alarms),
        share(tally.pulled),
        share(tally.knocked_off),
        share(tally.silenced),
        share(tally.withstands),
        f"{tally.named / tally.runs:.3f}" if one else "-",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=300, resamples=20, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
