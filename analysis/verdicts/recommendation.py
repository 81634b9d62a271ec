"""What to do about a rubric, in a sentence or two: whom to use, or what to label first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.analysis.results import TableRow
from evenhand.analysis.verdicts.ranking import Candidate
from evenhand.analysis.verdicts.words import PASSES
from evenhand.texts import written


@dataclass(frozen=True)
class Recommendation:
    """`sentence` about one rubric; `threshold` is the row that its number was read off."""

    rubric: str
    sentence: str
    threshold: TableRow | None = None


def recommendations(ranking: Mapping[str, Sequence[Candidate]]) -> list[Recommendation]:
    """One for each rubric with graders, from `rank_graders`."""
    found = (recommend(each, rubric) for rubric, each in ranking.items())
    return [each for each in found if each is not None]


def recommend(candidates: Sequence[Candidate], rubric: str) -> Recommendation | None:
    """On a rubric, from its ranked graders; None where there are none.

    The first that passes is recommended. Where none does, what would decide most cheaply is said,
    and who may be used with correction until then.
    """
    if not candidates:
        return None
    best, called = candidates[0], rubric or written("recommend.nameless")
    if best.verdict["verdict"] in PASSES:
        sentence = " ".join([_use(best, called), *_also(candidates[1:])])
        return Recommendation(rubric, sentence, best.threshold)
    return Recommendation(rubric, _not_yet(candidates, called))


def _use(best: Candidate, rubric: str) -> str:
    verdict, grader = best.verdict, best.verdict["grader"]
    if verdict["verdict"] == "agrees_with_reference":
        return written("recommend.agrees", grader=grader, rubric=rubric)
    if best.threshold is not None:
        at = best.threshold["estimate"]
        return written("recommend.use_at", grader=grader, rubric=rubric, threshold=at)
    name = "use_labels" if verdict["labels_only"] else "use"
    return written(f"recommend.{name}", grader=grader, rubric=rubric)


def _also(others: Sequence[Candidate]) -> list[str]:
    """Others that pass, each with its condition."""
    names = [_with_condition(each) for each in others if each.verdict["verdict"] in PASSES]
    return [written("recommend.also", graders=" and ".join(names))] if names else []


def _with_condition(candidate: Candidate) -> str:
    verdict, grader = candidate.verdict, candidate.verdict["grader"]
    if candidate.threshold is not None:
        at = candidate.threshold["estimate"]
        return written("recommend.also_at", grader=grader, threshold=at)
    return written("recommend.also_labels", grader=grader) if verdict["labels_only"] else grader


def _not_yet(candidates: Sequence[Candidate], rubric: str) -> str:
    best = candidates[0]
    fields = {"grader": best.verdict["grader"], "reason": best.verdict["reason"]}
    undecided = [each for each in candidates if each.verdict["more_clusters"] > 0]
    corrected = best.verdict["verdict"] == "only_with_correction"
    if undecided:
        cheapest = min(undecided, key=lambda each: each.verdict["more_clusters"])
        first = written(
            "recommend.label_more",
            rubric=rubric,
            reason=cheapest.verdict["reason"],
            grader=cheapest.verdict["grader"],
        )
        return f"{first} {written('recommend.until_then', **fields)}" if corrected else first
    if corrected:
        return written("recommend.correction", rubric=rubric, **fields)
    told = best.verdict["verdict"] != "cannot_tell"
    return written("recommend.nobody" if told else "recommend.not_yet", rubric=rubric, **fields)
