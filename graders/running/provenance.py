"""From an outcome to a grade: turned back into the pair's orientation, with how it came about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from evenhand.graders.clients.constraint import way_of
from evenhand.graders.clients.grader import Identity, Reply
from evenhand.graders.replies.outcome import Outcome
from evenhand.graders.scrub import storable
from evenhand.rubrics import PromptText
from evenhand.rubrics.rendering import PROMPT_VERSION
from evenhand.study.questions import AttackedQuestion, Question
from evenhand.study.store.grades import AttackedGrade, GradeAttempt


def grade_key(identity: Identity, request: Mapping[str, Any], draw: int) -> str:
    """Return the key that grades of the same request share: 40 hexadecimal digits of SHA-256.

    The hash covers the final request, the service it went to, the prompt's version and the draw;
    not timeouts or concurrency, which change nothing about the answer.
    """
    parts = {
        "provider": identity.provider,
        "base_url": identity.base_url,
        "api_version": identity.api_version,
        "endpoint": identity.endpoint,
        "prompt_version": PROMPT_VERSION,
        "draw": draw,
        "request": request,
    }
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def origin(identity: Identity, model: str) -> dict[str, Any]:
    """Return the facts about the model asked and the tool that asks, for provenance."""
    return {
        **asdict(identity),
        "tool": tool_version(),
        "requested_model": model,
        "prompt_version": PROMPT_VERSION,
    }


def sent(
    identity: Identity, prompt: PromptText, request: Mapping[str, Any], draw: int
) -> dict[str, Any]:
    """Return the facts about a request, live or in a batch: its key, the hash of its words, its
    settings.
    """
    shown = "".join(image.uri for _, image in prompt.images)
    words = hashlib.sha256(f"{prompt.system}\0{prompt.user}{shown}".encode()).hexdigest()
    said = ("model", "system", "messages")
    return {
        "grade_key": grade_key(identity, request, draw),
        "prompt_hash": words[:16],
        "settings": {name: value for name, value in request.items() if name not in said},
        "asked_by": way_of(request),
    }


def replied(reply: Reply) -> dict[str, Any]:
    """Return the facts that a reply adds: ids, the model that answered, usage, probabilities."""
    evidence = dict(reply.outcome.evidence)
    return {
        "returned_model": evidence.pop("model", ""),
        "reply_id": evidence.pop("id", ""),
        "request_id": reply.request_id,
        **evidence,
    }


def grade_of(
    rater_id: str,
    question: Question,
    outcome: Outcome,
    *,
    provenance: Mapping[str, Any],
    seconds: float | None = None,
) -> GradeAttempt:
    """Return the grade of an outcome; order "ba" swaps the options for their counterparts."""
    rubric = question.rubric
    turn = rubric.swap if question.order == "ba" else str
    probabilities = None
    p_positive = None
    if outcome.probabilities is not None:
        turned = {turn(key): p for key, p in outcome.probabilities.items()}
        probabilities = {key: turned[key] for key in rubric.categories}
        if rubric.affirmative:
            p_positive = min(sum(probabilities[key] for key in rubric.affirmative), 1.0)
    grade = GradeAttempt(
        rater_id=rater_id,
        rubric=rubric.name,
        unit_id=question.unit_id,
        rubric_hash=rubric.hash,
        order=question.order,
        draw=question.draw,
        label=turn(outcome.label) if outcome.label else "",
        p_positive=p_positive,
        probabilities=probabilities,
        prob_method=outcome.prob_method,
        unscored_reason=outcome.unscored_reason,
        seconds=seconds,
        raw=outcome.raw,
        provenance=storable(dict(provenance)),
    )
    if isinstance(question, AttackedQuestion):  # no rating of the unit: kept apart
        about = {name: getattr(question, name) for name in ("attack", "target", "side", "suite")}
        return AttackedGrade(**vars(grade), **about)
    return grade


def failed_grade(
    rater_id: str, question: Question, reason: str, *, provenance: Mapping[str, Any]
) -> GradeAttempt:
    """Return the unscored grade of a question that brought no reply."""
    return grade_of(rater_id, question, Outcome(unscored_reason=reason), provenance=provenance)


@cache
def tool_version() -> str:
    try:
        return f"evenhand {version('evenhand')}"
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "evenhand"
