"""Logs of evaluations by code or by a model: the benchmarks Inspect, lm-evaluation-harness,
lighteval and OpenAI's evals, and promptfoo, DeepEval and Braintrust, which evaluate applications.

A model under test that chooses among few options is read as a rater beside an adjudicator, who
gives the gold answers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from evenhand.exchange.readers.rows import (
    LONGEST_LABEL,
    Export,
    ItemRows,
    Reader,
    Rows,
    has_fields,
    plain_kind,
    rating_columns,
)
from evenhand.exchange.readers.source import (
    TOOLS,
    Record,
    Source,
    fields_in,
    first_text,
    from_json,
    get_in,
    map_leaves,
    messages_in,
    objects,
    parse_json,
    snake_case,
    text_of,
    texts_of,
    unpaged,
)
from evenhand.texts import written

GOLD, MODEL = "gold", "model"
"""The raters, where a file does not name the model."""
MOST_OPTIONS = 20
_JUDGE = re.compile(r"judge|llm|gpt", re.I)
"""Names of metrics that a model gives."""


Answer = tuple[str, str, object, object]
"""The unit, the rubric, a model's answer, and the true one; the answers may be None."""


def _add_answers(rows: Rows, answers: Sequence[Answer], model: str = MODEL) -> None:
    """Add answers as labels if the true ones are few options; others are texts, left out."""
    options = {text_of(true) for *_, true in answers} - {""}
    few = 0 < len(options) <= min(MOST_OPTIONS, max(len(answers) // 2, 1))
    if not few or any(len(option) > LONGEST_LABEL for option in options):
        if answers:
            rows.leave_out(written("left_out.open_answers"), len(answers))
        return
    for unit, rubric, answer, true in answers:
        rows.add(unit, GOLD, "adjudicator", true, rubric)
        rows.add(unit, model, "model", answer, rubric)


def _add_metrics(rows: Rows, unit: str, metrics: Mapping[str, object], how: str = "") -> None:
    """Add the metrics that a model gave, each as a rubric; those that code computed are counted."""
    for name, value in metrics.items():
        if _JUDGE.search(name):
            rows.add(unit, name, "model", value, f"{name}, {how}" if how else name)
        else:
            rows.leave_out(written("left_out.by_code"))


def _add_texts(
    rows: ItemRows, doc: str, texts: list[str], given: object, expected: object, about: object
) -> None:
    """Add the texts generated on a document, which belong together; likelihoods are no texts."""
    if not texts:
        rows.leave_out(written("left_out.likelihoods"))
    for number, text in enumerate(texts, 1):
        unit = f"{doc}/{number}" if len(texts) > 1 else doc
        rows.add(unit, texts_of(given, text, expected=expected), cluster=doc, about=about)


# ---- Inspect ------------------------------------------------------------------------------------
# The logs of its evaluations, `.eval` and `.json`.
_INSPECT = TOOLS["inspect"]


def _is_inspect(source: Source) -> bool:
    if source.archive:
        return any(name in source.archive.names for name in _INSPECT["headers"])
    document = source.document
    return isinstance(get_in(document, "eval"), dict) and get_in(document, "samples") is not None


def _read_inspect(rows: Rows, source: Source) -> Export:
    """A sample is a unit (of several epochs each), a scorer a rater. Where scores were edited, the
    scorer is a rubric, and its first value the model's; an edit is its author's.
    """
    samples = []
    for sample in _all_of_it(source):  # whose events, which fill a log, are let go
        given = fields_in(sample.get("scores")).items()
        kept = {name: sample.get(name) for name in ("id", "epoch", "metadata")}
        samples.append((kept, {by: score for by, score in given if isinstance(score, dict)}))
    several = _several_epochs(sample for sample, _ in samples)
    every = [score for _, scores in samples for score in scores.values()]
    edited = any(objects(score.get("history"))[1:] for score in every)
    for sample, scores in samples:
        name, epoch = text_of(sample.get("id")), text_of(sample.get("epoch"))
        unit = f"{name}/{epoch}" if several else name
        rows.describe(unit, sample.get("metadata"))
        if not scores:
            rows.leave_out(written("left_out.no_score"))
        for scorer, score in scores.items():
            _add(rows, unit, scorer, score, {"cluster_id": name} if several else {}, edited)
    return rows.export(written("exchange.inspect_edited" if edited else "exchange.inspect"))


def _inspect_items(rows: ItemRows, source: Source) -> None:
    """Read a sample of one epoch as an item: the conversation, where there are several turns."""
    samples = []
    for sample in _all_of_it(source):  # whose events, which fill a log, are let go
        scored = fields_in(sample.get("scores"))
        codes = {by: get_in(scored[by], "value") for by in scored if by in _INSPECT["by_code"]}
        about = fields_in(sample.get("metadata")) | codes
        kept = {name: sample.get(name) for name in ("id", "epoch")}
        model = text_of(get_in(sample, "output", "model"))
        samples.append((kept, model, about, _inspect_texts(sample)))
    several = _several_epochs(sample for sample, *_ in samples)
    header: object = source.document
    if archive := source.archive:
        name = next(value for value in _INSPECT["headers"] if value in archive.names)
        header = parse_json(archive.read(name), f"{source.name}, {name}")
    for sample, model, about, texts in samples:
        name, epoch = text_of(sample["id"]), text_of(sample["epoch"])
        unit, ids = name, {"sample_id": name}
        if several:
            unit, ids = f"{name}/{epoch}", {"sample_id": name, "epoch": epoch}
        subject = model or get_in(header, "eval", "model")
        rows.add(unit, texts, subject=subject, cluster=name, ids=ids, about=about)


def _inspect_texts(sample: Record) -> Record:
    held = fields_in(sample.get("attachments"))

    def whole(leaf: object) -> object:  # Inspect keeps long texts apart
        return held.get(leaf.removeprefix("attachment://"), leaf) if isinstance(leaf, str) else leaf

    given, target, talk, output = (
        map_leaves(sample.get(name), whole) for name in ("input", "target", "messages", "output")
    )
    target = ", ".join(map(text_of, target)) if isinstance(target, list) else target
    messages = messages_in(talk) or []
    if len([message for message in messages if message["role"] in ("assistant", "tool")]) > 1:
        return texts_of(None, messages, expected=target)
    return texts_of(given, output, expected=target)


def _several_epochs(samples: Iterable[Record]) -> bool:
    return any(text_of(sample.get("epoch")) not in ("", "1") for sample in samples)


def _all_of_it(source: Source) -> Iterator[Record]:
    archive = source.archive
    if archive is None:
        yield from objects(get_in(source.document, "samples"))
        return
    for name in archive.names:
        if name.startswith("samples/"):
            sample = parse_json(archive.read(name), f"{source.name}, {name}")
            if isinstance(sample, dict):
                yield sample


def _add(rows: Rows, unit: str, scorer: str, score: Record, more: Record, edited: bool) -> None:
    metadata = score.get("metadata")
    claims = {text_of(record.get("name")): record for record in objects(get_in(metadata, "raters"))}
    history = objects(score.get("history"))
    first = history[0].get("value") if history else score.get("value")
    if claims and isinstance(first, dict):  # evenhand's writer: a value for each rater
        for name, value in first.items():
            _add_one(rows, unit, name, value, rating_columns(claims.get(name)), more, "")
        return
    claim = rating_columns(metadata)
    if scorer in _INSPECT["by_code"] and "rater_kind" not in claim:
        rows.leave_out(written("left_out.by_code"))
        return
    rubric = scorer if edited else ""
    reason = {"unscored_reason": text_of(score.get("reason"))} if first in (None, "") else {}
    _add_one(rows, unit, scorer, first, {**reason, **claim}, more, rubric)
    for before, edit in pairwise(history):
        author = text_of(get_in(edit, "provenance", "author"))
        if edit.get("value", "UNCHANGED") == "UNCHANGED":
            edit["value"] = before.get("value")
        more_fields = {**more, "created_at": get_in(edit, "provenance", "timestamp")}
        _add_one(
            rows,
            unit,
            author,
            edit["value"],
            {"rater_kind": plain_kind(author)},
            more_fields,
            rubric,
        )


def _add_one(
    rows: Rows, unit: str, rater: str, value: object, claim: Record, more: Record, rubric: str
) -> None:
    """A rater's value; of several in one (a dictionary) each is a rubric of its own."""
    kind = claim.pop("rater_kind", "model" if rater in _INSPECT["by_model"] else "")
    rater, rubric = claim.pop("rater_id", rater), claim.pop("rubric", rubric)
    for part, entry in value.items() if isinstance(value, dict) else ((rubric, value),):
        rows.add(unit, rater, kind, entry, part, **{**claim, **more})


# ---- lm-evaluation-harness ----------------------------------------------------------------------
# The samples of a task (`--log_samples`, `samples_TASK_TIME.jsonl`).
def _read_lm_eval(rows: Rows, source: Source) -> None:
    """Read a model's choice as its label and the target as gold; each filter is a rubric."""
    answers = []
    samples = source.records()
    units = rows.units([(text_of(sample.get("doc_id")), sample.get("doc")) for sample in samples])
    filters = [text_of(sample.get("filter")) for sample in samples]
    several = len({*filters}) > 1
    for sample, unit, how in zip(samples, units, filters, strict=True):
        rows.describe(unit, sample.get("doc"))
        rubric = how if how != "none" else ""
        answers.append((unit, rubric, *_lm_eval_choice(sample)))
        named = sample.get("metrics")
        names = map(text_of, named if isinstance(named, list) else ())
        _add_metrics(rows, unit, {name: sample.get(name) for name in names}, rubric * several)
    _add_answers(rows, answers)


def _lm_eval_items(rows: ItemRows, source: Source) -> None:
    """A generated text is an item; the metrics are columns."""
    fields = TOOLS["lm_eval"]["own"]
    for sample in source.records():
        about = {name: sample[name] for name in sample if name not in fields}
        doc, prompt = text_of(sample.get("doc_id")), from_json(_prompt(sample))
        _add_texts(rows, doc, _generated(sample), prompt, sample.get("target"), about)


def _lm_eval_choice(sample: Record) -> tuple[object, object]:
    """The likeliest of the options and the true one, or the answer as it was filtered and the
    target. The target may be a number of an option, which only the accuracy tells from its text.
    """
    kept, target = sample.get("filtered_resps"), sample.get("target")
    first = _first(kept)
    if _generated(sample) or not isinstance(first, list):
        return _first(first) if first and isinstance(first, list) else first, target
    options, prompt = [], _prompt(sample)
    for record in objects([*fields_in(sample.get("arguments")).values()]):
        if record.get("arg_0") == prompt:  # a mutual-information metric asks again without it
            options.append(text_of(record.get("arg_1")).strip())
    chances = [_number(_first(response)) for response in (kept or [])[: len(options)]]
    if not options or len(chances) < len(options):
        return None, target
    answer = options[chances.index(max(chances))]
    text, at = text_of(target).strip(), text_of(target)
    able = {text} & {*options}
    if at.isdecimal() and int(at) < len(options):
        able.add(options[int(at)])
    if len(able) > 1 and (hit := _number(sample.get("acc"))) in (0, 1):
        able = {option for option in able if (option == answer) == bool(hit)}
    return answer, able.pop() if len(able) == 1 else None


def _first(value: object) -> object:
    """The first of a list; None for anything else."""
    return value[0] if isinstance(value, list) and value else None


def _number(value: object) -> float:
    try:
        return float(text_of(value))
    except ValueError:
        return float("-inf")


def _prompt(sample: Record) -> object:
    """The model's input; newer versions name the arguments of each request."""
    arguments = sample.get("arguments")
    if isinstance(arguments, dict):
        return get_in(next(iter(arguments.values()), None), "arg_0")
    first = _first(arguments)
    return _first(first) if first and isinstance(first, list) else first


def _generated(sample: Record) -> list[str]:
    first = _first(sample.get("resps"))
    # A number is read as a text, too: what was computed of an answer is a list.
    texts = first if isinstance(first, list) else [first]
    return [text for text in texts if type(text) is str and text]


# ---- lighteval ----------------------------------------------------------------------------------
# The details of a task (`--save-details`, `details_TASK_TIME.parquet`).
_COLUMNS = TOOLS["lighteval"]["ratings"]


def _read_lighteval(rows: Rows, source: Source) -> None:
    """Read a model's choice as its label and the gold option as that of an adjudicator, by task."""
    answers = []
    for unit, record in _records(source):
        task = text_of(get_in(record, "doc", "task_name"))
        answers.append((unit, task, *_lighteval_choice(record)))
        _add_metrics(rows, unit, fields_in(record.get("metric")))
    _add_answers(rows, answers)


def _lighteval_items(rows: ItemRows, source: Source) -> None:
    """A generated text is an item; the metrics are columns."""
    for unit, record in _records(source):
        given = get_in(record, "model_response", "input") or get_in(record, "doc", "query")
        _, true = _lighteval_choice(record)
        _add_texts(rows, unit, _lighteval_texts(record), given, true, record.get("metric"))


def _records(source: Source) -> list[tuple[str, Record]]:
    """The details of each document, by its id, or by its place where it has none."""
    records = enumerate(source.records(_COLUMNS if source.columns else ()))
    return [(text_of(get_in(row, "doc", "id")) or str(place), row) for place, row in records]


def _lighteval_texts(record: Record) -> list[str]:
    answers = get_in(record, "model_response", "text_post_processed")
    answers = answers or get_in(record, "model_response", "text")
    return [text for text in map(text_of, answers if isinstance(answers, list) else ()) if text]


def _lighteval_choice(record: Record) -> tuple[object, object]:
    """The likeliest of the options, or the generated text; and the gold option, or all of them."""
    options = get_in(record, "doc", "choices")
    options = [text_of(option).strip() for option in options] if isinstance(options, list) else []
    gold = get_in(record, "doc", "gold_index")
    places = [text_of(option) for option in (gold if isinstance(gold, list) else [gold])]
    true = [options[int(at)] for at in places if at.isdecimal() and int(at) < len(options)]
    chances = get_in(record, "model_response", "logprobs")
    numbers = [float(text_of(chance) or "-inf") for chance in chances or ()]
    texts = _lighteval_texts(record)
    answer: object = texts[0].strip() if texts else None
    if len(numbers) == len(options) > 1:
        answer = options[numbers.index(max(numbers))]
    return answer, true[0] if len(true) == 1 else true or None


# ---- OpenAI's evals -----------------------------------------------------------------------------
# The log of a run (`oaieval`, a line for each event).


def _read_openai_evals(rows: Rows, source: Source) -> None:
    """A sample is a unit. What the model picked is its label and what was expected the gold one;
    what a model-graded eval chose is the grader's label, its specification the rubric.
    """
    records = source.records()
    models, arguments = _evals_run(records)
    graded = text_of(arguments.get("modelgraded_spec")) or "graded"
    grader = first_text(arguments.get("eval_completion_fn"), *models[1:][-1:]) or graded
    answers = []
    for event in records:
        unit, data = text_of(event.get("sample_id")), event.get("data")
        if event.get("type") == "match" and isinstance(data, dict):
            answers.append((unit, "", data.get("picked"), data.get("expected")))
        elif event.get("type") == "metrics" and isinstance(data, dict):
            if "choice" in data:
                rows.add(unit, grader, "model", data["choice"], graded)
            else:
                rows.leave_out(written("left_out.by_code"), len(data))
    _add_answers(rows, answers, first_text(*models[:1]) or MODEL)


def _openai_evals_items(rows: ItemRows, source: Source) -> None:
    """The first sampled text of a sample is an item: later ones are a grader's."""
    records = source.records()
    expected = {
        text_of(event.get("sample_id")): get_in(event, "data", "expected")
        or get_in(event, "data", "ideal")
        for event in records
        if event.get("type") in ("match", "metrics")
    }
    models, _ = _evals_run(records)
    seen = set()
    for event in records:
        unit = text_of(event.get("sample_id"))
        if event.get("type") == "sampling" and unit not in seen:
            seen.add(unit)
            given, made = (
                from_json(get_in(event, "data", "prompt")),
                get_in(event, "data", "sampled"),
            )
            texts = texts_of(given, made, expected=expected.get(unit))
            rows.add(unit, texts, subject=first_text(*models[:1]))


def _evals_run(records: list[Record]) -> tuple[list[object], Record]:
    """The models of a run, of which one that grades comes last, and the arguments of the eval."""
    spec = next((record["spec"] for record in records if "spec" in record), None)
    models = get_in(spec, "completion_fns")
    arguments = get_in(spec, "run_config", "eval_spec", "args")
    return models if isinstance(models, list) else [], fields_in(arguments)


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
    outputs = [[result.get("vars"), get_in(result, "response", "output")] for result in results]
    units = rows.units(list(zip(map(_output_unit, results), outputs, strict=True)))
    for result, unit in zip(results, units, strict=True):
        rows.describe(unit, result.get("vars"))
        graded: dict[str, list[Record]] = {}
        for part in objects(get_in(result, "gradingResult", "componentResults")):
            form = text_of(get_in(part, "assertion", "type")).removeprefix("not-")
            if form == "human":
                author = text_of(get_in(part, "assertion", "author"))  # promptfoo names nobody
                rows.add(unit, author or "human", "human", part.get("pass"))
            elif form in _PROMPTFOO["by_model"]:
                # The model by its provider's id; promptfoo's default one by the assertion.
                provider = get_in(part, "assertion", "provider")
                grader = first_text(provider, get_in(provider, "id"), form)
                graded.setdefault(grader, []).append(part)
            else:
                rows.leave_out(written("left_out.by_code"))
        for grader, parts in graded.items():
            _add_grades(rows, unit, grader, parts)


def _promptfoo_items(rows: ItemRows, source: Source) -> None:
    """An output is an item; those of one test belong together."""
    for result in _results(source):
        values = result.get("vars")
        given = from_json(get_in(result, "prompt", "raw"))
        texts = texts_of({"prompt": given or values} | fields_in(values), None)
        made = texts_of(given or values, get_in(result, "response", "output"))
        provider, test = result.get("provider"), result.get("testIdx")
        subject = text_of(get_in(provider, "label")) or get_in(provider, "id") or provider
        further = {name: texts[name] for name in ("context", "reference") if name in texts}
        rows.add(_output_unit(result), further | made, subject=subject, cluster=test, about=values)


def _output_unit(result: Record) -> str:
    unit = "-".join(text_of(result.get(name)) for name in ("testIdx", "promptIdx"))
    return unit if unit != "-" else text_of(result.get("id"))


def _add_grades(rows: Rows, unit: str, grader: str, parts: list[Record]) -> None:
    """Add whether all assertions passed: unknown if the grader failed on one and none failed."""
    failed = [
        get_in(part, "metadata", "graderError") is True
        or text_of(part.get("reason")).startswith(_NOT_UNDERSTOOD)  # in older versions
        for part in parts
    ]
    graded = list(zip(parts, failed, strict=True))
    passed = all(part.get("pass") is True for part, error in graded if not error)
    lacks = any(failed) and passed
    rows.add(unit, grader, "model", None if lacks else passed, unscored_reason="error" * lacks)
    for part, error in graded if len(parts) > 1 else ():
        metric = text_of(get_in(part, "assertion", "metric") or get_in(part, "assertion", "value"))
        value = None if error else part.get("pass")
        rows.add(unit, grader, "model", value, metric[:80], unscored_reason="error" * error)


def _results(source: Source) -> list[Record]:
    document: Any = source.document
    for path in (("results", "results"), ("results",)):
        if results := objects(get_in(document, *path)):
            return results
    return source.records() if "gradingResult" in source.first else []


# ---- DeepEval -----------------------------------------------------------------------------------
# What `evaluate` returns, as JSON, and the test run that it leaves in `.deepeval`.
def _cases(source: Source) -> list[Record]:
    document: Any = source.document
    paths = TOOLS["deepeval"]["cases"]
    return [case for path in paths for case in objects(get_in(document, *path.split(".")))]


def _read_deepeval(rows: Rows, source: Source) -> None:
    """Read whether a case passed as the label of the model that evaluates a metric, the rubric."""
    cases = _cases(source)
    # Its texts tell a case from another of its name.
    texts = [snake_case(case) for case in cases]
    named = [[text.get(name) for name in ("input", "actual_output", "turns")] for text in texts]
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


def _deepeval_items(rows: ItemRows, source: Source) -> None:
    """A test case is an item, with its expected output and its (retrieval) context."""
    for case in map(snake_case, _cases(source)):
        given, made = case.get("input"), case.get("turns") or case.get("actual_output")
        context = case.get("retrieval_context") or case.get("context")
        expected = case.get("expected_output") or case.get("expected_outcome")
        texts = texts_of(given, made, context=context, expected=expected)
        about = case.get("metadata") or case.get("additional_metadata")
        rows.add(_case_name(case), texts, about=about)


def _case_name(case: Record) -> str:
    return text_of(case.get("name")) or text_of(case.get("index"))


def _metrics(case: Record) -> list[Record]:
    return objects(case.get("metrics_data") or case.get("metricsData"))


# ---- Braintrust ---------------------------------------------------------------------------------
# The rows of an experiment or of logs, as its page, its API and `fetch` give them.


def _read_braintrust(rows: Rows, source: Source) -> Export:
    """A row is a unit, and each score a rater of the same question: Braintrust gives a score one
    name, and not who gave it. What its log of changes has from the page is a person's; a scorer
    whose span asked a model is a model, and one that asked none is code, which is left out.
    """
    records = _rows(source.records())
    kinds = _scorers(records)
    for record in filter(_is_root, records):
        log = objects(record.get("audit_data"))  # what comes from the page is a person's
        paths = [get_in(part, "audit_data", "path") for part in log if part.get("source") == "app"]
        people = {text_of(path[1]) for path in paths if isinstance(path, list) and len(path) > 1}
        for name, value in fields_in(record.get("scores")).items():
            kind = "human" if name in people else kinds.get(name, "")
            if kind == "code":
                rows.leave_out(written("left_out.by_code"))
            else:
                rows.add(_row_id(record), name, kind, value, created_at=record.get("created"))
        rows.describe(_row_id(record), from_json(record.get("metadata")))
    return replace(rows.export(written("exchange.braintrust")), by_score=True)


def _braintrust_items(rows: ItemRows, source: Source) -> None:
    """A row with an output is an item."""
    for record in filter(_is_root, _rows(source.records())):
        given, made, expected, metadata = (
            from_json(record.get(name)) for name in ("input", "output", "expected", "metadata")
        )
        texts, ids = texts_of(given, made, expected=expected), {"span_id": record.get("span_id")}
        subject = first_text(get_in(metadata, "model"))
        rows.add(_row_id(record), texts, subject=subject, ids=ids, about=metadata)


def _rows(records: list[Record]) -> list[Record]:
    return unpaged(records, ("data", "events", "rows"), "root_span_id")


def _row_id(record: Record) -> str:
    return first_text(record.get("id"), record.get("span_id"))


def _is_root(record: Record) -> bool:
    span, root = text_of(record.get("span_id")), text_of(record.get("root_span_id"))
    return record.get("is_root") is True or span == root


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
        if get_in(record, "span_attributes", "type") != "score" or not isinstance(scores, dict):
            continue
        asks = _asks(text_of(record.get("span_id")), below)
        for name in scores:
            kinds[name] = "model" if asks or kinds.get(name) == "model" else "code"
    return kinds


def _asks(span: str, below: dict[str, list[Record]]) -> bool:
    """Return True if a span below this one asked a model."""
    spans, seen = [span], {span}
    for parent in spans:
        for child in below.get(parent, ()):
            if get_in(child, "span_attributes", "type") == "llm":
                return True
            name = text_of(child.get("span_id"))
            spans += [name] if name not in seen else []
            seen.add(name)
    return False


READERS = {
    "inspect": Reader(_is_inspect, _read_inspect, _inspect_items),
    "lm_eval": Reader(has_fields("lm_eval"), _read_lm_eval, _lm_eval_items),
    "lighteval": Reader(has_fields("lighteval", in_tables=True), _read_lighteval, _lighteval_items),
    "openai_evals": Reader(
        lambda source: (
            has_fields("openai_evals")(source)
            or isinstance(get_in(source.first, "spec", "completion_fns"), list)
        ),
        _read_openai_evals,
        _openai_evals_items,
    ),
    "promptfoo": Reader(
        lambda source: any("gradingResult" in result for result in _results(source)[:1]),
        _read_promptfoo,
        _promptfoo_items,
        lambda source: any({"response", "vars"} <= {*result} for result in _results(source)[:1]),
    ),
    "deepeval": Reader(
        lambda source: any(map(_metrics, _cases(source))),
        _read_deepeval,
        _deepeval_items,
        lambda source: any(
            "actual_output" in case or case.get("turns") for case in map(snake_case, _cases(source))
        ),
    ),
    "braintrust": Reader(
        lambda source: (
            next(iter(_rows([source.first])), {}).keys() >= {*TOOLS["braintrust"]["ratings"]}
        ),
        _read_braintrust,
        _braintrust_items,
    ),
}
