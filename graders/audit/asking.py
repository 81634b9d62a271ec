"""Carrying out an injection audit with the runner of `grade`: resumable, and within a budget."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.graders.audit.plan import AuditChoice, AuditPlan
from evenhand.graders.running.dry_run import GraderForecast, forecast_of
from evenhand.graders.running.locking import only_runner
from evenhand.graders.running.run import GraderSummary, Pace, Progress
from evenhand.graders.running.runner import RunSummary, carry_out, new_context
from evenhand.graders.scrub import Scrubber

if TYPE_CHECKING:
    from evenhand.study import Study


def audit_injection(
    study: Study,
    choice: AuditChoice,
    progress: Progress | None = None,
    *,
    pace: Pace | None = None,
    budget: float | None = None,
    batch: bool = False,
    cancel: bool = False,
) -> RunSummary:
    """Ask the missing questions of an audit: the clean texts first, then the attacks, each aimed
    at an option that the grader did not give to the clean text. Safe to interrupt and to run again.

    `budget`, `batch` and `cancel` are those of `grade`: a batch of the clean texts, then one of the
    attacks. Raises InputError as `grade` does.
    """
    scrubber, pace = Scrubber.from_environment(study.config.providers), pace or Pace()
    if pace.concurrency < 1:
        raise InputError(f"concurrency is {pace.concurrency}; it must be at least 1")
    with only_runner(study):
        audit = AuditPlan(study, choice, scrubber)
        context = new_context(scrubber, pace, budget, 0, progress)
        summary = GraderSummary(rater_id=audit.rater_id, already=0, planned=0)
        for part in (audit.clean,) if cancel else (audit.clean, audit.attacked):
            plan = part()
            counter = new_context(scrubber, pace, None, len(plan.questions), progress).progress
            summary.already += plan.questions.already
            summary.planned += len(plan.questions)
            if len(plan.questions) or cancel:
                of_part = replace(context, progress=counter)
                carry_out(study, [plan], of_part, [summary], batch=batch, cancel=cancel)
            if summary.stopped:
                break
    return RunSummary((summary,), context.budget.exhausted)


def forecast_audit(
    study: Study, choice: AuditChoice, *, batch: bool = False
) -> list[GraderForecast]:
    """Forecast the questions and the highest cost of an audit, without network or key."""
    audit = AuditPlan(study, choice, Scrubber.from_environment(study.config.providers))
    return [forecast_of(study, audit.at_most(), batch=batch)]
