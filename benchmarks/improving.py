"""How often `evenhand improve` calls a grader better that is not: `python -m benchmarks.improving`.

Every study has labels of three people, an old grader and 20 candidates, all as good as the old one,
or one of them truly better by some kappa. The parting, the choice by successive halving and the
proof are the product's own functions. Beside them stands what *best on all labels* claims: the
candidate with the highest kappa on all labels, and its 95% interval there, as if it had been the
only one; and what is attainable: the same proof for somebody who knows which candidate is the
better one, on the same *prove*, and on all that is not *learn*.

The same on real labels, over many partings of the same units: published votes of 14 graders on
LLMBar (a model with a prompt each), of which one is the old grader and the others are candidates;
and DICES-350, where members of the public are graders and an expert stands for people.

The population (synthetic) is that of `benchmarks.drift`: what a unit is like is a normal variable,
half of whose variance is its pair's, and whoever sees less of it agrees less. Half of the variance
of the graders' errors is common to all of them, as of one model that reads several prompts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri

from benchmarks.decisions import KAPPA, PEOPLE
from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from benchmarks.drift import sees
from evenhand.analysis import Scale
from evenhand.analysis.bootstrap.bounds import ALPHA, level_of_reading
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.verdicts.versions import (
    MIN_PROOF_CHANCE,
    Gain,
    VersionComparison,
    Versions,
    chance_of_proof,
    choose,
    hash_order,
    prove,
    score_of,
    split_clusters,
)
from evenhand.demo import published_labels
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.study.tables.ratings import validate_ratings

OUT = RESULTS / "improving.md"
SEED = 20231207
CANDIDATES = 20
OLD_KAPPA = KAPPA - 0.2
"""Of the old grader with people: below their own, so that there is something to gain."""
COMMON = 0.5
SCALE = Scale("r", ("no", "yes"), affirmative=frozenset({"yes"}))
RULE = DecisionSettings()
OLD = "old"
NAMES = [f"new{n:02}" for n in range(CANDIDATES)]


@dataclass(frozen=True)
class Cell:
    """A number of clusters of one unit each, and the gain of the one candidate that is better."""

    clusters: int
    gain: float
    prevalence: float = 0.5


CELLS = tuple(Cell(clusters, gain) for gain in (0.0, 0.05, 0.1, 0.2) for clusters in (60, 120, 250))


@dataclass
class Tally:
    """Runs of a cell: proofs by outcome, those of the candidate that is better, found or known, and
    the claims.
    """

    runs: int = 0
    better: int = 0
    worse: int = 0
    found: int = 0
    met: int = 0
    on_choose: float = 0.0
    on_prove: float = 0.0
    stopped: int = 0
    lost: int = 0
    known: int = 0
    known_all: int = 0
    claimed: float = 0.0
    claims: int = 0
    asked: float = 0.0

    def add(self, other: Tally) -> None:
        """Take in another process's share."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def codes(cell: Cell, rng: np.random.Generator) -> npt.NDArray[np.int8]:
    """Codes (units, people, candidates and the old grader); 1 is yes."""
    agreed = [OLD_KAPPA + cell.gain, *[OLD_KAPPA] * CANDIDATES]
    share = np.array(
        [sees(cell.prevalence)] * PEOPLE + [sees(cell.prevalence, each) for each in agreed]
    )
    unit = rng.normal(size=(cell.clusters, 1))
    error = rng.normal(size=(cell.clusters, len(share)))
    common = rng.normal(size=(cell.clusters, 1))
    error[:, PEOPLE:] = math.sqrt(COMMON) * common + math.sqrt(1 - COMMON) * error[:, PEOPLE:]
    yes = np.sqrt(share) * unit + np.sqrt(1 - share) * error > ndtri(1 - cell.prevalence)
    found: npt.NDArray[np.int8] = yes.astype(np.int8)
    return found


