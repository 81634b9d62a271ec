"""Model raters: providers, option probabilities, the runner, and the offline baseline."""

from __future__ import annotations

from graders.runner import GraderSummary, RunSummary, grade
from graders.spec import GraderSpec, parse_spec

__all__ = ["GraderSpec", "GraderSummary", "RunSummary", "grade", "parse_spec"]
