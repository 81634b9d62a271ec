"""Exports of tools that evaluate applications by a model: promptfoo, DeepEval and Braintrust."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from evenhand.exchange.readers.rows import Export, ItemRows, Reader, Rows
from evenhand.exchange.readers.source import (
    TOOLS,
    Record,
    Source,
    fields_in,
    inside,
    objects,
    snake_case,
    text_of,
)
from evenhand.exchange.readers.texts import opened, texts_of
from evenhand.exchange.readers.traces import name_of
from evenhand.texts import written

# ---- promptfoo ----------------------------------------------------------------------------------
# The results of `promptfoo eval -o FILE.json` or `promptfoo export`.
_PROMPTFOO = TOOLS["promptfoo"]
_NOT_UNDERSTOOD = tuple(_PROMPTFOO["not_understood"])


def _read_promptfoo(rows: Rows, source: Source) -> None:
    """An output is a unit. A person's rating is about the whole output, and so is a model's:
    whether all of its assertions passed. If it has several, each is a rubric of its own, too.
    """
    results = _results(source)
    # The variables and the output differ where a test was repeated.
    outputs = [[each.get("vars"), inside(each, "response", "output")] for each in results]
    units = rows.units(list(zip(map(_output_unit, results), outputs, strict=True)))
    for result, unit in zip(results, units, strict=True):
        rows.describe(unit, result.get("vars"))
        graded: dict[str, list[Record]] = {}
        for part in objects(inside(result, "gradingResult", "componentResults")):
            form = text_of(inside(part, "assertion", "type")).removeprefix("not-")
            if form == "human":
                author = text_of(inside(part, "assertion", "author"))  # promptfoo names nobody
                rows.add(unit, author or "human", "human", part.get("pass"))
            elif form in _PROMPTFOO["by_model"]:
                # The model by its provider's id; promptfoo's default one by the assertion.
                provider = inside(part, "assertion", "provider")
                grader = name_of(provider, inside(provider, "id"), form)
                graded.setdefault(grader, []).append(part)
            else:
                rows.leave_out(written("left_out.by_code"))
        for grader, parts in graded.items():
            _add_grades(rows, unit, grader, parts)


def _promptfoo_items(rows: ItemRows, source: Source) -> None:
    """An output is an item; those of one test belong together."""
    for result in _results(source):
        own = result.get("vars")
        given = opened(inside(result, "prompt", "raw"))
        texts = texts_of({"prompt": given or own} | fields_in(own), None)
        made = texts_of(given or own, inside(result, "response", "output"))
        provider = result.get("provider")
        rows.add(
            _output_unit(result),
            {name: texts[name] for name in ("context", "reference") if name in texts} | made,
            subject=text_of(inside(provider, "label")) or inside(provider, "id") or provider,
            cluster=result.get("testIdx"),
            about=own,
        )


def _output_unit(result: Record) -> str:
    unit = "-".join(text_of(result.get(name)) for name in ("testIdx", "promptIdx"))
    return unit if unit != "-" else text_of(result.get("id"))


def _add_grades(rows: Rows, unit: str, grader: str, parts: list[Record]) -> None:
    """Add whether all assertions passed. Of one that the grader failed to answer nobody knows, and
    so of all of them, unless another has failed.
    """
    known = [part.get("pass") is True for part in parts if not _is_error(part)]
    error = "error" if len(known) < len(parts) and all(known) else ""
    rows.add(unit, grader, "model", None if error else all(known), unscored_reason=error)
    for part in parts if len(parts) > 1 else ():
        metric = text_of(inside(part, "assertion", "metric") or inside(part, "assertion", "value"))
        error = "error" if _is_error(part) else ""
        passed = None if error else part.get("pass")
        rows.add(unit, grader, "model", passed, metric[:80], unscored_reason=error)


def _is_error(part: Record) -> bool:
    """Return True if the grader's answer was not understood; older versions say so in the reason
    alone.
    """
    said = text_of(part.get("reason")).startswith(_NOT_UNDERSTOOD)
    return inside(part, "metadata", "graderError") is True or said


def _results(source: Source) -> list[Record]:
    document: Any = source.document
    for path in (("results", "results"), ("results",)):
        if found := objects(inside(document, *path)):
            return found
    return source.records() if "gradingResult" in source.first else []


# ---- DeepEval -----------------------------------------------------------------------------------
# What `evaluate` returns, as JSON, and the test run that it leaves in `.deepeval`.
def _cases(source: Source) -> list[Record]:
    document: Any = source.document
    paths = TOOLS["deepeval"]["cases"]
    return [case for path in paths for case in objects(inside(document, *path.split(".")))]


def _read_deepeval(rows: Rows, source: Source) -> None:
    """A test case is a unit, a metric a rubric, and the model that evaluates it a rater. The label
    is whether the case passed.
    """
    cases = _cases(source)
    # Its texts tell a case from another of its name.
    texts = [snake_case(case) for case in cases]
    named = [[each.get(name) for name in ("input", "actual_output", "turns")] for each in texts]
    units = rows.units(list(zip(map(_case_name, cases), named, strict=True)))
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


def _has_deepeval_items(source: Source) -> bool:
    cases = map(snake_case, _cases(source))
    return any("actual_output" in case or case.get("turns") for case in cases)


def _deepeval_items(rows: ItemRows, source: Source) -> None:
    """A test case is an item, with its expected output and its (retrieval) context."""
    for case in map(snake_case, _cases(source)):
        texts = texts_of(
            case.get("input"),
            case.get("turns") or case.get("actual_output"),
            context=case.get("retrieval_context") or case.get("context"),
            expected=case.get("expected_output") or case.get("expected_outcome"),
        )
        rows.add(
            _case_name(case), texts, about=case.get("metadata") or case.get("additional_metadata")
        )


def _case_name(case: Record) -> str:
    return text_of(case.get("name")) or text_of(case.get("index"))


def _metrics(case: Record) -> list[Record]:
    return objects(case.get("metrics_data") or case.get("metricsData"))


# ---- Braintrust ---------------------------------------------------------------------------------
# The rows of an experiment or of logs, as its page, its API and `fetch` give them.
_PAGES = ("data", "events", "rows")


def _is_braintrust(source: Source) -> bool:
    return next(iter(_rows([source.first])), {}).keys() >= {*TOOLS["braintrust"]["ratings"]}


def _read_braintrust(rows: Rows, source: Source) -> Export:
    """A row is a unit, and each score a rater of the same question: Braintrust gives a score one
    name, and not who gave it. What its log of changes has from the page is a person's; a scorer
    whose span asked a model is a model, and one that asked none is code, which is left out.
    """
    records = _rows(source.records())
    kinds = _scorers(records)
    for record in filter(_is_root, records):
        people = _reviewed(record)
        for name, value in fields_in(record.get("scores")).items():
            kind = "human" if name in people else kinds.get(name, "")
            if kind == "code":
                rows.leave_out(written("left_out.by_code"))
            else:
                rows.add(_row_id(record), name, kind, value, created_at=record.get("created"))
        rows.describe(_row_id(record), opened(record.get("metadata")))
    return replace(rows.export(written("exchange.braintrust")), by_score=True)


def _braintrust_items(rows: ItemRows, source: Source) -> None:
    """A row with an output is an item."""
    for record in filter(_is_root, _rows(source.records())):
        given, made = opened(record.get("input")), opened(record.get("output"))
        metadata = opened(record.get("metadata"))
        rows.add(
            _row_id(record),
            texts_of(given, made, expected=opened(record.get("expected"))),
            subject=name_of(inside(metadata, "model")),
            ids={"span_id": record.get("span_id")},
            about=metadata,
        )


def _rows(records: list[Record]) -> list[Record]:
    """The rows of a file, also of pages that hold them."""
    found = []
    for record in records:
        inner = next((record[name] for name in _PAGES if isinstance(record.get(name), list)), None)
        found += [record] if inner is None or "root_span_id" in record else objects(inner)
    return found


def _row_id(record: Record) -> str:
    return name_of(record.get("id"), record.get("span_id"))


def _is_root(record: Record) -> bool:
    return record.get("is_root") is True or text_of(record.get("span_id")) == text_of(
        record.get("root_span_id")
    )


def _reviewed(record: Record) -> set[str]:
    """The scores that came from the page: a person reviewed the row."""
    changes = record.get("audit_data")
    paths = [
        inside(each, "audit_data", "path")
        for each in objects(changes)
        if each.get("source") == "app"
    ]
    return {text_of(path[1]) for path in paths if isinstance(path, list) and len(path) > 1}


def _scorers(records: list[Record]) -> dict[str, str]:
    """The kind of each scorer that has a span: model, if a model was asked below it, else code."""
    below: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        parents = record.get("span_parents")
        for parent in parents if isinstance(parents, list) else ():
            below[text_of(parent)].append(record)
    kinds: dict[str, str] = {}
    for record in records:
        scores = record.get("scores")
        if inside(record, "span_attributes", "type") != "score" or not isinstance(scores, dict):
            continue
        asks = _asks(text_of(record.get("span_id")), below)
        for name in scores:
            kinds[name] = "model" if asks or kinds.get(name) == "model" else "code"
    return kinds


def _asks(span: str, below: dict[str, list[Record]]) -> bool:
    """Return True if a span below this one asked a model."""
    found, seen = [span], {span}
    for each in found:
        for own in below.get(each, ()):
            if inside(own, "span_attributes", "type") == "llm":
                return True
            name = text_of(own.get("span_id"))
            found += [name] if name not in seen else []
            seen.add(name)
    return False


PROMPTFOO = Reader(
    lambda source: any("gradingResult" in each for each in _results(source)[:1]),
    _read_promptfoo,
    _promptfoo_items,
    lambda source: any({"response", "vars"} <= {*each} for each in _results(source)[:1]),
)
DEEPEVAL = Reader(
    lambda source: any(map(_metrics, _cases(source))),
    _read_deepeval,
    _deepeval_items,
    _has_deepeval_items,
)
BRAINTRUST = Reader(_is_braintrust, _read_braintrust, _braintrust_items)
