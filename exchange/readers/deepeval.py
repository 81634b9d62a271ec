"""DeepEval: what `evaluate` returns, as JSON, and the test run that it leaves in `.deepeval`."""

from __future__ import annotations

from typing import Any

from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, inside, objects, text_of
from evenhand.texts import written

_CASES = (
    ("test_results",),
    ("testRunData", "testCases"),
    ("testCases",),
    ("test_cases",),
    ("testRunData", "conversationalTestCases"),
)


def recognises(source: Source) -> bool:
    return any(_metrics(case) for case in _cases(source.document))


def read(source: Source) -> Export:
    """A test case is a unit, a metric a rubric, and the model that evaluates it a rater. The label
    is whether the case passed.
    """
    rows = Rows(source)
    for case in _cases(source.document):
        unit = text_of(case.get("name")) or text_of(case.get("index"))
        rows.describe(unit, {"input": case.get("input")})
        for metric in _metrics(case):
            model = text_of(metric.get("evaluationModel") or metric.get("evaluation_model"))
            if not model:
                rows.leave_out(written("left_out.by_code"))
                continue
            error = "error" if metric.get("error") else ""
            name = text_of(metric.get("name"))
            rows.add(unit, model, "model", metric.get("success"), name, unscored_reason=error)
    return rows.export(written("exchange.deepeval"))


def _cases(document: Any) -> list[Record]:
    return [case for path in _CASES for case in objects(inside(document, *path))]


def _metrics(case: Record) -> list[Record]:
    return objects(case.get("metrics_data") or case.get("metricsData"))
