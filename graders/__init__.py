"""Model raters: providers, option probabilities, the runner, and the offline baseline."""

from __future__ import annotations

from evenhand.graders.options import WHOLE, GradingOptions, RequestLimits, Shard
from evenhand.graders.providers import GraderSpec, parse_spec
from evenhand.graders.running import GraderSummary
from evenhand.graders.running.responding import ResponseSummary, forecast_responses, respond
from evenhand.graders.running.runner import GraderForecast, RunSummary, check_ready, forecast, grade

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
    "check_ready",
    "forecast",
    "forecast_responses",
    "grade",
    "parse_spec",
    "respond",
]
