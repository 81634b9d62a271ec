"""What a run collects: the questions, how each is put, and what is kept of the replies. An outcome
becomes a grade turned back into the pair's orientation, with how it came about.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby, repeat
from typing import TYPE_CHECKING, Any, Protocol

from evenhand.graders.clients.grader import Ask, BeforeSending, Grader, Identity, Reply, way_of
from evenhand.graders.plan import OpenQuestions
from evenhand.graders.replies import REPEATED, Outcome, Replies, as_draw
from evenhand.graders.scrub import storable
from evenhand.rubrics import PromptText, Reworded
from evenhand.rubrics.rendering import PROMPT_VERSION
from evenhand.study.questions import AttackedQuestion, Question
from evenhand.study.store.grades import AttackedGrade, GradeAttempt
from evenhand.study.store.logs.replies import known_replies

if TYPE_CHECKING:
    from evenhand.study import Study


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


@cache
def tool_version() -> str:
    try:
        return f"evenhand {version('evenhand')}"
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "evenhand"


# ---- jobs ---------------------------------------------------------------------------------------
_PAID_ONCE: dict[str, Any] = {"tokens": {}, "cost_usd": 0.0}
"""The cost facts of every draw of a request except the first, which carries the whole cost."""


class Record(Protocol):
    """An attempt as the store keeps it."""

    @property
    def unscored_reason(self) -> str: ...

    @property
    def provenance(self) -> dict[str, Any]: ...


class Job(Protocol):
    """The questions for one model behind a network, which `grader` answers."""

    rater_id: str

    @property
    def grader(self) -> Grader: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def prompts(self, questions: Sequence[Any]) -> list[PromptText]: ...

    async def ask(self, question: Any, prompt: PromptText, before: BeforeSending) -> Reply: ...

    def rest(self, question: Any, reply: Reply) -> Any:
        """Return the part of the question that a reply has left open, if any."""
        ...

    def sent(
        self, question: Any, prompt: PromptText, request: Mapping[str, Any]
    ) -> dict[str, Any]: ...

    def kept(self, question: Any, reply: Reply, facts: dict[str, Any]) -> Sequence[Any]: ...

    def failed(self, question: Any, reason: str, facts: dict[str, Any]) -> Sequence[Any]: ...

    def store(self, records: Sequence[Any]) -> None: ...


def by_request(questions: Iterable[Question], most: int) -> Iterator[list[Question]]:
    """Group consecutive questions that share a prompt, at most `most` to a list."""
    for _, draws in groupby(questions, key=lambda question: question.prompted):
        left = list(draws)
        while left:
            yield left[:most]
            left = left[most:]


class GradeJob:
    """The open questions of one grader, and the grades that its replies make. A question is here a
    list of draws of one prompt: those are asked for together where the grader takes that, so that
    the prompt is paid for once.
    """

    def __init__(self, study: Study, grader: Grader, questions: OpenQuestions) -> None:
        self.rater_id = questions.rater_id
        self.grader = grader
        self.questions = questions
        self.study = study
        several = grader.settings.draws > 1
        known = known_replies(study.store, self.rater_id) if several else {}
        self._replies = Replies(known) if several else None
        self._again: set[Question] = set()

    def __len__(self) -> int:
        """Return the number of draws: the most requests that the job may take."""
        return len(self.questions)

    def __iter__(self) -> Iterator[list[Question]]:
        together = self.grader.draws_at_once > 1
        return by_request(self.questions, len(self.questions) if together else 1)

    def prompts(self, questions: Sequence[list[Question]]) -> list[PromptText]:
        asked = [draws[0] for draws in questions]
        shown = self.study.values_of(asked)
        return [q.rubric.for_prompt(v) for q, v in zip(asked, shown, strict=True)]

    def request(self, question: list[Question], prompt: PromptText) -> dict[str, Any]:
        """Return the request for a batch, with `n` where it asks for several draws."""
        draws = {"n": len(question)} if len(question) > 1 else {}
        return self.grader.request(prompt) | draws

    async def ask(
        self, question: list[Question], prompt: PromptText, before: BeforeSending
    ) -> Reply:
        again = question[0] in self._again
        return await self.grader.ask(Ask(prompt, question[0].rubric, len(question), again), before)

    def rest(self, question: list[Question], reply: Reply) -> list[Question]:
        """Return the draws that did not come; or the question itself, once, where its answer could
        not be read and can be constrained to the keys.
        """
        if (
            reply.outcome.unscored_reason == "unparseable"
            and self.grader.settings.method in ("label", "logprobs")
            and question[0].rubric.prompt is None
            and question[0] not in self._again
            and self.grader.constrains(reply.request)
        ):
            self._again.add(question[0])
            return question
        return question[1 + len(reply.more) :]

    def sent(
        self, question: list[Question], prompt: PromptText, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the first draw's facts for provenance, and the keys of all draws (`draw_keys`)."""
        identity = self.grader.identity
        first, *keys = (grade_key(identity, request, each.draw) for each in question)
        facts = sent(identity, prompt, request, question[0].draw)
        return facts | {"draw_keys": [first, *keys]}

    def kept(
        self, question: list[Question], reply: Reply, facts: dict[str, Any]
    ) -> list[GradeAttempt]:
        outcomes = (reply.outcome, *reply.more)
        return [
            self._grade(draw, replace(reply, outcome=outcome, more=()), own)
            for draw, outcome, own in zip(question, outcomes, _by_draw(facts), strict=False)
        ]

    def _grade(self, question: Question, reply: Reply, facts: dict[str, Any]) -> GradeAttempt:
        """Return the grade of a reply; a reply that the question has had before is unscored."""
        settings = self.grader.settings
        outcome = reply.outcome
        seconds = facts.get("seconds")
        facts = {name: value for name, value in facts.items() if name != "seconds"}
        facts |= replied(reply)
        facts |= {"method": settings.reading, "draws": settings.draws}
        if isinstance(question.rubric, Reworded):
            facts["own_prompt"] = question.rubric.words.hash
        if self._replies and self._replies.is_repeat(question.prompted, facts):
            outcome = Outcome(unscored_reason=REPEATED, raw=outcome.raw)
        elif settings.method == "draws":
            outcome = as_draw(outcome, question.rubric)
        return grade_of(self.rater_id, question, outcome, provenance=facts, seconds=seconds)

    def failed(
        self, question: list[Question], reason: str, facts: dict[str, Any]
    ) -> list[GradeAttempt]:
        outcome = Outcome(unscored_reason=reason)
        own = _by_draw(facts) if "draw_keys" in facts else repeat(facts, len(question))
        return [
            grade_of(self.rater_id, draw, outcome, provenance=each)
            for draw, each in zip(question, own, strict=True)
        ]

    def store(self, records: Sequence[GradeAttempt]) -> None:
        self.study.store.add_grades(records)


def _by_draw(facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each draw's facts for provenance: its own key; the first carries the cost of all."""
    own = {name: value for name, value in facts.items() if name != "draw_keys"}
    for key in facts["draw_keys"]:
        yield own | {"grade_key": key}
        own |= {name: nothing for name, nothing in _PAID_ONCE.items() if name in own}
