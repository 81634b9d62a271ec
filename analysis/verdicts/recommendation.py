"""What to do about a rubric, in a sentence or two: which grader to use, or what to label first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.analysis.verdicts.ranking import Candidate
from evenhand.analysis.verdicts.words import PASSES
from evenhand.texts import written


@dataclass(frozen=True)
class Recommendation:
    """`sentence` about one rubric."""

    rubric: str
    sentence: str


def recommendations(ranking: Mapping[str, Sequence[Candidate]]) -> list[Recommendation]:
    """Return a recommendation for each rubric with graders, from `rank_graders`."""
    found = (recommend(each, rubric) for rubric, each in ranking.items())
    return [each for each in found if each is not None]


def recommend(candidates: Sequence[Candidate], rubric: str) -> Recommendation | None:
    """Recommend a grader for a rubric from its ranked graders; None where there are none.

    The first that passes is recommended. If none does, the sentence names the cheapest way to a
    decision, and the graders that may be used with correction until then.
    """
    if not candidates:
        return None
    called = rubric or written("recommend.nameless")
    best, *others = candidates
    if best.verdict["verdict"] in PASSES:
        sentence = " ".join([_use(best, called, _is_cheaper(best, others)), *_also(others)])
        return Recommendation(rubric, sentence)
    return Recommendation(rubric, _not_yet(candidates, called))


def _is_cheaper(best: Candidate, others: Sequence[Candidate]) -> bool:
    """Return True if price ranks the best before another grader that agrees with people better."""
    alike = [
        each
        for each in others
        if each.verdict["verdict"] == best.verdict["verdict"]
        and each.verdict["holds_for"] == best.verdict["holds_for"]
    ]
    return math.isfinite(best.usd) and any(
        each.usd > best.usd and each.agreement > best.agreement for each in alike
    )


def _use(best: Candidate, rubric: str, is_cheaper: bool) -> str:
    verdict, at = best.verdict, best.verdict["threshold"]
    fields = {"grader": verdict["grader"], "rubric": rubric}
    agrees = verdict["verdict"] == "agrees_with_reference"
    if at is not None:
        return written(f"recommend.{'agrees_at' if agrees else 'use_at'}", **fields, threshold=at)
    if agrees:
        return written("recommend.agrees", **fields)
    if verdict["holds_for"]:
        name = {"labels": "use_labels", "binary": "use_binary"}[verdict["holds_for"]]
        return written(f"recommend.{name}", **fields)
    return written("recommend.use_cheapest" if is_cheaper else "recommend.use", **fields)


def _also(others: Sequence[Candidate]) -> list[str]:
    """Sentences on other graders that pass, each with its condition."""
    names = [_with_condition(each) for each in others if each.verdict["verdict"] in PASSES]
    return [written("recommend.also", graders=" and ".join(names))] if names else []


def _with_condition(candidate: Candidate) -> str:
    verdict, grader = candidate.verdict, candidate.verdict["grader"]
    if verdict["threshold"] is not None:
        return written("recommend.also_at", grader=grader, threshold=verdict["threshold"])
    if not verdict["holds_for"]:
        return grader
    name = {"labels": "also_labels", "binary": "also_binary"}[verdict["holds_for"]]
    return written(f"recommend.{name}", grader=grader)


def _not_yet(candidates: Sequence[Candidate], rubric: str) -> str:
    best = candidates[0]
    fields = {"grader": best.verdict["grader"], "reason": best.verdict["reason"]}
    hopes = [c for c in candidates if c.verdict["promising"] and c.verdict["more_clusters"] > 0]
    corrected = best.verdict["verdict"] == "only_with_correction"
    if hopes:
        cheapest = min(hopes, key=lambda each: each.verdict["more_clusters"])
        first = written(
            "recommend.label_more",
            rubric=rubric,
            reason=cheapest.verdict["reason"],
            grader=cheapest.verdict["grader"],
        )
        return f"{first} {written('recommend.until_then', **fields)}" if corrected else first
    if corrected:
        return written("recommend.correction", rubric=rubric, **fields)
    if best.verdict["verdict"] != "cannot_tell":
        return written("recommend.nobody", rubric=rubric, **fields)
    likeliest = next((c.verdict for c in candidates if c.verdict["promising"]), best.verdict)
    fields = {"grader": likeliest["grader"], "reason": likeliest["reason"]}
    return written("recommend.not_yet", rubric=rubric, **fields)