@cache
def blank(clusters: int) -> LabelMatrix:
    """The labels of such a study before anybody has said anything but yes."""
    names = [*(f"h{n}" for n in range(PEOPLE)), *NAMES, OLD]
    rows = [
        {"unit_id": f"u{n:04}", "rater_id": name, "label": "yes"}
        for n in range(clusters)
        for name in names
    ]
    table = pd.DataFrame(rows).assign(rubric=SCALE.name)
    table["rater_kind"] = np.where(table["rater_id"].str.startswith("h"), "human", "model")
    found = encode(combine_readings(validate_ratings(table), SCALE), SCALE)
    assert found.raters == tuple(names)
    return found


def study(cell: Cell, rng: np.random.Generator) -> Tally:
    """One study: part, choose, prove; and what the best on all labels claims."""
    labels = replace(blank(cell.clusters), codes=codes(cell, rng))
    ids = [f"u{n:04}" for n in range(cell.clusters)]
    rarest = int(labels.codes[:, :PEOPLE].mean() < 0.5)
    strata = {
        unit: str(int((row == rarest).any()))
        for unit, row in zip(ids, labels.codes[:, :PEOPLE], strict=True)
    }
    parts = split_clusters(strata, seed=int(rng.integers(2**31)), rubric="r")

    def only(names: Sequence[str], clusters: Sequence[str]) -> LabelMatrix:
        kept = np.isin(ids, list(clusters))[:, None] & np.isin(
            labels.raters, [*labels.raters[:PEOPLE], *names]
        )
        return replace(labels, codes=np.where(kept, labels.codes, -1))

    chosen = choose(OLD, NAMES, [u for u in ids if parts[u] == "choose"], only, RULE)
    scores = [score_of(labels, name).kappa for name in NAMES]
    best = NAMES[int(np.nanargmax(scores))]
    claim = VersionComparison.of(*labels.folded(), Versions(OLD, best), 0.0)
    tally = Tally(runs=1)
    tally.asked = sum((len(each.scores) - 1) * each.clusters for each in chosen.rounds)
    if claim is not None:
        values = claim.after.kappas - claim.before.kappas
        tally.claimed = float(values[0])
        tally.claims = int(claim.score_bounds(values).interval(float(values[0]), ALPHA).low > 0)
    proof = [u for u in ids if parts[u] == "prove"]
    all_but_learn = [u for u in ids if parts[u] != "learn"]

    def proved(new: str, clusters: Sequence[str]) -> Gain:
        return prove(only([OLD, new], clusters), OLD, new, RULE, look=1)

    tally.known = int(proved(NAMES[0], proof).outcome == "better")
    tally.known_all = int(proved(NAMES[0], all_but_learn).outcome == "better")
    if chosen.best:
        gain = proved(chosen.best, proof)
        tally.met, tally.on_choose, tally.on_prove = 1, chosen.gain, gain.estimate
        part = only([OLD, chosen.best], [u for u in ids if parts[u] == "choose"])
        level = level_of_reading(1)
        if chance_of_proof(part, OLD, chosen.best, len(proof), level) < MIN_PROOF_CHANCE:
            tally.stopped, tally.lost = 1, int(gain.outcome == "better")
            return tally
        tally.better = int(gain.outcome == "better")
        tally.worse = int(gain.outcome == "worse")
        tally.found = int(gain.outcome == "better" and chosen.best == NAMES[0])
    return tally


PARTINGS = 200


@dataclass(frozen=True)
class PublishedSet:
    """Published labels, of which one rater's stand for people's; `old_ones` are the old graders, or
    the shares of the graders who agree with people less than they do.
    """

    name: str
    people: str
    categories: tuple[str, ...]
    old_ones: tuple[str | float, ...]


SETS = (
    PublishedSet(
        "llmbar",
        "gold",
        ("1", "2"),
        ("PaLM2/Vanilla", "ChatGPT/Metrics_Reference#run2", "GPT-4/Vanilla"),
    ),
    PublishedSet("dices", "expert", ("No", "Unsure", "Yes"), (0.1, 0.5, 0.9)),
)


