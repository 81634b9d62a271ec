"""Graders asked for a number, or for several options: the request, and what becomes of replies."""

import json

import pytest

from evenhand.analysis.labels.encoding import combine_readings
from evenhand.errors import InputError
from evenhand.reporting.load import from_study
from evenhand.rubrics import Rubric
from evenhand.rubrics.loading import parse_rubric
from harness.replies import Call, Reply, completion, labelled, message
from tests.graders.bench import Bench
from tests.graders.grading import grade

SCORE = """
name = "score"
title = "Score"
unit = "response"
question = "How good is it?"
instructions = "Read it."
variables = ["response"]

[number]
low = 0
high = {high}
"""


def score(high: int = 100) -> Rubric:
    return parse_rubric(SCORE.format(high=high), "score.toml")


def test_a_number_is_asked_for_and_read(bench: Bench) -> None:
    replies, said = ["73", "Score: 8/100", "Fine, 7/10", "100"], {}

    def script(call: Call) -> Reply:
        if "output_config" in call.body:
            return labelled("42")
        return completion(said.setdefault(call.unit, replies[len(said) % 4]))

    bench.script = script
    study = bench.study(pairs=2, rubrics=(score(),))
    summary = grade(study, [bench.claude, bench.openai])
    assert summary.scored == 7
    table = study.ratings().set_index("rater_id")
    assert set(table.loc[bench.claude, "label"]) == {"42"}
    assert sorted(table.loc[bench.openai, "label"]) == ["", "100", "73", "8"]
    assert (table["probabilities"] == "").all()
    system = bench.calls[0].system
    assert "Answer with a whole number from 0 to 100 and nothing else." in system
    assert "Options:" not in system
    schema = next(c.body for c in bench.calls if "output_config" in c.body)["output_config"]
    label = schema["format"]["schema"]["properties"]["label"]
    assert (label["enum"][0], label["enum"][-1], len(label["enum"])) == ("0", "100", 101)


def test_many_numbers_are_a_number_in_the_schema(bench: Bench) -> None:
    replies = iter([417, 1001, 1000, 2.5])
    bench.script = lambda call: message(json.dumps({"label": next(replies)}))
    study = bench.study(pairs=2, rubrics=(score(1000),))
    grade(study, [bench.claude])
    assert sorted(study.ratings()["label"]) == ["", "", "1000", "417"]
    schema = bench.calls[0].body["output_config"]["format"]["schema"]
    assert schema["properties"]["label"] == {"type": "number"}


def test_of_several_draws_the_median_counts(bench: Bench) -> None:
    replies: dict[str, list[str]] = {}
    bench.script = lambda call: labelled(replies.setdefault(call.unit, ["10", "90", "80"]).pop())
    study = bench.study(pairs=1, rubrics=(score(),))
    grade(study, [bench.claude], draws=3)
    assert (study.ratings()["probabilities"] == "").all()
    dataset = from_study(study)
    readings = combine_readings(dataset.ratings, dataset.scales["score"])
    assert [dataset.scales["score"].categories[code] for code in readings.code] == ["80", "80"]


def test_probabilities_of_numbers_are_not_asked_for(bench: Bench) -> None:
    with pytest.raises(InputError, match="asks for a number, and not for the probability"):
        grade(bench.study(rubrics=(score(),)), [bench.claude], method="verbalised")


TOPICS = (
    SCORE.partition("[number]")[0]
    + """
[[options]]
key = "bug"
name = "A bug"

[[options]]
key = "praise"
name = "Praise"
"""
)


def topics() -> Rubric:
    several = 'level = "nominal"\nseveral = true\nunit = '
    return parse_rubric(TOPICS.replace("unit = ", several, 1), "topics.toml")


def test_several_options_are_asked_for_and_read(bench: Bench) -> None:
    both = message(json.dumps({"label": ["praise", "bug"]}))
    bench.script = lambda call: both if "output_config" in call.body else completion("none")
    study = bench.study(pairs=2, rubrics=(topics(),))
    assert grade(study, [bench.claude, bench.openai]).scored == 8
    table = study.ratings().set_index("rater_id")
    assert set(table.loc[bench.claude, "label"]) == {"bug;praise"}
    assert set(table.loc[bench.openai, "label"]) == {"none"}
    schema = next(c.body for c in bench.calls if "output_config" in c.body)["output_config"]
    label = schema["format"]["schema"]["properties"]["label"]
    assert label == {"type": "array", "items": {"type": "string", "enum": ["bug", "praise"]}}
    with pytest.raises(InputError, match="asks for several options, and not for the probability"):
        grade(study, [bench.claude], method="verbalised")


@pytest.mark.parametrize(
    ("rubric", "given", "label", "asked"),
    [
        (score(1000), 88, "88", "Then give a whole number from 0 to 1000"),
        (topics(), ["bug"], "bug", "reason"),
    ],
)
def test_a_reason_comes_before_a_number_or_several_options(bench, rubric, given, label, asked):
    said = {"reason": "It crashed.", "label": given}
    bench.script = lambda call: message(json.dumps(said))
    study = bench.study(pairs=1, rubrics=(rubric,))
    assert grade(study, [bench.claude], method="reason-then-label").scored == 2
    assert asked in bench.calls[0].system
    assert set(study.ratings()["label"]) == {label}


def test_of_several_draws_each_option_has_its_majority(bench: Bench) -> None:
    replies: dict[str, list[list[str]]] = {}
    draws = [["bug"], ["bug", "praise"], []]
    bench.script = lambda call: message(
        json.dumps({"label": replies.setdefault(call.unit, [*draws]).pop()})
    )
    study = bench.study(pairs=1, rubrics=(topics(),))
    grade(study, [bench.claude], draws=3)
    dataset, said = from_study(study), {}
    for name, scale in dataset.scales.items():
        own = dataset.ratings[dataset.ratings["rubric"] == name]
        readings = combine_readings(own, scale)
        said[name] = [scale.categories[code] for code in readings.code]
    assert said == {"score/bug": ["yes", "yes"], "score/praise": ["no", "no"]}
