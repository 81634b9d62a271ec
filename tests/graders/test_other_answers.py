"""Graders asked for a number, for several options, or for a reason and then the label: the request,
and what becomes of replies.
"""

import json

import pytest

from evenhand.analysis.labels.encoding import combine_readings
from evenhand.errors import InputError
from evenhand.graders import GradingOptions, forecast
from evenhand.graders.options import REASON_FIRST, GraderSettings
from evenhand.graders.providers import parse_spec
from evenhand.graders.replies import read_reason
from evenhand.reporting.load import from_study
from evenhand.reporting.report import report_study
from evenhand.rubrics import Block, Rubric, asked_rubric, load_rubric
from evenhand.study import Study
from harness.replies import Call, Reply, answer, completion, error, labelled, message
from harness.studies import response_rubric, with_labels
from tests.graders.bench import Bench
from tests.graders.grading import grade, rows

pytestmark = pytest.mark.journey

HOW = {"method": REASON_FIRST}
TOPICS = response_rubric({"bug": "A bug", "praise": "Praise"}, name="topics", several=True)


def score(high: int = 100) -> Rubric:
    block = Block(column="response", label="Response")
    asked = asked_rubric("How good is it?", [block], scale=f"0-{high}")
    return asked.model_copy(update={"name": "score"})


def schema_of(bench: Bench) -> dict[str, dict[str, object]]:
    """The properties of the schema that a grader is held to."""
    call = next(c for c in bench.calls if {"output_config", "response_format"} & set(c.body))
    if call.path.endswith("/messages"):
        return call.body["output_config"]["format"]["schema"]["properties"]
    return call.body["response_format"]["json_schema"]["schema"]["properties"]


def said(study: Study) -> dict[str, list[str]]:
    """What a grader's draws come to, by scale."""
    dataset, found = from_study(study), {}
    for name, scale in dataset.scales.items():
        own = dataset.ratings[dataset.ratings["rubric"] == name]
        found[name] = [scale.categories[code] for code in combine_readings(own, scale).code]
    return found


def test_a_number_is_asked_for_and_read(bench: Bench) -> None:
    replies, given = ["73", "Score: 8/100", "Fine, 7/10", "100"], {}

    def script(call: Call) -> Reply:
        if "output_config" in call.body:
            return labelled("42")
        return completion(given.setdefault(call.unit, replies[len(given) % 4]))

    bench.script, study = script, bench.study(pairs=2, rubrics=(score(),))
    assert grade(study, [bench.claude, bench.openai]).scored == 7
    table = study.ratings().set_index("rater_id")
    assert set(table.loc[bench.claude, "label"]) == {"42"}
    assert sorted(table.loc[bench.openai, "label"]) == ["", "100", "73", "8"]
    assert (table["probabilities"] == "").all()
    system = bench.calls[0].system
    assert "Answer with a whole number from 0 to 100 and nothing else." in system
    assert "Options:" not in system
    assert schema_of(bench)["label"]["enum"] == [str(n) for n in range(101)]


def test_many_numbers_are_a_number_in_the_schema(bench: Bench) -> None:
    replies = iter([417, 1001, 1000, 2.5])
    bench.script = lambda call: message(json.dumps({"label": next(replies)}))
    study = bench.study(pairs=2, rubrics=(score(1000),))
    grade(study, [bench.claude])
    assert sorted(study.ratings()["label"]) == ["", "", "1000", "417"]
    assert schema_of(bench)["label"] == {"type": "number"}


def test_several_options_are_asked_for_and_read(bench: Bench) -> None:
    both = message(json.dumps({"label": ["praise", "bug"]}))
    bench.script = lambda call: both if "output_config" in call.body else completion("none")
    study = bench.study(pairs=1, rubrics=(TOPICS,))
    summary = grade(study, [bench.claude, bench.openai])
    assert (summary.scored, summary.graders[1].without_probabilities) == (4, 0)
    table = study.ratings().set_index("rater_id")
    assert set(table.loc[bench.claude, "label"]) == {"bug;praise"}
    assert set(table.loc[bench.openai, "label"]) == {"none"}
    kind = {"type": "array", "items": {"type": "string", "enum": ["bug", "praise"]}}
    assert schema_of(bench)["label"] == kind
    for rubric, asked in ((score(), "a number"), (TOPICS, "several options")):
        study = bench.study(rubrics=(rubric,), name=rubric.name)
        with pytest.raises(InputError, match=f"asks for {asked}, and not for the probability"):
            grade(study, [bench.claude], method="verbalised")


def test_of_several_draws_the_median_or_each_options_majority_counts(bench: Bench) -> None:
    draws = {score(): ["10", "90", "80"], TOPICS: [["bug"], ["bug", "praise"], []]}
    right = {"score": {"score": ["80"] * 2}}
    right["topics"] = {"topics/bug": ["yes"] * 2, "topics/praise": ["no"] * 2}
    for rubric, labels in draws.items():
        left: dict[str, list[object]] = {}
        bench.script = lambda call, left=left, labels=labels: message(
            json.dumps({"label": left.setdefault(call.unit, [*labels]).pop()})
        )
        study = bench.study(pairs=1, rubrics=(rubric,), name=rubric.name)
        grade(study, [bench.claude], draws=3)
        assert (study.ratings()["probabilities"] == "").all()
        assert said(study) == right[rubric.name]