@cache
def published(of: PublishedSet) -> tuple[LabelMatrix, list[str]]:
    """The labels of a published set, and its units in the matrix's order."""
    table = published_labels(of.name).rename(columns={"item_id": "unit_id"})
    table = table.drop(columns="slice", errors="ignore").assign(rubric=of.name)
    kinds = np.where(table["rater_id"] == of.people, "human", "model")
    silent = np.where(table["label"] == "", "unparseable", "")
    ratings = validate_ratings(table.assign(unscored_reason=silent, rater_kind=kinds))
    scale = Scale(of.name, of.categories)
    readings = combine_readings(ratings, scale)
    return encode(readings, scale), list(readings.units)


def on_published(of: PublishedSet, old: str, seed: int) -> tuple[str, Gain | None, float, bool]:
    """Return the best candidate in one parting of a published set, its proof, its gain on choose,
    and whether the product would have begun the proof.
    """
    labels, ids = published(of)
    people = labels.codes[:, labels.raters.index(of.people)]
    strata = {unit: str(code) for unit, code in zip(ids, people, strict=True)}
    parts = split_clusters(strata, seed=seed, rubric=of.name)

    def only(names: Sequence[str], clusters: Sequence[str]) -> LabelMatrix:
        kept = np.isin(ids, list(clusters))[:, None] & np.isin(labels.raters, [of.people, *names])
        return replace(labels, codes=np.where(kept, labels.codes, -1))

    def part(name: str) -> list[str]:
        own = [unit for unit in ids if parts[unit] == name]
        return hash_order(own, seed=seed, rubric=of.name)

    names = [name for name in labels.raters if name not in (of.people, old)]
    if len(names) > CANDIDATES:
        names = np.random.default_rng(seed).permutation(names)[:CANDIDATES].tolist()
    choice, kept = part("choose"), part("prove")
    chosen = choose(old, names, choice, only, RULE)
    if not chosen.best:
        return "", None, math.nan, False
    proof = prove(only([old, chosen.best], kept), old, chosen.best, RULE, look=1)
    on_choose = only([old, chosen.best], choice)
    chance = chance_of_proof(on_choose, old, chosen.best, len(kept), level_of_reading(1))
    return chosen.best, proof, chosen.gain, chance >= MIN_PROOF_CHANCE


def old_ones(of: PublishedSet) -> list[str]:
    """Return the names of a set's old graders."""
    labels, _ = published(of)
    graders = [labels.raters[at] for at in labels.models]
    ranked = sorted(graders, key=lambda name: score_of(labels, name).kappa)
    return [
        each if isinstance(each, str) else ranked[int(each * len(ranked))] for each in of.old_ones
    ]


