"""What a run would ask and cost, without network or key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

from evenhand.graders.capabilities import warnings_about
from evenhand.graders.choice import Choice, GraderPlan, plan_grading
from evenhand.graders.keys import told_by_study
from evenhand.graders.scrub import Scrubber
from evenhand.rubrics import PromptText

if TYPE_CHECKING:
    from evenhand.study import Study

_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderForecast:
    """One grader's part of a run. The cost runs from an answer of one token to the most that all
    requests could bring; None where there is no known price.
    """

    rater_id: str
    already: int
    new: int
    cost: tuple[float, float] | None
    sample: PromptText | None
    warnings: tuple[str, ...]


def forecast(
    study: Study, grader_specs: Sequence[str], choice: Choice, *, batch: bool = False
) -> list[GraderForecast]:
    """Render every question and price it. Raises InputError as the run itself would."""
    plans = plan_grading(
        study, grader_specs, choice, Scrubber.from_environment(study.config.providers)
    )
    return [_forecast(study, plan, batch) for plan in plans]


def _forecast(study: Study, plan: GraderPlan, batch: bool) -> GraderForecast:
    from evenhand.graders.money import Tariff

    if plan.spec.speaks == "baseline":
        return GraderForecast(
            rater_id=plan.questions.rater_id,
            already=plan.questions.already,
            new=len(plan.questions),
            cost=(0.0, 0.0),
            sample=None,
            warnings=(),
        )
    tariff = Tariff.find(plan.spec, batch=batch)
    least, most, sample = Decimal(0), Decimal(0), None
    for prompt in _prompts(study, plan):
        sample = sample or prompt
        if tariff:
            request = _request(plan, prompt)
            least += tariff.at_least(request)
            most += tariff.at_most(request)
    return GraderForecast(
        rater_id=plan.questions.rater_id,
        already=plan.questions.already,
        new=len(plan.questions),
        cost=(float(least), float(most)) if tariff else None,
        sample=sample,
        warnings=(*told_by_study(plan.spec), *warnings_about(plan.spec, plan.settings)),
    )


def _prompts(study: Study, plan: GraderPlan) -> Iterator[PromptText]:
    questions = iter(plan.questions)
    while chunk := list(islice(questions, _AT_ONCE)):
        for question, values in zip(chunk, study.values_of(chunk), strict=True):
            yield question.rubric.for_prompt(values)


def _request(plan: GraderPlan, prompt: PromptText) -> Mapping[str, Any]:
    if plan.spec.speaks == "messages":
        from evenhand.graders.claude import build_request

        return build_request(plan.spec.model, prompt, plan.settings)
    if plan.spec.speaks != "chat":
        from evenhand.graders import other_form

        return other_form.build_request(plan.spec, prompt, plan.settings.method)
    from evenhand.graders.openai_chat import build_request as build_chat_request
    from evenhand.graders.openai_chat import first_shape

    shape = first_shape(plan.spec, plan.settings)
    return build_chat_request(plan.spec.model, prompt, shape, plan.settings)
