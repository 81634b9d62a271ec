"""Ranking of a rubric's graders by one rule, with their prices, and what to do about the rubric:
which grader to use, or what to label first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import TYPE_CHECKING, Any, Literal

from evenhand.analysis.agreement.pairs import DECIDING_KAPPAS
from evenhand.analysis.bias.audit import audited, audited_grader, status_of
from evenhand.analysis.people.annotators import ANNOTATOR_KAPPA
from evenhand.analysis.people.comparison import CEILING
from evenhand.analysis.people.disagreements import COVERAGE
from evenhand.analysis.raters import PRICE
from evenhand.analysis.results import BASELINES, TableRow, key_of
from evenhand.analysis.thresholds.rows import CEILING_HELD_OUT, KAPPA_HELD_OUT
from evenhand.analysis.verdicts.evidence import AT_THRESHOLD
from evenhand.analysis.verdicts.judge import Verdict
from evenhand.analysis.verdicts.requirements import KAPPA as REFERENCE_KAPPA
from evenhand.analysis.verdicts.wording import JUDGEMENTS, PASSES
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd


Limit = Literal["", "people_differ_more", "people_hardly_agree"]


@dataclass(frozen=True)
class Candidate:
    """A grader in a ranking: its verdict and the rows that it is ranked by. `best_buy`: no other
    grader of the rubric is as cheap and agrees as well (the Pareto front of the ceiling difference
    against price).
    """

    verdict: Verdict
    difference: TableRow | None
    kappa: TableRow | None
    coverage: TableRow | None
    worst_bias: TableRow | None
    price: TableRow | None
    best_buy: bool = False

    @property
    def limit(self) -> Limit:
        """Limit that people set to a grader that does not pass: they agree with one another
        clearly less than it agrees with them, or hardly at all; "" where they set none.
        """
        if self.verdict["verdict"] not in ("inconclusive", "do_not_use"):
            return ""
        if self.difference and self.difference["low"] > 0:
            evidence = self.verdict["evidence"]
            turned = any(key[1] == ANNOTATOR_KAPPA for key in evidence)
            return "" if turned else "people_differ_more"  # the rubric is not to blame
        step = self.verdict["next"]
        return "people_hardly_agree" if step and step["kind"] == "rubric" else ""

    @property
    def usd(self) -> float:
        """The price of 1,000 units; infinite where it is not known."""
        return self.price["estimate"] if self.price else math.inf

    @property
    def agreement(self) -> float:
        """Ceiling difference of the grader; minus infinity where undefined."""
        value = self.difference["estimate"] if self.difference else math.nan
        return -math.inf if math.isnan(value) else value


def rank_graders(
    results: pd.DataFrame | Sequence[TableRow], verdicts: Iterable[Verdict]
) -> dict[str, list[Candidate]]:
    """The graders of every rubric, the best choice first; `results` are the rows of an analysis, or
    a table of them, which may be read from results.csv.

    Verdicts come first, in the order of `JUDGEMENTS`; those that hold for labels or for binary
    verdicts only come after those that hold for both. Among graders that pass the cheapest leads,
    since all meet the rule; among the others the one that agrees with people best.
    """
    rows: Any = results if isinstance(results, Sequence) else results.to_dict("records")
    by_key: dict[tuple[str, ...], TableRow] = {key_of(row): row for row in rows}
    shifts = [row for row, p in audited(rows) if status_of(row, p) == "found"]
    ranking: dict[str, list[Candidate]] = {}
    for verdict in verdicts:
        rubric, grader = verdict["rubric"], verdict["grader"]
        difference, kappa = (
            by_key[key] if key else None
            for key in deciding_keys(verdict["verdict"], verdict["evidence"])
        )
        biases = [row for row in shifts if (row["rubric"], audited_grader(row)) == (rubric, grader)]
        candidate = Candidate(
            verdict=verdict,
            difference=difference,
            kappa=kappa,
            coverage=by_key.get((rubric, COVERAGE, "", grader, "all", "")),
            worst_bias=max(biases, key=lambda row: abs(row["estimate"]), default=None),
            price=by_key.get((rubric, PRICE, "", grader, "all", "")),
        )
        ranking.setdefault(rubric, []).append(candidate)
    for among in ranking.values():
        places = [(other.usd, other.agreement) for other in among]
        for at, (usd, agreement) in enumerate(places):
            as_good = {place for place in places if place[0] <= usd and place[1] >= agreement}
            is_known = math.isfinite(usd) and math.isfinite(agreement)
            best_buy = is_known and as_good == {(usd, agreement)}
            among[at] = replace(among[at], best_buy=best_buy)
        among.sort(key=_place)
    return ranking


def best_first(ranking: Mapping[str, Sequence[Candidate]]) -> list[str]:
    """Return all graders by their mean place over the rubrics of a ranking."""
    places: dict[str, list[int]] = {}
    for ranked in ranking.values():
        for place, each in enumerate(ranked):
            places.setdefault(each.verdict["grader"], []).append(place)
    return sorted(places, key=lambda grader: mean(places[grader]))


def _place(candidate: Candidate) -> tuple[int, bool, float, float, str]:
    verdict = candidate.verdict
    place = JUDGEMENTS.index(verdict["verdict"])
    price = candidate.usd if verdict["verdict"] in PASSES else 0.0
    return place, verdict["holds_for"] != "", price, -candidate.agreement, verdict["grader"]


Key = tuple[str, ...]
"""Unique key of a row, as `RESULTS_KEY`."""


def deciding_keys(
    judgement: str, evidence: Sequence[Sequence[str]]
) -> tuple[Key | None, Key | None]:
    """Find the keys of the ceiling difference and of the kappa that decided a verdict, in its
    evidence. Rows on the categories come first; a verdict at a threshold rests on the last.
    """

    def key(*statistics: str) -> Key | None:
        keys = [tuple(entry) for entry in evidence if entry[3] not in BASELINES]
        decisive = [entry for entry in keys if entry[1] in statistics]
        return decisive[-1 if judgement == AT_THRESHOLD else 0] if decisive else None

    return (key(CEILING, CEILING_HELD_OUT), key(*DECIDING_KAPPAS, KAPPA_HELD_OUT, REFERENCE_KAPPA))


@dataclass(frozen=True)
class Recommendation:
    """`sentence` about one rubric, and `head`, its part that does not speak of other graders."""

    rubric: str
    sentence: str
    head: str


def recommendations(ranking: Mapping[str, Sequence[Candidate]]) -> list[Recommendation]:
    """Return a recommendation for each rubric with graders, from `rank_graders`."""
    return [recommend(candidates, rubric) for rubric, candidates in ranking.items()]


def recommend(candidates: Sequence[Candidate], rubric: str) -> Recommendation:
    """Recommend a grader for a rubric from its ranked graders. The first that passes is
    recommended. If none does, the sentence names the cheapest way to a decision, and the graders
    that may be used with correction until then.
    """
    called = rubric or written("recommend.nameless")
    best, *others = candidates
    if best.verdict["verdict"] in PASSES:
        head = sentence = _use(best, others, called)
        names = [_with_condition(each) for each in others if each.verdict["verdict"] in PASSES]
        if names:
            sentence = f"{head} {written('recommend.also', graders=' and '.join(names))}"
        return Recommendation(rubric, sentence, head)
    sentence = _not_yet(candidates, called)
    if any(each.limit == "people_differ_more" for each in candidates):
        sentence = f"{sentence} {written('recommend.people_differ_more', rubric=called)}"
    return Recommendation(rubric, sentence, sentence)


def _use(best: Candidate, others: Sequence[Candidate], rubric: str) -> str:
    verdict, at = best.verdict, best.verdict["threshold"]
    agrees = verdict["verdict"] == "agrees_with_reference"
    # Price ranks it before another grader that agrees with people better.
    is_cheaper = math.isfinite(best.usd) and any(
        other.usd > best.usd and other.agreement > best.agreement
        for other in others
        if other.verdict["verdict"] == verdict["verdict"]
        and other.verdict["holds_for"] == verdict["holds_for"]
    )
    if at is not None:
        name = "agrees_at" if agrees else "use_at"
    elif agrees:
        name = "agrees"
    elif verdict["holds_for"]:
        name = "use_labels" if verdict["holds_for"] == "labels" else "use_binary"
    else:
        name = "use_cheapest" if is_cheaper else "use"
    return written(f"recommend.{name}", grader=verdict["grader"], rubric=rubric, threshold=at)


def _with_condition(candidate: Candidate) -> str:
    verdict, grader = candidate.verdict, candidate.verdict["grader"]
    if verdict["threshold"] is not None:
        return written("recommend.also_at", grader=grader, threshold=verdict["threshold"])
    if not verdict["holds_for"]:
        return grader
    name = "also_labels" if verdict["holds_for"] == "labels" else "also_binary"
    return written(f"recommend.{name}", grader=grader)


def _not_yet(candidates: Sequence[Candidate], rubric: str) -> str:
    best = candidates[0]
    fields = {"grader": best.verdict["grader"], "reason": best.verdict["reason"]}
    hopes = [c for c in candidates if c.verdict["promising"] and c.verdict["more_clusters"] > 0]
    corrected = best.verdict["verdict"] == "only_with_correction"
    if hopes:
        cheapest = min(hopes, key=lambda each: each.verdict["more_clusters"]).verdict
        hope = {"grader": cheapest["grader"], "reason": cheapest["reason"]}
        first = written("recommend.label_more", rubric=rubric, **hope)
        return f"{first} {written('recommend.until_then', **fields)}" if corrected else first
    if corrected:
        return written("recommend.correction", rubric=rubric, **fields)
    if best.verdict["verdict"] != "inconclusive":
        return written("recommend.nobody", rubric=rubric, **fields)
    likeliest = next((c.verdict for c in candidates if c.verdict["promising"]), best.verdict)
    fields = {"grader": likeliest["grader"], "reason": likeliest["reason"]}
    return written("recommend.not_yet", rubric=rubric, **fields)
