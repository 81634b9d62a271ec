"""DeepEval: what `evaluate` returns, as JSON, and the test run that it leaves in `.deepeval`."""

from __future__ import annotations

import re
from typing import Any

from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows
from evenhand.exchange.readers.source import Record, Source, inside, objects, text_of
from evenhand.exchange.readers.texts import texts_of
from evenhand.texts import written

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
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
    cases = _cases(source.document)
    units = rows.units([(_unit(case), _content(case)) for case in cases])
    for case, unit in zip(cases, units, strict=True):
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


def items(source: Source) -> ItemTable | None:
    """A test case is an item, with its expected output and its (retrieval) context."""
    cases = [_plain_names(case) for case in _cases(source.document)]
    if not any("actual_output" in case or case.get("turns") for case in cases):
        return None
    rows = ItemRows(source)
    for case in cases:
        texts = texts_of(
            case.get("input"),
            case.get("turns") or case.get("actual_output"),
            context=case.get("retrieval_context") or case.get("context"),
            expected=case.get("expected_output") or case.get("expected_outcome"),
        )
        rows.add(_unit(case), texts, about=case.get("metadata") or case.get("additional_metadata"))
    return rows.items(written("exchange.deepeval_items"))


def _plain_names(case: Record) -> Record:
    return {_WORDS.sub("_", name).lower(): value for name, value in case.items()}


def _unit(case: Record) -> str:
    return text_of(case.get("name")) or text_of(case.get("index"))


def _content(case: Record) -> list[object]:
    """The texts of a case, which tell it from another of its name."""
    plain = _plain_names(case)
    return [plain.get(name) for name in ("input", "actual_output", "turns")]


def _cases(document: Any) -> list[Record]:
    return [case for path in _CASES for case in objects(inside(document, *path))]


def _metrics(case: Record) -> list[Record]:
    return objects(case.get("metrics_data") or case.get("metricsData"))