@pytest.mark.parametrize(
    ("rubric", "given", "label", "asked"),
    [
        (score(1000), 88, "88", "Then give a whole number from 0 to 1000"),
        (TOPICS, ["bug"], "bug", "reason"),
    ],
)
def test_a_reason_comes_before_a_number_or_several_options(bench, rubric, given, label, asked):
    bench.script = lambda call: message(json.dumps({"reason": "It crashed.", "label": given}))
    study = bench.study(pairs=1, rubrics=(rubric,))
    assert grade(study, [bench.claude], **HOW).scored == 2
    assert asked in bench.calls[0].system
    assert set(study.ratings()["label"]) == {label}


def test_the_reason_is_asked_for_before_the_label_and_kept(bench: Bench, grader: str) -> None:
    study = bench.study(pairs=1)
    assert [each.new for each in forecast(study, [grader], GradingOptions(**HOW))] == [2]
    summary = grade(study, [grader], **HOW)
    assert (summary.scored, summary.unscored) == (2, 0)
    assert [*schema_of(bench)] == ["reason", "label"]
    for call in bench.calls:
        assert "First give your reason" in call.system
        assert "Answer with the key" not in call.system
        assert "logprobs" not in call.body
    for row in rows(study):
        assert row["provenance"]["reason"] == f"It reads so: {row['unit_id']}."
        assert row["provenance"]["method"] == "reason-then-label"
        assert (row["prob_method"], row["label"] != "") == ("", True)
        assert row["rater_id"].startswith(f"{grader}#")
    grade(study, [grader], method="label")
    assert len({row["rater_id"] for row in rows(study)}) == 2
    if grader == bench.claude:
        grade(study, [grader], draws=3, **HOW)
        drawn = [row for row in rows(study) if row["prob_method"] == "draws"]
        assert [bool(row["provenance"]["reason"]) for row in drawn] == [True] * 6
    settings = GraderSettings.for_grader(parse_spec("openai:m"), GradingOptions(**HOW))
    assert (settings.method, settings.reading) == ("label", REASON_FIRST)


def test_a_server_without_constraints_is_read_by_its_last_line(bench: Bench) -> None:
    refused = error(400, "response_format and tools are not supported")
    bench.script = lambda call: (
        refused if {"response_format", "tools"} & set(call.body) else answer(call)
    )
    study = bench.study(pairs=1)
    grade(study, [bench.openai], **HOW)
    assert all(row["label"] and row["provenance"]["asked_by"] == "plain" for row in rows(study))
    assert all(row["provenance"]["reason"].startswith("It reads so") for row in rows(study))


def test_a_batch_holds_its_answers_to_a_reason_and_an_option(bench: Bench, grader: str) -> None:
    bench.batches.looks = 0
    study = bench.study(pairs=1)
    grade(study, [grader], batch=True, **HOW)
    facts = [row["provenance"] | {"unit": row["unit_id"]} for row in rows(study)]
    assert [bool(each.get("batch_id")) for each in facts] == [False, True]
    for each in facts:
        assert each["reason"] == f"It reads so: {each['unit']}."
        assert each["asked_by"] == "json_schema"


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ('{"reason": "Not 5: it is vague.", "label": "2"}', "2"),
        ('```json\n{"reason": "So.", "label": "2"}\n```', "2"),
        ('{"label": "2", "reason": "Said too late."}', ""),
        ('{"reason": "", "label": "2"}', ""),
        ('{"reason": "So.", "label": "2 or 3"}', ""),
        ('{"reason": "So.", "label": "2"} {"reason": "Or so.", "label": "3"}', ""),
        ('{"reason": "So.", "label": "2", "label": "3"}', ""),
        ('{"reason": {"a": 1}, "label": "2"}', ""),
        ('{"reason": "cut', ""),
        ("I first thought 5.\nAnswer: 2", "2"),
        ("Answer: 2\nIt does a part of it.", ""),
        ("It is a 2.\n\n2 or 3", ""),
        ("<think>5</think>It helps.\n\n**2**", "2"),
        ("<think>It helps.\n2", ""),
        ("", ""),
    ],
)
def test_what_is_no_label_after_a_reason_is_none(reply: str, label: str) -> None:
    outcome = read_reason(reply, load_rubric("refusal").parser, {})
    assert (outcome.label, outcome.raw) == (label, reply)
    assert bool(outcome.evidence.get("reason")) == bool(label)
    assert outcome.unscored_reason == ("" if label else "unparseable")


@pytest.mark.slow
def test_the_reason_stands_on_the_page_of_disagreements_as_text(bench, tmp_path):
    reason = "<script>alert(1)</script> Response A gets {more} help."
    bench.script = lambda call: message(json.dumps({"reason": reason, "label": "A"}))
    study = bench.study(pairs=4, rubrics=("even-handedness",))
    grade(study, [bench.claude], orders=("ba",), **HOW)
    with_labels(study, {"p": "CCCC", "q": "CCCC"}, "even-handedness")
    report_study(study, tmp_path / "out")
    page = (tmp_path / "out" / "disagreements.html").read_text("utf-8")
    quoted = "&lt;script&gt;alert(1)&lt;/script&gt; Response A gets {more} help."
    assert page.count(f"Its reason, with the two sides exchanged: {quoted}") == 4
    assert "<script>alert(1)" not in page
    assert "&#34;reason&#34;" not in page
