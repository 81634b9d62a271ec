from .options import WHOLE as WHOLE
from .options import GradingOptions as GradingOptions
from .options import RequestLimits as RequestLimits
from .options import Shard as Shard
from .providers import GraderSpec as GraderSpec
from .providers import parse_spec as parse_spec
from .running import GraderForecast as GraderForecast
from .running import GraderSummary as GraderSummary
from .running import ResponseSummary as ResponseSummary
from .running import RunSummary as RunSummary
from .running import check_ready as check_ready
from .running import forecast as forecast
from .running import forecast_responses as forecast_responses
from .running import grade as grade
from .running import respond as respond

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
