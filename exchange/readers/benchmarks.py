"""Readers of logs of evaluations by code or by a model: the benchmarks Inspect and
lm-evaluation-harness, and promptfoo, DeepEval and Braintrust, which evaluate applications. Each has
a section, with functions that recognise its files (`_is_...`), read their ratings (`_read_...`) and
read their items (`..._items`); `READERS`, at the end, has them by name. They fill `Rows`, to which
`add` adds a rating and `describe` facts about a unit; `leave_out` counts what is left out, and
`units` names units by their ids, with a hash of the contents where an id has several. `texts_of`
finds the prompt, context, reference and response in an input and an output.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

from evenhand.exchange.readers import source as src
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
from evenhand.exchange.readers.source import Record, Source, get_in, objects, text_of, texts_of
from evenhand.texts import written

# ---- Inspect ------------------------------------------------------------------------------------
# The logs of its evaluations, `.eval` (a ZIP archive with a file for each sample) and `.json`:
#
#   {"eval": {"model": "m"}, "samples": [{"id": 7, "epoch": 1, "input": "Why?", "output": {...},
#     "scores": {"model_graded_qa": {"value": "I", "history": [
#       {"value": "C"}, {"value": "I", "provenance": {"author": "ann"}}]}}}]}
#
# An epoch is a repetition of a sample. The history of an edited score begins with the scorer's own
# one. The events of samples, most of a log, are not kept in memory.

_INSPECT = src.TOOLS["inspect"]


def _is_inspect(source: Source) -> bool:
    """Return True for a log of an evaluation with samples."""
    if source.archive:
        return any(name in source.archive.names for name in _INSPECT["headers"])
    document = source.document
    return isinstance(get_in(document, "eval"), dict) and get_in(document, "samples") is not None


def _read_inspect(rows: Rows, source: Source) -> Export:
    """Read scorers as raters, and editors, if scores were edited: scorers are then rubrics, too."""
    samples = []
    for sample in _inspect_samples(source):
        all_scores = src.fields_in(sample.get("scores"))
        scores = {name: score for name, score in all_scores.items() if isinstance(score, dict)}
        samples.append(({key: sample.get(key) for key in ("id", "epoch", "metadata")}, scores))
    has_epochs = any(text_of(sample.get("epoch")) not in ("", "1") for sample, _ in samples)
    every_score = [score for _, scores in samples for score in scores.values()]
    is_edited = any(len(objects(score.get("history"))) > 1 for score in every_score)
    for sample, scores in samples:
        name, epoch = text_of(sample.get("id")), text_of(sample.get("epoch"))
        unit = f"{name}/{epoch}" if has_epochs else name
        rows.describe(unit, sample.get("metadata"))
        if not scores:
            rows.leave_out(written("left_out.no_score"))
        columns = {"cluster_id": name} if has_epochs else {}
        for scorer, score in scores.items():
            _add_score(rows, unit, scorer, score, columns, rubric=scorer if is_edited else "")
    return rows.export(written("exchange.inspect_edited" if is_edited else "exchange.inspect"))


def _inspect_items(rows: ItemRows, source: Source) -> None:
    """Read a sample of one epoch as an item, with the conversation if it has one."""
    samples, has_epochs = [], False
    for sample in _inspect_samples(source):
        scores = src.fields_in(sample.get("scores"))
        code_scorers = [scorer for scorer in scores if scorer in _INSPECT["by_code"]]
        by_code = {scorer: get_in(scores[scorer], "value") for scorer in code_scorers}
        about = src.fields_in(sample.get("metadata")) | by_code
        name, epoch = text_of(sample.get("id")), text_of(sample.get("epoch"))
        model = text_of(get_in(sample, "output", "model"))
        samples.append((name, epoch, model, about, _inspect_texts(sample)))
        has_epochs |= epoch not in ("", "1")
    header: object = source.document
    if archive := source.archive:
        file = next(value for value in _INSPECT["headers"] if value in archive.names)
        header = src.parse_json(archive.read(file), f"{source.name}, {file}")
    for name, epoch, model, about, texts in samples:
        unit = f"{name}/{epoch}" if has_epochs else name
        columns = {"sample_id": name} | ({"epoch": epoch} if has_epochs else {})
        subject = model or get_in(header, "eval", "model")
        rows.add(unit, texts, subject=subject, cluster=name, ids=columns, about=about)


def _inspect_texts(sample: Record) -> Record:
    """Return the texts of a sample; Inspect stores long ones apart, as attachments."""
    attachments = src.fields_in(sample.get("attachments"))

    def resolved(leaf: Any) -> Any:
        is_text = isinstance(leaf, str)
        return attachments.get(leaf.removeprefix("attachment://"), leaf) if is_text else leaf

    prompt, target, conversation, output = (
        src.map_leaves(sample.get(name), resolved)
        for name in ("input", "target", "messages", "output")
    )
    target = ", ".join(map(text_of, target)) if isinstance(target, list) else target
    messages = src.messages_in(conversation) or []
    if sum(message["role"] in ("assistant", "tool") for message in messages) > 1:
        return texts_of(None, messages, expected=target)  # a conversation
    return texts_of(prompt, output, expected=target)


def _inspect_samples(source: Source) -> Iterator[Record]:
    """Yield all samples of a log, one at a time."""
    if (archive := source.archive) is None:
        yield from objects(get_in(source.document, "samples"))
        return
    for name in archive.names:
        if name.startswith("samples/"):
            sample = src.parse_json(archive.read(name), f"{source.name}, {name}")
            if isinstance(sample, dict):
                yield sample


def _add_score(
    rows: Rows, unit: str, scorer: str, score: Record, cells: Record, rubric: str
) -> None:
    """Add a score's first value as the scorer's and each edit as its author's, with these cells.
    evenhand's own export has one score, whose value is an object of raters' labels.
    """
    metadata, history = score.get("metadata"), objects(score.get("history"))
    value = history[0].get("value") if history else score.get("value")
    raters = {text_of(record.get("name")): record for record in objects(get_in(metadata, "raters"))}
    if raters and isinstance(value, dict):
        for name, label in value.items():
            _add_values(rows, unit, name, label, "", rating_columns(raters.get(name)) | cells)
        return
    from_metadata = rating_columns(metadata)
    if scorer in _INSPECT["by_code"] and "rater_kind" not in from_metadata:
        rows.leave_out(written("left_out.by_code"))
        return
    unscored = {"unscored_reason": text_of(score.get("reason"))} if value in (None, "") else {}
    _add_values(rows, unit, scorer, value, rubric, {**unscored, **from_metadata, **cells})
    for edit in history[1:]:
        if edit.get("value", "UNCHANGED") != "UNCHANGED":  # else the value before it holds
            value = edit["value"]
        author = text_of(get_in(edit, "provenance", "author"))
        time = get_in(edit, "provenance", "timestamp")
        edit_cells = {**cells, "rater_kind": plain_kind(author), "created_at": time}
        _add_values(rows, unit, author, value, rubric, edit_cells)


def _add_values(rows: Rows, unit: str, rater: str, value: Any, rubric: str, cells: Record) -> None:
    """Add a rater's value with these cells of its rating; an object has values by rubric."""
    kind = cells.pop("rater_kind", "model" if rater in _INSPECT["by_model"] else "")
    rater, rubric = cells.pop("rater_id", rater), cells.pop("rubric", rubric)
    labels = value if isinstance(value, dict) else {rubric: value}
    for name, label in labels.items():
        rows.add(unit, rater, kind, label, rubric=name, **cells)


