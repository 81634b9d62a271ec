"""Model raters: providers, option probabilities, the runner, and the offline baseline."""

from __future__ import annotations

from graders.dry_run import GraderForecast, forecast
from graders.planning import Choice
from graders.runner import GraderSummary, RunSummary, grade
from graders.spec import GraderSpec, parse_spec
from graders.subjects import ResponseSummary, respond

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