def real_lines(of: PublishedSet) -> list[str]:
    """Lines on the published votes."""
    lines = []
    for old in old_ones(of):
        found = [on_published(of, old, seed) for seed in range(PARTINGS)]
        proofs = [(gain, proof) for _, proof, gain, _ in found if proof is not None]
        begun = [proof.outcome for _, proof, _, is_begun in found if proof and is_begun]
        best = Counter(name for name, *_ in found if name).most_common(1)
        reach = [proof.estimate - proof.low for _, proof in proofs if proof.low > -math.inf]
        cells = [
            old,
            f"{score_of(published(of)[0], old).kappa:.2f}",
            f"{len(proofs) / PARTINGS:.2f}",
            best[0][0] if best else "-",
            f"{np.mean([gain for gain, _ in proofs]):+.2f}" if proofs else "-",
            f"{np.mean([proof.estimate for _, proof in proofs]):+.2f}" if proofs else "-",
            f"{np.mean(reach):.2f}" if reach else "-",
            f"{(len(proofs) - len(begun)) / PARTINGS:.2f}",
            *(f"{begun.count(each) / PARTINGS:.2f}" for each in ("better", "not_shown", "worse")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[Cell, Tally]:
    """Some studies of one cell; nothing is resampled."""
    tally = Tally()
    for run in runs:
        tally.add(study(cell, np.random.default_rng([seed, run, CELLS.index(cell)])))
    return {cell: tally}


def document(found: dict[Cell, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    bound = ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / runs)
    nulls = [each for cell, each in found.items() if not cell.gain]
    passed = sum(each.better / each.runs <= bound for each in nulls)
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# How often an improved grader is called better",
            "",
            f"Written by `python -m benchmarks.improving --runs {runs}`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            f"Each cell has {runs:,} simulated studies (synthetic) at prevalence .5: {PEOPLE} "
            f"people with a kappa of {KAPPA:g}, an old grader with {OLD_KAPPA:g}, and {CANDIDATES} "
            "candidates as good as it, of which one is better by the gain. At gain 0 *better* is "
            f"wrong, and passes up to {bound:.1%}: nominally {ALPHA:.1%}, and two Monte Carlo "
            f"standard errors above. {passed} of {len(nulls)} cells pass. The first reading of the "
            f"labels kept for the proof is at the level {level_of_reading(1):.3%}, as the second "
            "is; half of the clusters are kept for it.",
            "",
            "*Best on all labels* is the candidate with the highest kappa on all clusters, and how "
            "often its own 95% interval there lies above 0. *Known beforehand* is what is "
            "attainable: how often the same proof, at the same level, succeeds for somebody who "
            "knows which candidate is the better one (at gain 0: the first), on the same clusters "
            "kept for the proof, and on all but those to learn from.",
            "",
            "| gain | clusters | better | the better one, and proved | known "
            "beforehand | known, on all but learn | worse | stopped before the "
            "proof | better if it had not been stopped | mean gain on choose "
            "| mean gain on prove | grades asked on choose | best on all labels: mean gain claimed "
            "| claimed better |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(cell, each) for cell, each in found.items()),
            "",
            "## Published votes",
            "",
            "LLMBar (real labels, `data/published_llmbar.csv.gz`): 419 units with the experts' "
            "label, and the votes of 14 graders in both orders. One is the old grader, and the "
            "other 13 are the candidates. DICES-350 (real labels, "
            "`data/published_dices350.csv.gz`): 350 "
            "conversations with an expert's label, which stands for people's, and the labels of "
            f"123 of the public. One of them is the old grader, and {CANDIDATES} others, drawn "
            f"anew for each parting, are the candidates. Shares and means are over {PARTINGS} "
            "partings "
            "of the same units, so they are no error rates: they show how far the gain on choose "
            "shrinks on prove. Means are over all that were chosen, whether the proof would have "
            "been begun or not.",
            "",
            "| old grader | its kappa | a candidate chosen | most often | mean gain on choose "
            "| mean gain on prove | mean distance to the lower bound | stopped before the proof "
            "| better | not shown | worse |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(line for each in SETS for line in real_lines(each)),
            "",
        ]
    )


def _line(cell: Cell, tally: Tally) -> str:
    met = max(tally.met, 1)
    cells = [
        f"{cell.gain:g}",
        str(cell.clusters),
        f"{tally.better / tally.runs:.3f}",
        f"{tally.found / tally.runs:.3f}" if cell.gain else "-",
        f"{tally.known / tally.runs:.3f}",
        f"{tally.known_all / tally.runs:.3f}",
        f"{tally.worse / tally.runs:.3f}",
        f"{tally.stopped / tally.runs:.3f}",
        f"{(tally.better + tally.lost) / tally.runs:.3f}",
        f"{tally.on_choose / met:+.3f}",
        f"{tally.on_prove / met:+.3f}",
        f"{tally.asked / tally.runs:.0f}",
        f"{tally.claimed / tally.runs:+.3f}",
        f"{tally.claims / tally.runs:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=1000, resamples=0, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
