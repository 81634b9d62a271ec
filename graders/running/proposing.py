"""Proposals of words for a grader, asked of a model by the same runner as grades.

A request that was answered is not sent again: what was sent and what came back stand in the study's
log before anybody reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.graders.clients.grader import BeforeSending, Grader, Reply
from evenhand.graders.grader_settings import GraderSettings
from evenhand.graders.running.dry_run import GraderForecast, request_of
from evenhand.graders.running.live import LiveRun, run_all
from evenhand.graders.running.provenance import replied, sent
from evenhand.graders.running.runner import Rounds, open_grader, priced
from evenhand.graders.spec import GraderSpec, parse_spec
from evenhand.rubrics import PromptText
from evenhand.study.store.logs.improvements import ProposalAttempt, note_proposals, proposals_of
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study

_WRITTEN = 800
"""Tokens of a usual proposal."""


def asked_for(system: str, user: str) -> PromptText:
    """Return a request in words, which nothing is put around."""
    return PromptText(system=system, user=user, keys=(), verbatim=True)


def propose(
    rounds: Rounds, rubric: str, proposer: str, wanted: PromptText, about: Mapping[str, Any]
) -> ProposalAttempt | None:
    """Put a request to a model, within the budget of these rounds, and return its answer; None
    where the rounds ended early, as their summary says. `about` is kept with it.

    Raises InputError where the model is not known, writes nothing or has no key, or, under a
    budget, its price is not known.
    """
    study, context = rounds.study, rounds.context
    spec, settings = writer_of(study, proposer)
    known = answered(study, rubric, proposer, wanted)
    name = written("improve.proposer", model=spec.text)
    summary = rounds.part(name, int(known is not None), int(known is None))
    if known:
        return known
    tariff = priced(spec, context.budget, "", study.config.prices)
    model = open_grader(spec, settings, context.scrubber, context.limits.timeout)
    job = _ProposalJob(study, rubric, model, wanted, about)
    run_all([LiveRun(job, context, summary, tariff)], context.progress)
    return answered(study, rubric, proposer, wanted)


def answered(
    study: Study, rubric: str, proposer: str, wanted: PromptText
) -> ProposalAttempt | None:
    """Return a model's answer to this request that is kept; None where there is none."""
    spec, _ = writer_of(study, proposer)
    return proposals_of(study.store, rubric).get(_digest(spec, wanted))


def forecast_proposals(
    study: Study, rubric: str, proposer: str, wanted: Sequence[PromptText]
) -> GraderForecast:
    """Forecast what requests for proposals cost, without network or key. Raises InputError where
    the model is not known or writes nothing.
    """
    from evenhand.graders.money import Tariff, Tokens, input_estimate

    spec, settings = writer_of(study, proposer)
    known = proposals_of(study.store, rubric)
    new = [each for each in wanted if _digest(spec, each) not in known]
    tariff = Tariff.find(spec, prices=study.config.prices)
    least = most = likely = Decimal(0)
    for request in (request_of(spec, settings, each) for each in new):
        if tariff:
            least += tariff.at_least(request)
            most += tariff.at_most(request)
            likely += tariff.cost(Tokens(input_estimate(request), output=_WRITTEN))
    return GraderForecast(
        rater_id=written("improve.proposer", model=spec.text),
        already=len(wanted) - len(new),
        new=len(new),
        cost=(float(least), float(most)) if tariff else None,
        expected=float(likely) if tariff else None,
        basis=written("grade.expected_assumed", answer=_WRITTEN) if tariff else "",
        sample=next(iter(new), None),
        warnings=(),
    )


def writer_of(study: Study, proposer: str) -> tuple[GraderSpec, GraderSettings]:
    """Return the model that writes, and how it is asked. Raises InputError where the model is not
    known or writes nothing.
    """
    spec = parse_spec(proposer, study.config.providers)
    if spec.speaks == "baseline":
        raise InputError(written("improve.writes_nothing", proposer=spec.text))
    return spec, GraderSettings.for_subject(spec)


def _digest(spec: GraderSpec, prompt: PromptText) -> str:
    """Return 16 hexadecimal digits of SHA-256 over the model and the words sent to it."""
    text = json.dumps([spec.text, prompt.system, prompt.user], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _ProposalJob:
    """An open request to a model, whose question is its digest, and its answer."""

    def __init__(
        self,
        study: Study,
        rubric: str,
        model: Grader,
        wanted: PromptText,
        about: Mapping[str, Any],
    ) -> None:
        self.rater_id = model.spec.text
        self.grader = model
        self._study = study
        self._rubric = rubric
        self._wanted = wanted
        self._about = about

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return iter([_digest(self.grader.spec, self._wanted)])

    def prompts(self, questions: Sequence[str]) -> list[PromptText]:
        return [self._wanted for _ in questions]

    async def ask(self, question: str, prompt: PromptText, before: BeforeSending) -> Reply:
        return await self.grader.ask(None, prompt, before)

    def rest(self, question: str, reply: Reply) -> None:
        return None

    def sent(self, question: str, prompt: PromptText, request: Mapping[str, Any]) -> dict[str, Any]:
        return sent(self.grader.identity, prompt, request, draw=0)

    def kept(self, question: str, reply: Reply, facts: dict[str, Any]) -> list[ProposalAttempt]:
        facts, outcome = facts | replied(reply), reply.outcome
        return [self._attempt(question, facts, outcome.raw, outcome.unscored_reason)]

    def failed(self, question: str, reason: str, facts: dict[str, Any]) -> list[ProposalAttempt]:
        return [self._attempt(question, facts, "", reason)]

    def _attempt(
        self, question: str, facts: dict[str, Any], reply: str, reason: str
    ) -> ProposalAttempt:
        return ProposalAttempt(
            rubric=self._rubric,
            proposer=self.rater_id,
            request=question,
            system=self._wanted.system,
            user=self._wanted.user,
            about=self._about,
            reply=reply,
            unscored_reason=reason,
            provenance=facts,
        )

    def store(self, records: Sequence[ProposalAttempt]) -> None:
        note_proposals(self._study.store, records)
