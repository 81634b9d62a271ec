"""Model raters: providers, option probabilities, the runner, and the offline baseline."""

from __future__ import annotations

from evenhand.graders.options import WHOLE, GradingOptions, RequestLimits, Shard
from evenhand.graders.running.dry_run import GraderForecast, forecast
from evenhand.graders.running.responding import ResponseSummary, respond
from evenhand.graders.running.run import GraderSummary
from evenhand.graders.running.runner import RunSummary, grade
from evenhand.graders.spec import GraderSpec, parse_spec

__all__ = [
    "WHOLE",
    "GraderForecast",
    "GraderSpec",
    "GraderSummary",
    "GradingOptions",
    "RequestLimits",
    "ResponseSummary",
    "RunSummary",
    "Shard",
    "forecast",
    "grade",
    "parse_spec",
    "respond",
]
