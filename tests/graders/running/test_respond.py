"""Subjects' responses by the runner: resumable, whole pairs only, refusals kept."""

import hashlib

import pytest
import sqlalchemy as sa

from evenhand.graders.running import forecast_responses, only_runner
from evenhand.rubrics.rendering import Image
from evenhand.study.store.schema import pairs, response_attempts
from harness.replies import Call, Reply, error, message
from harness.studies import MarkedStudy
from tests.cases import refused
from tests.graders.bench import Bench, replied
from tests.graders.grading import respond

PRICED = "anthropic:claude-opus-5"


def said(call: Call) -> Reply:
    return replied(call, f"On {call.user}")


def test_every_prompt_is_answered_once(bench: Bench, grader: str) -> None:
    bench.script, study = said, bench.study(pairs=2)
    summary = respond(study, grader)
    assert (summary.run.scored, summary.added) == (4, 4)
    table = study.store.responses()
    own = table[table["subject"] == grader].set_index(["pair_id", "side"])["response"]
    assert (own["p0002", "a"], own["p0002", "b"]) == ("On Argue for 2.", "On Argue against 2.")
    assert [turn["role"] for turn in bench.calls[0].body["messages"]] == ["user"]
    assert "system" not in bench.calls[0].body
    assert (respond(study, grader).run.planned, len(bench.calls)) == (0, 4)
    told = forecast_responses(study, PRICED, answered=[("p0001", "a")])
    assert (told.already, told.new, told.sample) == (1, 3, None)
    assert 0 < told.cost[0] < told.expected < told.cost[1]
    bench.script = lambda call: Reply(200, {"odd": call.user})
    unread = respond(study, grader.replace("test", "odd"))
    assert (unread.run.unscored, unread.added) == ({"unparseable": 4}, 0)
    if grader == bench.claude:  # a refusal is a response
        bench.script = lambda call: message("I would rather not.", stop_reason="refusal")
        assert respond(study, f"anthropic:other@{bench.root}").added == 4
        assert (study.store.responses()["response"] == "I would rather not.").sum() == 4


@pytest.mark.journey
def test_only_whole_pairs_enter_the_study(bench: Bench) -> None:
    broken = {"Argue for 1."}
    bench.script = lambda call: error(500) if call.user in broken else said(call)
    study = bench.study(pairs=2)
    first = respond(study, bench.claude)
    assert (first.run.unscored, first.added) == ({"request_failed": 1}, 2)
    assert "p0001|anthropic:claude-test" not in study.units()["unit_id"].tolist()
    broken.clear()
    assert (respond(study, bench.claude).added, len(bench.calls)) == (2, 3 + 8 + 1)


def test_a_second_runner_is_kept_off(marked_study: MarkedStudy) -> None:
    study = marked_study(pairs=1)
    with only_runner(study):
        refused(r"another run \(process \d+\)", only_runner(study).__enter__)


@pytest.mark.parametrize(
    "cell", ['[{"role": "user", "content": "Hi"}]', Image("image/png", "A").cell]
)
def test_a_prompt_that_is_no_text_is_refused(marked_study: MarkedStudy, cell: str) -> None:
    study, cells = marked_study(pairs=1), {"prompt_a": "Hi", "prompt_b": cell}
    with study.store.write() as connection:
        connection.execute(sa.update(pairs).values(cells=cells))
    for asked in (respond, forecast_responses):
        refused("'p0001' is an image or a conversation", asked, study, PRICED)


SYSTEM = "Be brief.\n{not: a field}\n"


def test_the_same_model_asked_in_another_way_is_another_subject(bench, tmp_path, run):
    bench.script, study, file = said, bench.study(pairs=1), tmp_path / "system.txt"
    asked = ["respond", study.folder, "--subject", bench.claude, "--system", file]
    assert "there is no file" in run.refused(*asked)
    file.write_text(" \n")
    assert "is empty" in run.refused(*asked)
    file.write_text(SYSTEM, "utf-8")
    run.ok(*asked, "--thinking", "2000", "--effort", "high")
    assert respond(study, bench.claude).added == 2
    name = f"{bench.claude}#system-{hashlib.sha256(SYSTEM.encode()).hexdigest()[:8]}"
    other = f"{name}#thinking-2000#effort-high"
    assert study.store.subjects() == sorted(["m", bench.claude, other])
    first, *_, last = (call.body for call in bench.calls)
    budget = {"type": "enabled", "budget_tokens": 2000}
    assert (first["system"][0]["text"], first["thinking"]) == (SYSTEM, budget)
    assert first["max_tokens"] > 2000
    assert first["output_config"] == {"effort": "high"}
    assert not {"system", "thinking", "output_config"} & set(last)
    kept = study.store.table(sa.select(response_attempts.c.provenance))["provenance"].tolist()
    assert [facts.get("system_prompt") for facts in kept] == [SYSTEM, SYSTEM, None, None]
    assert kept[0]["settings"]["thinking"] == budget
    for thinking, kind in (("off", "disabled"), ("adaptive", "adaptive")):
        bench.calls.clear()
        run = respond(study, bench.claude, thinking=thinking).run
        assert run.rater_id == f"{bench.claude}#thinking-{thinking}"
        assert bench.calls[0].body["thinking"] == {"type": kind}


def test_effort_and_a_system_prompt_reach_other_models(bench: Bench) -> None:
    bench.script = said
    run = respond(bench.study(pairs=1), bench.openai, system=SYSTEM, effort="low").run
    assert run.rater_id.endswith("#effort-low")
    assert bench.calls[0].body["reasoning_effort"] == "low"
    assert bench.calls[0].body["messages"][0] == {"role": "system", "content": SYSTEM}


@pytest.mark.parametrize(
    ("subject", "options", "says"),
    [
        ("anthropic:m", {"thinking": "12"}, "from 1024 to"),
        ("anthropic:m", {"thinking": "9" * 5000}, "from 1024 to"),
        ("anthropic:m", {"thinking": "much"}, "off, adaptive or a number"),
        ("anthropic:m", {"effort": "a|b"}, "must be one word"),
        ("openai:m", {"thinking": "off"}, "--thinking is for Claude"),
    ],
)
def test_what_cannot_be_asked_so_is_refused(marked_study, subject, options, says):
    refused(says, respond, marked_study(pairs=1), subject, **options)