# ---- lm-evaluation-harness ----------------------------------------------------------------------
# The samples of a task (`--log_samples`, `samples_TASK_TIME.jsonl`), one a line:
#
#   {"doc_id": 0, "doc": {"question": "Is it fair?"}, "target": "yes", "filter": "none",
#    "arguments": {"gen_args_0": {"arg_0": "Is it fair?", "arg_1": " yes"}, ...},
#    "resps": [[["-0.5", "True"]], [["-1.5", "False"]]], "metrics": ["acc"], "acc": 1}
#
# Each request (`arguments`) has a response: here an option's likelihood, and whether it is the
# likeliest text; in other tasks a text. A filter, such as a pattern that finds the answer in it,
# gives the `filtered_resps`. The model under test is a rater if it chooses among few options; the
# gold answers are then an adjudicator's labels.

_GOLD, _MODEL = "gold", "model"  # the raters, as a file does not name the model
_MOST_OPTIONS = 20
_JUDGE = re.compile(r"judge|llm|gpt", re.I)  # names of metrics that a model gives


def _read_lm_eval(rows: Rows, source: Source) -> None:
    """Read a model's choice as its label and the target as gold; each filter is a rubric."""
    samples = source.records()
    units = rows.units([(text_of(sample.get("doc_id")), sample.get("doc")) for sample in samples])
    filters = [text_of(sample.get("filter")) for sample in samples]
    rubrics = [filter_name if filter_name != "none" else "" for filter_name in filters]
    for sample, unit, rubric in zip(samples, units, rubrics, strict=True):
        rows.describe(unit, sample.get("doc"))
        metrics = sample.get("metrics")
        of_filter = f", {rubric}" if rubric and len({*filters}) > 1 else ""
        for name in dict.fromkeys(map(text_of, metrics if isinstance(metrics, list) else ())):
            if _JUDGE.search(name):
                rows.add(unit, name, "model", sample.get(name), rubric=name + of_filter)
            else:
                rows.leave_out(written("left_out.by_code"))
    choices = list(map(_lm_eval_choice, samples))
    options = {text_of(gold) for _, gold in choices} - {""}
    # With hardly more choices than options, the gold answers are open: a text for each question.
    has_few_options = 0 < len(options) <= min(_MOST_OPTIONS, max(len(choices) // 2, 1))
    if not has_few_options or any(len(option) > LONGEST_LABEL for option in options):
        if choices:
            rows.leave_out(written("left_out.open_answers"), len(choices))
        return
    for unit, rubric, (answer, gold) in zip(units, rubrics, choices, strict=True):
        rows.add(unit, _GOLD, "adjudicator", gold, rubric=rubric)
        rows.add(unit, _MODEL, "model", answer, rubric=rubric)


def _lm_eval_items(rows: ItemRows, source: Source) -> None:
    """Read a generated text as an item, with the metrics as columns; a document is a cluster."""
    for sample in source.records():
        about = {name: sample[name] for name in sample if name not in src.TOOLS["lm_eval"]["own"]}
        doc, prompt = text_of(sample.get("doc_id")), src.from_json(_prompt(sample))
        if not (responses := _generated(sample)):
            rows.leave_out(written("left_out.likelihoods"))
        for number, response in enumerate(responses, start=1):
            texts = texts_of(prompt, response, expected=sample.get("target"))
            unit = f"{doc}/{number}" if len(responses) > 1 else doc
            rows.add(unit, texts, cluster=doc, about=about)


def _lm_eval_choice(sample: Record) -> tuple[object, object]:
    """Return the likeliest option, or the filtered answer, and the gold one; None if not known.
    Examples of `filtered_resps`: options [["-0.5", "True"], ["-1.5", "False"]], an answer ["yes"],
    and answers of several draws [["yes", "no"]], of which the first counts.
    """
    responses, target = sample.get("filtered_resps"), sample.get("target")
    first = _first(responses)
    if not isinstance(first, list):
        return first, target
    if _generated(sample):
        return (first[0] if first else first), target
    prompt, requests = _prompt(sample), objects([*src.fields_in(sample.get("arguments")).values()])
    # Where a metric is mutual information, there are further requests, which lack the prompt.
    requests = [request for request in requests if request.get("arg_0") == prompt]
    options = [text_of(request.get("arg_1")).strip() for request in requests]
    likelihoods = [_number(_first(response)) for response in (responses or [])[: len(options)]]
    if not options or len(likelihoods) < len(options):
        return None, target
    answer = options[likelihoods.index(max(likelihoods))]
    # The target is the gold option's text or its number; if it may be either, the accuracy tells.
    target_text = text_of(target)
    gold = {target_text.strip()} & {*options}
    if target_text.isdecimal() and int(target_text) < len(options):
        gold.add(options[int(target_text)])
    if len(gold) > 1 and (accuracy := _number(sample.get("acc"))) in (0, 1):
        gold = {option for option in gold if (option == answer) == bool(accuracy)}
    return answer, gold.pop() if len(gold) == 1 else None


def _first(value: object) -> object:
    """Return the first value of a list; None for an empty list and other values."""
    return value[0] if isinstance(value, list) and value else None


def _number(value: object) -> float:
    """Return a value as a number; minus infinity, the least likelihood, if it is none."""
    with suppress(ValueError):
        return float(text_of(value))
    return float("-inf")


def _prompt(sample: Record) -> object:
    """Return the model's input; newer versions name the arguments of each request (as above)."""
    requests = sample.get("arguments")
    if isinstance(requests, dict):
        return get_in(next(iter(requests.values()), None), "arg_0")
    request = _first(requests)
    return _first(request) if request and isinstance(request, list) else request


def _generated(sample: Record) -> list[str]:
    """Return the texts that the model generated; none if it gave likelihoods."""
    first = _first(sample.get("resps"))  # all texts of the first request
    texts = first if isinstance(first, list) else [first]
    return [text for text in texts if type(text) is str and text]  # `Numeral` is a kind of str


# ---- promptfoo ----------------------------------------------------------------------------------
# The results of `promptfoo eval -o FILE.json` or `promptfoo export`. Each has an output and, as
# `componentResults`, whether it passed the assertions of its test.

_PROMPTFOO = src.TOOLS["promptfoo"]
_NOT_UNDERSTOOD = tuple(_PROMPTFOO["not_understood"])
"""Beginnings of the reason that older versions give for an answer that they could not read."""


def _read_promptfoo(rows: Rows, source: Source) -> None:
    """Read ratings of whole outputs; if a model checks several assertions, each is a rubric too."""
    results = _results(source)
    # The variables and the output differ where a test was repeated.
    outputs = [[result.get("vars"), get_in(result, "response", "output")] for result in results]
    units = rows.units(list(zip(map(_output_unit, results), outputs, strict=True)))
    for result, unit in zip(results, units, strict=True):
        rows.describe(unit, result.get("vars"))
        parts_by_grader: dict[str, list[Record]] = {}
        for part in objects(get_in(result, "gradingResult", "componentResults")):
            form = text_of(get_in(part, "assertion", "type")).removeprefix("not-")
            if form == "human":
                author = text_of(get_in(part, "assertion", "author"))  # promptfoo names nobody
                rows.add(unit, author or "human", "human", part.get("pass"))
            elif form in _PROMPTFOO["by_model"]:
                provider = get_in(part, "assertion", "provider")
                grader = src.first_text(provider, get_in(provider, "id"), form)  # default: the form
                parts_by_grader.setdefault(grader, []).append(part)
            else:
                rows.leave_out(written("left_out.by_code"))
        for grader, parts in parts_by_grader.items():
            _add_grades(rows, unit, grader, parts)


def _promptfoo_items(rows: ItemRows, source: Source) -> None:
    """Read an output as an item; those of one test are a cluster."""
    for result in _results(source):
        values = result.get("vars")
        prompt = src.from_json(get_in(result, "prompt", "raw")) or values
        # The context and the reference are variables of the test.
        inputs = texts_of({"prompt": prompt} | src.fields_in(values), None)
        texts = {name: inputs[name] for name in inputs if name in ("context", "reference")}
        texts |= texts_of(prompt, get_in(result, "response", "output"))
        provider, test = result.get("provider"), result.get("testIdx")
        subject = text_of(get_in(provider, "label")) or get_in(provider, "id") or provider
        rows.add(_output_unit(result), texts, subject=subject, cluster=test, about=values)


def _output_unit(result: Record) -> str:
    """Return the id of an output, by its test and prompt."""
    unit = "-".join(text_of(result.get(name)) for name in ("testIdx", "promptIdx"))
    return unit if unit != "-" else text_of(result.get("id"))


def _add_grades(rows: Rows, unit: str, grader: str, parts: list[Record]) -> None:
    """Add a label, true if all assertions passed; if they are several, also a label for each."""
    are_unread = [
        get_in(part, "metadata", "graderError") is True
        or text_of(part.get("reason")).startswith(_NOT_UNDERSTOOD)
        for part in parts
    ]
    grades = list(zip(parts, are_unread, strict=True))
    passed = all(part.get("pass") is True for part, is_unread in grades if not is_unread)
    is_undecided = any(are_unread) and passed  # one that could not be read may have failed
    label, reason = (None, "error") if is_undecided else (passed, "")
    rows.add(unit, grader, "model", label, unscored_reason=reason)
    for part, is_unread in grades if len(parts) > 1 else ():  # a rubric for each assertion
        metric = text_of(get_in(part, "assertion", "metric") or get_in(part, "assertion", "value"))
        if len(metric) > 80:  # others may begin in the same way
            metric = f"{metric[:80]}#{sha256(metric.encode()).hexdigest()[:6]}"
        label, reason = (None, "error") if is_unread else (part.get("pass"), "")
        rows.add(unit, grader, "model", label, rubric=metric, unscored_reason=reason)


def _results(source: Source) -> list[Record]:
    """Return the results in a file, as a version of promptfoo writes them, or one on each line."""
    for path in (("results", "results"), ("results",)):
        if results := objects(get_in(source.document, *path)):
            return results
    return source.records() if "gradingResult" in source.first else []


# ---- DeepEval -----------------------------------------------------------------------------------
# What `evaluate` returns, as JSON, and the test run that it leaves in `.deepeval`.
def _cases(source: Source) -> list[Record]:
    """Return the test cases of a file, with their fields in snake case."""
    lists = [get_in(source.document, *path.split(".")) for path in src.TOOLS["deepeval"]["cases"]]
    return [src.snake_case(case) for cases in lists for case in objects(cases)]


def _read_deepeval(rows: Rows, source: Source) -> None:
    """Read the success of a case as the label of the model that evaluates a metric, the rubric."""
    cases = _cases(source)
    names = ("input", "actual_output", "turns")  # they tell cases of one name apart
    contents = [[case.get(name) for name in names] for case in cases]
    units = rows.units(list(zip(map(_case_name, cases), contents, strict=True)))
    for case, unit in zip(cases, units, strict=True):
        rows.describe(unit, {"input": case.get("input")})
        for metric in objects(case.get("metrics_data")):
            model = text_of(metric.get("evaluationModel") or metric.get("evaluation_model"))
            if not model:
                rows.leave_out(written("left_out.by_code"))
                continue
            error = "error" if metric.get("error") else ""
            name = text_of(metric.get("name"))
            rows.add(unit, model, "model", metric.get("success"), name, unscored_reason=error)


def _deepeval_items(rows: ItemRows, source: Source) -> None:
    """Read a test case as an item, with its expected output and its (retrieval) context."""
    for case in _cases(source):
        output = case.get("turns") or case.get("actual_output")
        context = case.get("retrieval_context") or case.get("context")
        expected = case.get("expected_output") or case.get("expected_outcome")
        texts = texts_of(case.get("input"), output, context=context, expected=expected)
        about = case.get("metadata") or case.get("additional_metadata")
        rows.add(_case_name(case), texts, about=about)


def _case_name(case: Record) -> str:
    """Return the name of a test case, or else its number."""
    return text_of(case.get("name")) or text_of(case.get("index"))


# ---- Braintrust ---------------------------------------------------------------------------------
# The rows of an experiment or of logs, as its page, its API and `fetch` give them. Each is a span:
# the root, which is rated, and below it those of its scorers and of models that they called.
def _is_braintrust(source: Source) -> bool:
    """Return True for rows of an experiment or of logs."""
    first = next(iter(_braintrust_rows([source.first])), {})
    return first.keys() >= {*src.TOOLS["braintrust"]["ratings"]}


def _read_braintrust(rows: Rows, source: Source) -> Export:
    """Read a row as a unit and each score as a rater of the same question, as Braintrust names
    scores and not raters (`by_score`). A score that was changed on the page is a person's; a scorer
    whose span called a model is a model, and one that called none is code, which is left out.
    """
    records = _braintrust_rows(source.records())
    kinds = _scorer_kinds(records)
    for record in filter(_is_root, records):
        log = objects(record.get("audit_data"))
        changes = [entry for entry in log if entry.get("source") == "app"]
        paths = [get_in(change, "audit_data", "path") for change in changes]  # ["scores", NAME]
        people = {text_of(path[1]) for path in paths if isinstance(path, list) and len(path) > 1}
        unit = src.first_text(record.get("id"), record.get("span_id"))
        for name, value in src.fields_in(record.get("scores")).items():
            kind = "human" if name in people else kinds.get(name, "")
            if kind == "code":
                rows.leave_out(written("left_out.by_code"))
            else:
                rows.add(unit, name, kind, value, created_at=record.get("created"))
        rows.describe(unit, src.from_json(record.get("metadata")))
    return replace(rows.export(written("exchange.braintrust")), by_score=True)


def _braintrust_items(rows: ItemRows, source: Source) -> None:
    """Read a row with an output as an item."""
    for record in filter(_is_root, _braintrust_rows(source.records())):
        inputs, output, expected, facts = (
            src.from_json(record.get(name)) for name in ("input", "output", "expected", "metadata")
        )
        texts, ids = texts_of(inputs, output, expected=expected), {"span_id": record.get("span_id")}
        unit = src.first_text(record.get("id"), record.get("span_id"))
        rows.add(unit, texts, subject=src.first_text(get_in(facts, "model")), ids=ids, about=facts)


def _braintrust_rows(records: list[Record]) -> list[Record]:
    """Return all rows, also those of pages, as the API gives them."""
    return src.unpaged(records, ("data", "events", "rows"), record_field="root_span_id")


def _is_root(record: Record) -> bool:
    """Return True for a root span, which is rated."""
    span, root = text_of(record.get("span_id")), text_of(record.get("root_span_id"))
    return record.get("is_root") is True or span == root


def _scorer_kinds(records: list[Record]) -> dict[str, str]:
    """Return the kind of each scorer with a span: "model" if a span below called one, or "code"."""
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
        is_model = _calls_model(text_of(record.get("span_id")), below)
        for name in scores:
            kinds[name] = "model" if is_model or kinds.get(name) == "model" else "code"
    return kinds


def _calls_model(span: str, below: dict[str, list[Record]]) -> bool:
    """Return True if a span below this one called a model; `below` has child spans by parent."""
    spans, seen = [span], {span}
    for parent in spans:  # also those that the loop appends
        for child in below.get(parent, ()):
            if get_in(child, "span_attributes", "type") == "llm":
                return True
            name = text_of(child.get("span_id"))
            spans += [name] if name not in seen else []
            seen.add(name)
    return False


READERS = {  # the fields of `Reader`: recognises, ratings, items, and at times has_items
    "inspect": Reader(_is_inspect, _read_inspect, _inspect_items),
    "lm_eval": Reader(has_fields("lm_eval"), _read_lm_eval, _lm_eval_items),
    "promptfoo": Reader(
        lambda source: any("gradingResult" in result for result in _results(source)[:1]),
        _read_promptfoo,
        _promptfoo_items,
        lambda source: any({"response", "vars"} <= {*result} for result in _results(source)[:1]),
    ),
    "deepeval": Reader(
        lambda source: any(objects(case.get("metrics_data")) for case in _cases(source)),
        _read_deepeval,
        _deepeval_items,
        lambda source: any("actual_output" in case or case.get("turns") for case in _cases(source)),
    ),
    "braintrust": Reader(_is_braintrust, _read_braintrust, _braintrust_items),
}
