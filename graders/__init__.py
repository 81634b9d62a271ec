"""Model raters: providers, option probabilities, the runner, and the offline baseline."""

from evenhand.graders.options import WHOLE, GradingOptions, RequestLimits, Shard
from evenhand.graders.providers import GraderSpec, parse_spec
from evenhand.graders.running import (
    GraderForecast,
    GraderSummary,
    ResponseSummary,
    RunSummary,
    check_ready,
    forecast,
    forecast_responses,
    grade,
    respond,
)

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
