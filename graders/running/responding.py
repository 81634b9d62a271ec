"""Texts by models, collected by the same runner as grades: responses to the study's prompts, and
proposals of words for a grader.

A request for a proposal that was answered is not sent again: what was sent and what came back stand
in the study's log before anybody reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.graders.clients import told_by_study
from evenhand.graders.money import Tariff
from evenhand.graders.options import GraderSettings, RequestLimits, warnings_about
from evenhand.graders.providers import GraderSpec, parse_spec
from evenhand.graders.replies import Outcome
from evenhand.graders.running import GraderSummary, Job, Progress
from evenhand.graders.running.runner import GraderForecast, Rounds, only_runner, priced_forecast
from evenhand.rubrics import PromptText
from evenhand.study.prompts.pairs import sides_of
from evenhand.study.store.logs.decisions import ProposalAttempt, note_proposals, proposals_of
from evenhand.study.store.logs.replies import ResponseAttempt, ResponseLog
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study

_LIMITS = RequestLimits()
USUAL_WORDS = 500
"""Words of a response, for forecasts."""
_USUAL_TOKENS = 700


@dataclass(frozen=True, slots=True)
class ResponseSummary:
    """The summary of a run, the number of responses that it added to the study (whole pairs only),
    and what was spent by its end, in US dollars.
    """

    run: GraderSummary
    added: int
    over_budget: bool
    spent: Decimal


@dataclass(frozen=True, slots=True)
class _Prompt:
    pair_id: str
    side: str
    text: str


def respond(
    study: Study,
    subject: str,
    scope: str = "sample",
    limits: RequestLimits = _LIMITS,
    progress: Progress | None = None,
    *,
    system: str = "",
    thinking: str = "",
    effort: str = "",
    fault: Callable[[str, str], str] | None = None,
) -> ResponseSummary:
    """Put every prompt to a model, as its users would, and keep what it says.

    `subject` is written like a grader and becomes the subject's name, with the `system` prompt,
    `thinking` ("off", "adaptive" or a number of tokens) and `effort` in it: the same model asked in
    another way is another subject. A refusal is a response. A pair's two responses enter the study
    together. An answer to a prompt in which a `fault` is found, named by one word, is no response,
    and the next run asks again. Safe to interrupt and to run again.
    Raises InputError as `runner.grade` does.
    """
    spec = parse_spec(subject, study.config.providers)
    if spec.speaks == "baseline":
        raise InputError("a baseline writes no responses; name a model instead")
    settings = GraderSettings.for_subject(spec, effort=effort, thinking=thinking)
    subject = _named(spec, settings, system)
    if scope not in ("sample", "all"):
        raise InputError(f"scope is {scope!r}; it must be sample or all")
    with only_runner(study):
        log = ResponseLog(study.store)
        prompts = _prompts(study, scope)
        answered = log.answered(subject)
        open_prompts = [p for p in prompts if (p.pair_id, p.side) not in answered]
        run = Rounds.begin(study, limits, progress)
        summary = run.part(subject, len(prompts) - len(open_prompts), len(open_prompts))
        asked = {each: PromptText(system=system, user=each.text) for each in open_prompts}

        def response(question: _Prompt, facts: dict[str, Any], came: Outcome | str) -> Any:
            about = {"subject": subject, "pair_id": question.pair_id, "side": question.side}
            if isinstance(came, str):
                return ResponseAttempt(**about, unscored_reason=came, provenance=facts)
            reason = came.unscored_reason or (fault(question.text, came.raw) if fault else "")
            facts |= {"raw": came.raw} if reason else {}
            text = "" if reason else came.raw
            return ResponseAttempt(**about, response=text, unscored_reason=reason, provenance=facts)

        about = {"system_prompt": system} if system else {}
        job = Job(subject, asked, response, log.append, about)
        try:
            if asked:
                run.put(spec, settings, job, summary)
        finally:
            added = log.add_whole_pairs(subject)
    return ResponseSummary(summary, added, run.so_far.over_budget, run.so_far.spent)


def forecast_responses(study: Study, subject: str, scope: str = "sample") -> GraderForecast:
    """Price a model's responses to all prompts, without network or key. How long they will be is
    assumed. Raises InputError where the model is not valid.
    """
    spec = parse_spec(subject, study.config.providers)
    settings = GraderSettings.for_subject(spec)
    prompts = [PromptText(system="", user=each.text) for each in _prompts(study, scope)]
    forecast = _forecast(
        study, spec, settings, prompts, _USUAL_TOKENS, rater_id=spec.text, already=0
    )
    basis = written("grade.expected_response", tokens=_USUAL_TOKENS) if forecast.cost else ""
    warnings = (*told_by_study(spec), *warnings_about(spec, settings))
    return replace(forecast, basis=basis, sample=None, warnings=warnings)


def _forecast(
    study: Study,
    spec: GraderSpec,
    settings: GraderSettings,
    prompts: Sequence[PromptText],
    usual: int,
    *,
    rater_id: str,
    already: int,
) -> GraderForecast:
    """Price requests whose answers have as many tokens as is `usual`."""
    basis = written("grade.expected_assumed", answer=usual)
    forecast = GraderForecast(rater_id=rater_id, already=already, new=len(prompts), basis=basis)
    tariff = Tariff.find(spec, prices=study.config.prices)
    return priced_forecast(forecast, tariff, spec, settings, ((each, 1) for each in prompts), usual)


def _named(spec: GraderSpec, settings: GraderSettings, system: str) -> str:
    """Return a subject's name: the model, and the options with which it was asked, if any.

    >>> from evenhand.graders.providers import parse_spec
    >>> _named(parse_spec("anthropic:m"), GraderSettings("text", effort="low"), "Be brief.")
    'anthropic:m#system-213c22ed#effort-low'
    """
    parts = {
        "system": hashlib.sha256(system.encode()).hexdigest()[:8] if system else "",
        "thinking": settings.thinking,
        "effort": settings.effort,
    }
    return "#".join([spec.text, *(f"{name}-{said}" for name, said in parts.items() if said)])


def _prompts(study: Study, scope: str) -> list[_Prompt]:
    pairs = study.store.pairs()
    if scope == "sample":
        pairs = pairs[pairs["sample_position"].notna()].sort_values("sample_position")
    return [
        _Prompt(row["pair_id"], side, row[f"prompt_{side}"])
        for row in pairs.to_dict("records")
        for side in sides_of(pairs)
    ]


# ---- proposals ----------------------------------------------------------------------------------
_WRITTEN = 800
"""Tokens of a usual proposal."""


def asked_for(system: str, user: str) -> PromptText:
    """Return a request in words, which nothing is put around."""
    return PromptText(system=system, user=user, verbatim=True)


def propose(
    rounds: Rounds, rubric: str, proposer: str, wanted: PromptText, about: Mapping[str, Any]
) -> ProposalAttempt | None:
    """Put a request to a model, within the budget of these rounds, and return its answer; None
    where the rounds ended early, as their summary says. `about` is kept with it.

    Raises InputError where the model is not known, writes nothing or has no key, or, under a
    budget, its price is not known.
    """
    study = rounds.study
    spec, settings = writer_of(study, proposer)
    known = answered(study, rubric, proposer, wanted)
    name = written("improve.proposer", model=spec.text)
    summary = rounds.part(name, int(known is not None), int(known is None))
    if known:
        return known

    def proposal(question: str, facts: dict[str, Any], came: Outcome | str) -> ProposalAttempt:
        outcome = Outcome(unscored_reason=came) if isinstance(came, str) else came
        return ProposalAttempt(
            rubric=rubric,
            proposer=spec.text,
            request=question,
            system=wanted.system,
            user=wanted.user,
            about=about,
            reply=outcome.raw,
            unscored_reason=outcome.unscored_reason,
            provenance=facts,
        )

    store = partial(note_proposals, study.store)
    job = Job(spec.text, {_digest(spec, wanted): wanted}, proposal, store, {})
    rounds.put(spec, settings, job, summary)
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
    spec, settings = writer_of(study, proposer)
    known = proposals_of(study.store, rubric)
    new = [each for each in wanted if _digest(spec, each) not in known]
    name = written("improve.proposer", model=spec.text)
    already = len(wanted) - len(new)
    return _forecast(study, spec, settings, new, _WRITTEN, rater_id=name, already=already)


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
