"""A reason and then the label: asked for in that order, kept, and shown to the lead alone."""

import json

import pytest

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.graders import GradingOptions, forecast
from evenhand.graders.options import REASON_FIRST, GraderSettings
from evenhand.graders.providers import parse_spec
from evenhand.graders.replies import read_reason
from evenhand.reporting.report import report_study
from evenhand.rubrics import load_rubric
from harness.replies import Call, Reply, answer, error, message
from tests.graders.bench import Bench
from tests.graders.grading import grade, rows

HOW = {"method": REASON_FIRST}


def schema_of(call: Call) -> dict[str, object]:
    if call.path.endswith("/messages"):
        return call.body["output_config"]["format"]["schema"]
    return call.body["response_format"]["json_schema"]["schema"]


def test_the_reason_is_asked_for_before_the_label_and_kept(bench: Bench, grader: str) -> None:
    study = bench.study(pairs=2)
    summary = grade(study, [grader], **HOW)
    assert (summary.scored, summary.unscored) == (4, 0)
    for call in bench.calls:
        assert list(schema_of(call)["properties"]) == ["reason", "label"]
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


def test_a_server_without_constraints_is_read_by_its_last_line(bench: Bench) -> None:
    def bare(call: Call) -> Reply:
        if {"response_format", "tools"} & set(call.body):
            return error(400, "response_format and tools are not supported")
        return answer(call)

    bench.script = bare
    study = bench.study(pairs=2)
    grade(study, [bench.openai], **HOW)
    assert all(row["label"] and row["provenance"]["asked_by"] == "plain" for row in rows(study))
    assert all(row["provenance"]["reason"].startswith("It reads so") for row in rows(study))


def test_a_batch_holds_its_answers_to_a_reason_and_an_option(bench: Bench, grader: str) -> None:
    bench.batches.looks = 0
    study = bench.study(pairs=2)
    grade(study, [grader], batch=True, **HOW)
    found = rows(study)
    assert [bool(row["provenance"].get("batch_id")) for row in found] == [False, True, True, True]
    for row in found:
        assert row["provenance"]["reason"] == f"It reads so: {row['unit_id']}."
        assert row["provenance"]["asked_by"] == "json_schema"


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
        ("2", ""),
        ("It is a 2.\n\n2 or 3", ""),
        ("<think>5</think>It helps.\n\n**2**", "2"),
        ("<think>It helps.\n2", ""),
        ("", ""),
    ],
)
def test_what_is_no_label_after_a_reason_is_none(reply: str, label: str) -> None:
    outcome = read_reason(reply, load_rubric("refusal").parser, {})
    assert outcome.label == label
    assert outcome.raw == reply
    assert bool(outcome.evidence.get("reason")) == bool(label)
    assert outcome.unscored_reason == ("" if label else "unparseable")


def test_draws_have_a_reason_each_and_prompts_of_ones_own_ask_for_theirs(bench: Bench) -> None:
    study = bench.study(pairs=1)
    grade(study, [bench.claude], draws=3, **HOW)
    found = rows(study)
    assert len(found) == 6
    assert {row["prob_method"] for row in found} == {"draws"}
    assert all(row["provenance"]["reason"] for row in found)
    asked = GradingOptions(method=REASON_FIRST)
    settings = GraderSettings.for_grader(parse_spec("openai:m"), asked)
    assert (settings.method, settings.reading) == ("label", REASON_FIRST)
    (part,) = forecast(study, [bench.claude], asked)
    assert part.sample
    assert part.new == 2


def test_a_prompt_in_the_rubric_asks_for_no_reason_besides(bench: Bench) -> None:
    rubric = load_rubric("hedging")
    more = {"prompt": {"template": "Rate {response}"}}
    own = type(rubric).model_validate(rubric.model_dump() | more)
    with pytest.raises(InputError, match=r"has a \[prompt\] of its own"):
        grade(bench.study(rubrics=(own,)), [bench.claude], **HOW)


@pytest.mark.slow
def test_the_reason_stands_on_the_page_of_disagreements_as_text(bench, tmp_path):
    said = {"reason": "<script>alert(1)</script> Response A gets {more} help.", "label": "A"}
    bench.script = lambda call: message(json.dumps(said))
    study = bench.study(pairs=4, rubrics=("even-handedness",))
    grade(study, [bench.claude], orders=("ba",), **HOW)
    lines = [
        f"{row['unit_id']},even-handedness,{who},human,C" for row in rows(study) for who in "pq"
    ]
    table = tmp_path / "people.csv"
    table.write_text("\n".join(["unit_id,rubric,rater_id,rater_kind,label", *lines]), "utf-8")
    assert main(["import", str(study.folder), str(table)]) == 0
    report_study(study, tmp_path / "out")
    page = (tmp_path / "out" / "disagreements.html").read_text("utf-8")
    quoted = "&lt;script&gt;alert(1)&lt;/script&gt; Response A gets {more} help."
    assert page.count(f"Its reason, with the two sides exchanged: {quoted}") == 4
    assert "<script>alert(1)" not in page
    assert "&#34;reason&#34;" not in page
