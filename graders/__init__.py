"""Model raters: providers, option probabilities, the runner, and the offline baseline."""

from __future__ import annotations

from evenhand.graders.dry_run import GraderForecast, forecast
from evenhand.graders.planning import Choice
from evenhand.graders.runner import GraderSummary, RunSummary, grade
from evenhand.graders.spec import GraderSpec, parse_spec
from evenhand.graders.subjects import ResponseSummary, respond

__all__ = [
    "Choice",
    "GraderForecast",
    "GraderSpec",
    "GraderSummary",
    "ResponseSummary",
    "RunSummary",
    "forecast",
    "grade",
    "parse_spec",
    "respond",
]
