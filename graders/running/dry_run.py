"""What a run would ask and cost, without network or key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import groupby, islice
from math import ceil
from typing import TYPE_CHECKING, Any

from evenhand.graders.clients.grader import told_by_study
from evenhand.graders.money import Tariff, Tokens, input_estimate, price_table_date
from evenhand.graders.options import (
    GraderSettings,
    GradingOptions,
    GradingTask,
    plan_grading,
    warnings_about,
)
from evenhand.graders.scrub import Scrubber
from evenhand.graders.spec import GraderSpec
from evenhand.rubrics import JudgedRubric, PromptText
from evenhand.study.store.store import grade_totals
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study

_AT_ONCE = 500
_MANY = 20_000
"""Above this number of prompts, only evenly spaced ones are read and priced."""
_ANSWER, _REASONED = 20, 200
"""Tokens of an answer without thinking, and of one that may give a reason first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderForecast:
    """The forecast of one grader's part of a run. `cost` in US dollars runs from answers of one
    token to the most that all requests could cost; None where there is no known price. `expected`
    is the likely cost, and `basis` says what it rests on.
    """

    rater_id: str
    already: int
    new: int
    cost: tuple[float, float] | None = None
    expected: float | None = None
    basis: str = ""
    sample: PromptText | None = None
    warnings: tuple[str, ...] = ()


def forecast(
    study: Study,
    graders: Sequence[str],
    options: GradingOptions,
    *,
    batch: bool = False,
    most: int = _MANY,
) -> list[GraderForecast]:
    """Render questions and price them: evenly spaced ones above the number of `most`. Raises
    InputError as the run itself would.
    """
    scrubber = Scrubber.from_environment(study.config.providers)
    tasks = plan_grading(study, graders, options, scrubber)
    return [forecast_of(study, task, batch=batch, most=most) for task in tasks]


def forecast_of(
    study: Study, task: GradingTask, *, batch: bool = False, most: int = _MANY
) -> GraderForecast:
    """Forecast the part of one grader: render its questions and price them."""
    asked = task.questions
    forecast = GraderForecast(rater_id=asked.rater_id, already=asked.already, new=len(asked))
    if task.spec.speaks == "baseline":
        return replace(forecast, cost=(0.0, 0.0))
    tier, prices = task.settings.service_tier, study.config.prices
    tariff = Tariff.find(task.spec, batch=batch, tier=tier, prices=prices)
    used, basis = _likely(study, task)
    warnings = (*told_by_study(task.spec), *warnings_about(task.spec, task.settings))
    forecast = replace(forecast, basis=basis, warnings=warnings)
    prompts, usual = _prompts(study, task, most), used or _answer(task)
    forecast = priced_forecast(forecast, tariff, task.spec, task.settings, prompts, usual)
    if tariff is None or tariff.named:
        return forecast
    newest = price_table_date()
    age = (datetime.now(UTC).date() - newest).days
    table = written("grade.price_table", table=tariff.source, newest=newest, days=age)
    return replace(forecast, basis=f"{forecast.basis} {table}")


def priced_forecast(
    forecast: GraderForecast,
    tariff: Tariff | None,
    spec: GraderSpec,
    settings: GraderSettings,
    prompts: Iterable[tuple[PromptText, int]],
    usual: Tokens | int,
) -> GraderForecast:
    """Return a forecast with the cost of its prompts, each so many times: those given stand for all
    of them. `usual` are the tokens of a request, or of its answer alone.
    """
    least, worst, likely, sample, priced = Decimal(0), Decimal(0), Decimal(0), None, 0
    for prompt, times in prompts:
        sample = sample or prompt
        priced += times
        if tariff:
            request = request_of(spec, settings, prompt)
            least += times * tariff.at_least(request)
            worst += times * tariff.at_most(request)
            if isinstance(usual, int):
                likely += times * tariff.cost(Tokens(input_estimate(request), output=usual))
            else:
                likely += times * tariff.cost(usual)
    forecast = replace(forecast, sample=sample)
    if tariff is None:
        return replace(forecast, basis="")
    if priced < forecast.new:
        share = Decimal(forecast.new) / priced
        least, worst, likely = least * share, worst * share, likely * share
        some = written("grade.some_priced", priced=priced, total=forecast.new)
        forecast = replace(forecast, basis=f"{forecast.basis} {some}")
    return replace(forecast, cost=(float(least), float(worst)), expected=float(likely))


def _likely(study: Study, task: GradingTask) -> tuple[Tokens | None, str]:
    """Return the mean tokens of this grader's earlier requests, as a forecast for one more, and the
    sentence that says so. The tokens are None where there are no earlier requests.
    """
    totals = grade_totals(study.store)
    mine = totals[totals["rater_id"] == task.questions.rater_id]
    mine = mine[mine["tokens_input"] > 0]
    if mine.empty:
        return None, written("grade.expected_assumed", answer=_answer(task))
    asked = int(mine["attempts"].sum())
    read, cached, out = (
        round(mine[f"tokens_{kind}"].sum() / asked) for kind in ("input", "cached", "output")
    )
    sentence = written("grade.expected_known", asked=asked, read=read, cached=cached, out=out)
    return Tokens(input=read, cached=cached, output=out), sentence


def _answer(task: GradingTask) -> int:
    own = any(isinstance(each, JudgedRubric) for each in task.questions.rubrics.values())
    return _REASONED if task.settings.reason or own else _ANSWER


def _prompts(study: Study, task: GradingTask, most: int) -> Iterator[tuple[PromptText, int]]:
    """Yield prompts with their numbers of draws; evenly spaced ones where there are over `most`."""
    step = max(1, ceil(len(task.questions) / task.settings.draws / most))
    asked = groupby(task.questions, key=lambda question: question.prompted)
    draws = islice(((next(group), 1 + sum(1 for _ in group)) for _, group in asked), 0, None, step)
    while chunk := list(islice(draws, _AT_ONCE)):
        shown = study.values_of([question for question, _ in chunk])
        for (question, times), values in zip(chunk, shown, strict=True):
            yield question.rubric.for_prompt(values), times


def request_of(spec: GraderSpec, settings: GraderSettings, prompt: PromptText) -> Mapping[str, Any]:
    """Return the request that a model would be sent first."""
    if spec.speaks == "messages":
        from evenhand.graders.clients.claude import build_request

        return build_request(spec.model, prompt, settings)
    if spec.speaks != "chat":
        from evenhand.graders.clients.openai_chat import build_form_request

        return build_form_request(spec, prompt, settings)
    from evenhand.graders.clients.openai_chat import build_request as build_chat_request
    from evenhand.graders.clients.openai_chat import first_shape

    shape = first_shape(spec, settings)
    return build_chat_request(spec.model, prompt, shape, settings)
