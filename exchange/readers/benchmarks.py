"""Readers of logs of evaluations by code or by a model.

They are of benchmarks (Inspect, lm-evaluation-harness, lighteval, OpenAI's evals) and of tools that
evaluate applications (promptfoo, DeepEval, Braintrust). Each has a section; `READERS`, at the end,
has its functions by name. In benchmarks with few options, the model under test is read as a rater,
and the gold answers are read as an adjudicator's labels.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

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
"""The raters' names: of gold answers, and of the model if a file does not name it."""
MOST_OPTIONS = 20  # different gold answers that are still read as labels and not as texts
_LONGEST_RUBRIC = 80  # characters of a rubric that is named after an assertion's text
_JUDGE = re.compile(r"judge|llm|gpt", re.I)
"""Names of metrics that a model gives."""


class _Answer(NamedTuple):
    """A model's answer to a unit for a rubric, and the gold answer; either may be None."""

    unit: str
    rubric: str
    answer: object
    gold: object


def _add_answers(rows: Rows, answers: Sequence[_Answer], model: str = MODEL) -> None:
    """Add answers as labels if the gold answers are few options; others are texts, left out."""
    options = {text_of(answer.gold) for answer in answers} - {""}
    are_few = 0 < len(options) <= min(MOST_OPTIONS, max(len(answers) // 2, 1))
    if not are_few or any(len(option) > LONGEST_LABEL for option in options):
        if answers:
            rows.leave_out(written("left_out.open_answers"), len(answers))
        return
    for unit, rubric, answer, gold in answers:
        rows.add(unit, GOLD, "adjudicator", gold, rubric)
        rows.add(unit, model, "model", answer, rubric)


def _add_metrics(rows: Rows, unit: str, metrics: Mapping[str, object], suffix: str = "") -> None:
    """Add the metrics that a model gave, each as a rubric of its name and the suffix."""
    for name, value in metrics.items():
        if _JUDGE.search(name):
            rows.add(unit, name, "model", value, f"{name}, {suffix}" if suffix else name)
        else:
            rows.leave_out(written("left_out.by_code"))


def _add_texts(
    rows: ItemRows, document_id: str, texts: list[str], prompt: object, gold: object, about: object
) -> None:
    """Add the texts that a model generated on a document as items of one cluster."""
    if not texts:
        rows.leave_out(written("left_out.likelihoods"))
    for number, text in enumerate(texts, 1):
        unit = f"{document_id}/{number}" if len(texts) > 1 else document_id
        rows.add(unit, texts_of(prompt, text, expected=gold), cluster=document_id, about=about)


# ---- Inspect ------------------------------------------------------------------------------------
# The logs of its evaluations, `.eval` and `.json`. A sample may run several times, in epochs. Only
# what is needed of a sample is kept in memory, as its events fill a log.
_INSPECT = TOOLS["inspect"]


def _is_inspect(source: Source) -> bool:
    if source.archive:
        return any(name in source.archive.names for name in _INSPECT["headers"])
    document = source.document
    return isinstance(get_in(document, "eval"), dict) and get_in(document, "samples") is not None


def _read_inspect(rows: Rows, source: Source) -> Export:
    """Read a scorer as a rater; if a score was edited, read scorers as rubrics, too."""
    fields = ("id", "epoch", "metadata", "scores")
    samples = [{name: sample.get(name) for name in fields} for sample in _inspect_samples(source)]
    has_epochs = _have_several_epochs(samples)
    is_edited = any(
        len(objects(get_in(score, "history"))) > 1
        for sample in samples
        for score in fields_in(sample["scores"]).values()
    )
    for sample in samples:
        scores = fields_in(sample["scores"])
        scores = {scorer: score for scorer, score in scores.items() if isinstance(score, dict)}
        name, epoch = text_of(sample["id"]), text_of(sample["epoch"])
        unit = f"{name}/{epoch}" if has_epochs else name
        rows.describe(unit, sample["metadata"])
        if not scores:
            rows.leave_out(written("left_out.no_score"))
        columns = {"cluster_id": name} if has_epochs else {}
        for scorer, score in scores.items():
            _add_score(rows, unit, scorer, score, columns, scorer if is_edited else "")
    return rows.export(written("exchange.inspect_edited" if is_edited else "exchange.inspect"))


def _inspect_items(rows: ItemRows, source: Source) -> None:
    """Read a sample of one epoch as an item, with the metrics by code as columns."""
    samples = []
    for sample in _inspect_samples(source):
        scores = fields_in(sample.get("scores"))
        scorers = [scorer for scorer in scores if scorer in _INSPECT["by_code"]]
        metrics = {scorer: get_in(scores[scorer], "value") for scorer in scorers}
        about = fields_in(sample.get("metadata")) | metrics
        ids = {name: sample.get(name) for name in ("id", "epoch")}
        model = text_of(get_in(sample, "output", "model"))
        samples.append((ids, model, about, _inspect_texts(sample)))
    has_epochs = _have_several_epochs(ids for ids, *_ in samples)
    header: object = source.document
    if archive := source.archive:
        file = next(name for name in _INSPECT["headers"] if name in archive.names)
        header = parse_json(archive.read(file), f"{source.name}, {file}")
    model_of_log = get_in(header, "eval", "model")
    for ids, model, about, texts in samples:
        name, epoch = text_of(ids["id"]), text_of(ids["epoch"])
        unit, columns = name, {"sample_id": name}
        if has_epochs:
            unit, columns = f"{name}/{epoch}", {"sample_id": name, "epoch": epoch}
        subject = model or model_of_log
        rows.add(unit, texts, subject=subject, cluster=name, ids=columns, about=about)


def _inspect_texts(sample: Record) -> Record:
    """Return the texts of a sample: a conversation if there are several turns. Inspect stores long
    texts in `attachments`, and refers to them where they belong.
    """
    attachments = fields_in(sample.get("attachments"))

    def resolve(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return attachments.get(value.removeprefix("attachment://"), value)

    prompt, target, conversation, output = (
        map_leaves(sample.get(name), resolve) for name in ("input", "target", "messages", "output")
    )
    reference = ", ".join(map(text_of, target)) if isinstance(target, list) else target
    messages = messages_in(conversation) or []
    turns = [message for message in messages if message["role"] in ("assistant", "tool")]
    if len(turns) > 1:
        return texts_of(None, messages, expected=reference)
    return texts_of(prompt, output, expected=reference)


def _have_several_epochs(samples: Iterable[Record]) -> bool:
    return any(text_of(sample["epoch"]) not in ("", "1") for sample in samples)


def _inspect_samples(source: Source) -> Iterator[Record]:
    """Yield the samples of a log, one at a time."""
    archive = source.archive
    if archive is None:
        yield from objects(get_in(source.document, "samples"))
        return
    for name in archive.names:
        if name.startswith("samples/"):
            sample = parse_json(archive.read(name), f"{source.name}, {name}")
            if isinstance(sample, dict):
                yield sample


def _add_score(
    rows: Rows, unit: str, scorer: str, score: Record, columns: Record, rubric: str
) -> None:
    """Add a score: its first value as the scorer's label, and each edit as its author's label."""
    metadata = score.get("metadata")
    raters = {text_of(record.get("name")): record for record in objects(get_in(metadata, "raters"))}
    history = objects(score.get("history"))
    value = history[0].get("value") if history else score.get("value")
    if raters and isinstance(value, dict):  # evenhand's writer: a value for each rater
        for name, label in value.items():
            _add_values(rows, unit, name, label, "", rating_columns(raters.get(name)) | columns)
        return
    stored_columns = rating_columns(metadata)
    if scorer in _INSPECT["by_code"] and "rater_kind" not in stored_columns:
        rows.leave_out(written("left_out.by_code"))
        return
    reason = {"unscored_reason": text_of(score.get("reason"))} if value in (None, "") else {}
    _add_values(rows, unit, scorer, value, rubric, reason | stored_columns | columns)
    for edit in history[1:]:
        author = text_of(get_in(edit, "provenance", "author"))
        if edit.get("value", "UNCHANGED") != "UNCHANGED":
            value = edit["value"]
        time = get_in(edit, "provenance", "timestamp")
        edit_columns = {**columns, "rater_kind": plain_kind(author), "created_at": time}
        _add_values(rows, unit, author, value, rubric, edit_columns)


def _add_values(rows: Rows, unit: str, rater: str, value: Any, rubric: str, cells: Record) -> None:
    """Add a rater's value with these cells by column; an object has values by rubric."""
    kind = cells.pop("rater_kind", "model" if rater in _INSPECT["by_model"] else "")
    rater, rubric = cells.pop("rater_id", rater), cells.pop("rubric", rubric)
    label_by_rubric = value if isinstance(value, dict) else {rubric: value}
    for name, label in label_by_rubric.items():
        rows.add(unit, rater, kind, label, name, **cells)


# ---- lm-evaluation-harness ----------------------------------------------------------------------
# The samples of a task (`--log_samples`, `samples_TASK_TIME.jsonl`).
def _read_lm_eval(rows: Rows, source: Source) -> None:
    """Read a model's choice as its label and the target as gold; each filter is a rubric."""
    answers = []
    samples = source.records()
    ids = [text_of(sample.get("doc_id")) for sample in samples]
    units = rows.distinct_units(ids, (sample.get("doc") for sample in samples))
    filters = [text_of(sample.get("filter")) for sample in samples]
    has_filters = len({*filters}) > 1
    for sample, unit, filter_name in zip(samples, units, filters, strict=True):
        rows.describe(unit, sample.get("doc"))
        rubric = filter_name if filter_name != "none" else ""
        answers.append(_Answer(unit, rubric, *_lm_eval_choice(sample)))
        names = sample.get("metrics")
        metric_names = map(text_of, names if isinstance(names, list) else ())
        metrics = {name: sample.get(name) for name in metric_names}
        _add_metrics(rows, unit, metrics, suffix=rubric if has_filters else "")
    _add_answers(rows, answers)


def _lm_eval_items(rows: ItemRows, source: Source) -> None:
    """Read a generated text as an item, with the metrics as columns."""
    sample_fields = TOOLS["lm_eval"]["sample_fields"]
    for sample in source.records():
        about = {name: sample[name] for name in sample if name not in sample_fields}
        doc_id, prompt = text_of(sample.get("doc_id")), from_json(_prompt(sample))
        _add_texts(rows, doc_id, _generated_texts(sample), prompt, sample.get("target"), about)


def _lm_eval_choice(sample: Record) -> tuple[object, object]:
    """Return the filtered answer and the target, or the likeliest option and the gold option."""
    responses, target = sample.get("filtered_resps"), sample.get("target")
    if _generated_texts(sample) or not isinstance(_first_in(responses), list):
        return _first_of_first(responses), target
    options, prompt = [], _prompt(sample)
    for arguments in objects([*fields_in(sample.get("arguments")).values()]):
        # A metric of mutual information asks for each option again, without the prompt.
        if arguments.get("arg_0") == prompt:
            options.append(text_of(arguments.get("arg_1")).strip())
    responses = (responses or [])[: len(options)]
    likelihoods = [_number(_first_in(response)) for response in responses]
    if not options or len(likelihoods) < len(options):
        return None, target
    answer = options[likelihoods.index(max(likelihoods))]
    return answer, _lm_eval_gold(sample, options, answer)


def _lm_eval_gold(sample: Record, options: Sequence[str], answer: str) -> str | None:
    """Return the option that the target names by text or index, or None. If it could name two, the
    accuracy shows whether the answer is the gold option.
    """
    target = text_of(sample.get("target"))
    candidates = {target.strip()} & {*options}
    if target.isdecimal() and int(target) < len(options):
        candidates.add(options[int(target)])
    accuracy = _number(sample.get("acc"))
    if len(candidates) > 1 and accuracy in (0, 1):
        is_right = accuracy == 1
        candidates = {option for option in candidates if (option == answer) == is_right}
    return candidates.pop() if len(candidates) == 1 else None


def _first_in(value: object) -> object:
    """Return the first value of a list; None for an empty list and other values."""
    return value[0] if isinstance(value, list) and value else None


def _first_of_first(value: object) -> object:
    """Return the first value of a list, or the first value of that if it is a list with values."""
    first = _first_in(value)
    return first[0] if isinstance(first, list) and first else first


def _number(value: object) -> float:
    """Return a value as a number; minus infinity if it is not a number."""
    try:
        return float(text_of(value))
    except ValueError:
        return float("-inf")


def _prompt(sample: Record) -> object:
    """Return the model's input; newer versions name the arguments of each request."""
    arguments = sample.get("arguments")
    if isinstance(arguments, dict):
        return get_in(next(iter(arguments.values()), None), "arg_0")
    return _first_of_first(arguments)


def _generated_texts(sample: Record) -> list[str]:
    """Return the texts that the model generated; likelihoods are no texts."""
    response = _first_in(sample.get("resps"))
    texts = response if isinstance(response, list) else [response]
    return [text for text in texts if text and type(text) is str]  # no `Numeral`


# ---- lighteval ----------------------------------------------------------------------------------
# The details of a task (`--save-details`, `details_TASK_TIME.parquet`).
_COLUMNS = TOOLS["lighteval"]["ratings"]


def _read_lighteval(rows: Rows, source: Source) -> None:
    """Read a model's choice as its label and the gold option as that of an adjudicator, by task."""
    answers = []
    for unit, record in _lighteval_records(source):
        task = text_of(get_in(record, "doc", "task_name"))
        answers.append(_Answer(unit, task, *_lighteval_choice(record)))
        _add_metrics(rows, unit, fields_in(record.get("metric")))
    _add_answers(rows, answers)


def _lighteval_items(rows: ItemRows, source: Source) -> None:
    """Read a generated text as an item, with the metrics as columns."""
    for unit, record in _lighteval_records(source):
        prompt = get_in(record, "model_response", "input") or get_in(record, "doc", "query")
        _, gold = _lighteval_choice(record)
        _add_texts(rows, unit, _lighteval_texts(record), prompt, gold, record.get("metric"))


def _lighteval_records(source: Source) -> list[tuple[str, Record]]:
    """Return the id of each document, or its position if it has none, with its details."""
    records = source.records(_COLUMNS if source.parquet_columns else ())
    ids = [text_of(get_in(record, "doc", "id")) for record in records]
    return [(ids[index] or str(index), record) for index, record in enumerate(records)]


def _lighteval_texts(record: Record) -> list[str]:
    """Return the texts that the model generated, without what post-processing removed."""
    answers = get_in(record, "model_response", "text_post_processed")
    answers = answers or get_in(record, "model_response", "text")
    return [text for text in map(text_of, answers if isinstance(answers, list) else ()) if text]


def _lighteval_choice(record: Record) -> tuple[object, object]:
    """Return the likeliest option or the generated text, and the gold option or options."""
    choices = get_in(record, "doc", "choices")
    options = [text_of(choice).strip() for choice in choices] if isinstance(choices, list) else []
    gold_index = get_in(record, "doc", "gold_index")
    indices = map(text_of, gold_index if isinstance(gold_index, list) else [gold_index])
    positions = [int(index) for index in indices if index.isdecimal()]
    gold = [options[position] for position in positions if position < len(options)]
    logprobs = get_in(record, "model_response", "logprobs")
    likelihoods = [float(text_of(logprob) or "-inf") for logprob in logprobs or ()]
    texts = _lighteval_texts(record)
    answer: object = texts[0].strip() if texts else None
    if len(likelihoods) == len(options) > 1:
        answer = options[likelihoods.index(max(likelihoods))]
    return answer, gold[0] if len(gold) == 1 else gold or None


# ---- OpenAI's evals -----------------------------------------------------------------------------
# The log of a run (`oaieval`, a line for each event).


def _read_openai_evals(rows: Rows, source: Source) -> None:
    """Read a pick as a label and the expected pick as gold; a graded choice is a grader's label."""
    records = source.records()
    models, arguments = _evals_run(records)
    rubric = text_of(arguments.get("modelgraded_spec")) or "graded"
    grader = first_text(arguments.get("eval_completion_fn"), *models[1:][-1:]) or rubric
    answers = []
    for event in records:
        unit, data = text_of(event.get("sample_id")), event.get("data")
        if event.get("type") == "match" and isinstance(data, dict):
            answers.append(_Answer(unit, "", data.get("picked"), data.get("expected")))
        elif event.get("type") == "metrics" and isinstance(data, dict):
            if "choice" in data:
                rows.add(unit, grader, "model", data["choice"], rubric)
            else:
                rows.leave_out(written("left_out.by_code"), len(data))
    _add_answers(rows, answers, first_text(*models[:1]) or MODEL)


def _openai_evals_items(rows: ItemRows, source: Source) -> None:
    """Read the first sampled text of a sample as an item; later texts are a grader's."""
    records = source.records()
    gold_by_unit: Record = {}
    first_samplings: Record = {}
    for event in records:
        unit, data = text_of(event.get("sample_id")), event.get("data")
        if event.get("type") in ("match", "metrics"):
            gold_by_unit[unit] = get_in(data, "expected") or get_in(data, "ideal")
        elif event.get("type") == "sampling":
            first_samplings.setdefault(unit, data)
    models, _ = _evals_run(records)
    for unit, data in first_samplings.items():
        prompt, output = from_json(get_in(data, "prompt")), get_in(data, "sampled")
        texts = texts_of(prompt, output, expected=gold_by_unit.get(unit))
        rows.add(unit, texts, subject=first_text(*models[:1]))


def _evals_run(records: list[Record]) -> tuple[list[object], Record]:
    """Return the models of a run, of several last the grader, and the arguments of the eval."""
    spec = next((record["spec"] for record in records if "spec" in record), None)
    models = get_in(spec, "completion_fns")
    arguments = get_in(spec, "run_config", "eval_spec", "args")
    return models if isinstance(models, list) else [], fields_in(arguments)


# ---- promptfoo ----------------------------------------------------------------------------------
# The results of `promptfoo eval -o FILE.json` or `promptfoo export`.
_PROMPTFOO = TOOLS["promptfoo"]
_ERROR_BEGINNINGS = tuple(_PROMPTFOO["error_beginnings"])
"""How a reason begins if the grader's reply could not be read, in older versions."""


def _read_promptfoo(rows: Rows, source: Source) -> None:
    """Read people's ratings of an output, and the assertions that each model answered."""
    results = _promptfoo_results(source)
    # A test that was repeated has other variables or another output under the same id.
    outputs = [[result.get("vars"), get_in(result, "response", "output")] for result in results]
    units = rows.distinct_units([_output_id(result) for result in results], outputs)
    for result, unit in zip(results, units, strict=True):
        rows.describe(unit, result.get("vars"))
        grades_by_grader: dict[str, list[Record]] = {}
        for grade in objects(get_in(result, "gradingResult", "componentResults")):
            assertion_type = text_of(get_in(grade, "assertion", "type")).removeprefix("not-")
            if assertion_type == "human":
                author = text_of(get_in(grade, "assertion", "author"))  # only evenhand adds it
                rows.add(unit, author or "human", "human", grade.get("pass"))
            elif assertion_type in _PROMPTFOO["by_model"]:
                # promptfoo's default model is not named: it is called after the assertion.
                provider = get_in(grade, "assertion", "provider")
                grader = first_text(provider, get_in(provider, "id"), assertion_type)
                grades_by_grader.setdefault(grader, []).append(grade)
            else:
                rows.leave_out(written("left_out.by_code"))
        for grader, grades in grades_by_grader.items():
            _add_grades(rows, unit, grader, grades)


def _promptfoo_items(rows: ItemRows, source: Source) -> None:
    """Read an output as an item; those of one test are a cluster."""
    for result in _promptfoo_results(source):
        variables = result.get("vars")
        prompt = from_json(get_in(result, "prompt", "raw")) or variables
        inputs = texts_of({"prompt": prompt} | fields_in(variables), None)
        texts = {name: inputs[name] for name in inputs if name in ("context", "reference")}
        texts |= texts_of(prompt, get_in(result, "response", "output"))
        provider, test = result.get("provider"), result.get("testIdx")
        subject = text_of(get_in(provider, "label")) or get_in(provider, "id") or provider
        rows.add(_output_id(result), texts, subject=subject, cluster=test, about=variables)


def _output_id(result: Record) -> str:
    """Return the indices of the test and the prompt; the result's id if it has none."""
    indices = "-".join(text_of(result.get(name)) for name in ("testIdx", "promptIdx"))
    return indices if indices != "-" else text_of(result.get("id"))


def _add_grades(rows: Rows, unit: str, grader: str, grades: list[Record]) -> None:
    """Add a grader's label: True if all assertions passed. Each of several is a rubric, too."""
    errors = [grade for grade in grades if _is_error(grade)]
    passed = all(grade.get("pass") is True for grade in grades if grade not in errors)
    label, reason = (None, "error") if errors and passed else (passed, "")
    rows.add(unit, grader, "model", label, unscored_reason=reason)
    for grade in grades if len(grades) > 1 else ():
        assertion = grade.get("assertion")
        name = text_of(get_in(assertion, "metric") or get_in(assertion, "value"))
        rubric = name[:_LONGEST_RUBRIC]
        label, reason = (None, "error") if grade in errors else (grade.get("pass"), "")
        rows.add(unit, grader, "model", label, rubric, unscored_reason=reason)


def _is_error(grade: Record) -> bool:
    """Return True if the grader's reply could not be read."""
    reason = text_of(grade.get("reason"))
    is_marked = get_in(grade, "metadata", "graderError") is True
    return is_marked or reason.startswith(_ERROR_BEGINNINGS)


def _promptfoo_results(source: Source) -> list[Record]:
    document: Any = source.document
    for path in (("results", "results"), ("results",)):
        if results := objects(get_in(document, *path)):
            return results
    return source.records() if "gradingResult" in source.first_record else []


# ---- DeepEval -----------------------------------------------------------------------------------
# What `evaluate` returns, as JSON, and the test run that it leaves in `.deepeval`.
def _cases(source: Source) -> list[Record]:
    paths = TOOLS["deepeval"]["case_paths"]
    return [case for path in paths for case in objects(get_in(source.document, *path.split(".")))]


def _read_deepeval(rows: Rows, source: Source) -> None:
    """Read the success of a case as the label of the model that evaluates a metric, the rubric."""
    cases = _cases(source)
    fields = ("input", "actual_output", "turns")  # cases with the same name differ in them
    contents = [[case.get(field) for field in fields] for case in map(snake_case, cases)]
    units = rows.distinct_units([_case_name(case) for case in cases], contents)
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
    """Read a test case as an item, with its expected output and its (retrieval) context."""
    for case in map(snake_case, _cases(source)):
        output = case.get("turns") or case.get("actual_output")
        context = case.get("retrieval_context") or case.get("context")
        expected = case.get("expected_output") or case.get("expected_outcome")
        texts = texts_of(case.get("input"), output, context=context, expected=expected)
        about = case.get("metadata") or case.get("additional_metadata")
        rows.add(_case_name(case), texts, about=about)


def _case_name(case: Record) -> str:
    return text_of(case.get("name")) or text_of(case.get("index"))


def _metrics(case: Record) -> list[Record]:
    return objects(case.get("metrics_data") or case.get("metricsData"))


# ---- Braintrust ---------------------------------------------------------------------------------
# The rows of an experiment or of logs, as its page, its API and `fetch` give them.


def _is_braintrust(source: Source) -> bool:
    first = next(iter(_braintrust_rows([source.first_record])), {})
    return first.keys() >= {*TOOLS["braintrust"]["ratings"]}


def _read_braintrust(rows: Rows, source: Source) -> Export:
    """Read a row as a unit, and each score as a rater, as Braintrust does not name raters. A score
    that was changed on the page is a person's. A scorer whose span called a model is a model; a
    scorer that called none is code, which is left out.
    """
    records = _braintrust_rows(source.records())
    kinds = _scorer_kinds(records)
    for record in filter(_is_root, records):
        log = [part for part in objects(record.get("audit_data")) if part.get("source") == "app"]
        changes = [get_in(part, "audit_data", "path") for part in log]  # ["scores", "NAME"]
        by_people = {text_of(path[1]) for path in changes if isinstance(path, list) and path[1:]}
        for name, value in fields_in(record.get("scores")).items():
            kind = "human" if name in by_people else kinds.get(name, "")
            if kind == "code":
                rows.leave_out(written("left_out.by_code"))
            else:
                rows.add(_row_id(record), name, kind, value, created_at=record.get("created"))
        rows.describe(_row_id(record), from_json(record.get("metadata")))
    return replace(rows.export(written("exchange.braintrust")), by_score=True)


def _braintrust_items(rows: ItemRows, source: Source) -> None:
    """Read a row with an output as an item."""
    for record in filter(_is_root, _braintrust_rows(source.records())):
        inputs, output, expected, metadata = (
            from_json(record.get(name)) for name in ("input", "output", "expected", "metadata")
        )
        texts = texts_of(inputs, output, expected=expected)
        subject, ids = first_text(get_in(metadata, "model")), {"span_id": record.get("span_id")}
        rows.add(_row_id(record), texts, subject=subject, ids=ids, about=metadata)


def _braintrust_rows(records: list[Record]) -> list[Record]:
    return unpaged(records, ("data", "events", "rows"), "root_span_id")


def _row_id(record: Record) -> str:
    return first_text(record.get("id"), record.get("span_id"))


def _is_root(record: Record) -> bool:
    span, root = text_of(record.get("span_id")), text_of(record.get("root_span_id"))
    return record.get("is_root") is True or span == root


def _scorer_kinds(records: list[Record]) -> dict[str, str]:
    """Return the kind of each scorer that has a span: "model" if it called a model, else "code"."""
    children: dict[str, list[Record]] = defaultdict(list)  # by the id of the parent's span
    for record in records:
        parents = record.get("span_parents")
        for parent in parents if isinstance(parents, list) else ():
            children[text_of(parent)].append(record)
    kinds: dict[str, str] = {}
    for record in records:
        scores = record.get("scores")
        if get_in(record, "span_attributes", "type") != "score" or not isinstance(scores, dict):
            continue
        is_model = _calls_model(text_of(record.get("span_id")), children)
        for name in scores:
            kinds[name] = "model" if is_model or kinds.get(name) == "model" else "code"
    return kinds


def _calls_model(span_id: str, children: Mapping[str, list[Record]]) -> bool:
    """Return True if a span below this one, at any depth, called a model."""
    visited, unvisited = {span_id}, [span_id]
    while unvisited:
        for child in children.get(unvisited.pop(), ()):
            if get_in(child, "span_attributes", "type") == "llm":
                return True
            if (child_id := text_of(child.get("span_id"))) not in visited:
                visited.add(child_id)
                unvisited.append(child_id)
    return False


READERS = {
    "inspect": Reader(_is_inspect, _read_inspect, _inspect_items),
    "lm_eval": Reader(has_fields("lm_eval"), _read_lm_eval, _lm_eval_items),
    "lighteval": Reader(has_fields("lighteval", parquet=True), _read_lighteval, _lighteval_items),
    "openai_evals": Reader(
        lambda source: (
            has_fields("openai_evals")(source)
            or isinstance(get_in(source.first_record, "spec", "completion_fns"), list)
        ),
        _read_openai_evals,
        _openai_evals_items,
    ),
    "promptfoo": Reader(
        lambda source: any("gradingResult" in result for result in _promptfoo_results(source)[:1]),
        _read_promptfoo,
        _promptfoo_items,
        lambda source: any(
            {"response", "vars"} <= {*result} for result in _promptfoo_results(source)[:1]
        ),
    ),
    "deepeval": Reader(
        lambda source: any(map(_metrics, _cases(source))),
        _read_deepeval,
        _deepeval_items,
        lambda source: any(
            "actual_output" in case or case.get("turns") for case in map(snake_case, _cases(source))
        ),
    ),
    "braintrust": Reader(_is_braintrust, _read_braintrust, _braintrust_items),
}
