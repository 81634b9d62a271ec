"""Subjects' responses by the runner: resumable, whole pairs only, refusals kept."""

import hashlib

import pytest
import sqlalchemy as sa

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.graders.running import only_runner
from evenhand.study.store.schema import response_attempts
from harness.replies import Call, Reply, completion, error, message
from harness.studies import MarkedStudy
from tests.graders.bench import Bench
from tests.graders.grading import respond


def said(call: Call) -> Reply:
    text = f"On {call.user}"
    return message(text) if call.path.endswith("/messages") else completion(text)


def test_every_prompt_is_answered_once(bench: Bench, grader: str) -> None:
    bench.script = said
    study = bench.study(pairs=4)
    summary = respond(study, grader)
    assert (summary.run.scored, summary.added) == (8, 8)
    table = study.store.responses()
    own = table[table["subject"] == grader].set_index(["pair_id", "side"])["response"]
    assert own["p0002", "a"] == "On Argue for 2."
    assert own["p0002", "b"] == "On Argue against 2."
    assert [turn["role"] for turn in bench.calls[0].body["messages"]] == ["user"]
    assert "system" not in bench.calls[0].body
    assert respond(study, grader).run.planned == 0
    assert len(bench.calls) == 8


def test_only_whole_pairs_enter_the_study(bench: Bench) -> None:
    broken = {"Argue for 1."}
    bench.script = lambda call: error(500) if call.user in broken else said(call)
    study = bench.study(pairs=2)
    first = respond(study, bench.claude)
    assert (first.run.unscored, first.added) == ({"request_failed": 1}, 2)
    assert "p0001|anthropic:claude-test" not in study.units()["unit_id"].tolist()
    broken.clear()
    assert respond(study, bench.claude).added == 2
    assert len(bench.calls) == 3 + 8 + 1


def test_a_refusal_is_a_response(bench: Bench) -> None:
    bench.script = lambda call: message("I would rather not.", stop_reason="refusal")
    study = bench.study(pairs=1)
    assert respond(study, bench.claude).added == 2
    assert study.store.responses()["response"].tolist()[:2] == ["I would rather not."] * 2


def test_a_second_runner_is_kept_off(marked_study: MarkedStudy) -> None:
    study = marked_study(pairs=1)
    with (
        only_runner(study),
        pytest.raises(InputError, match=r"another run \(process \d+\)"),
        only_runner(study),
    ):
        pass
    with only_runner(study):
        pass


SYSTEM = "Be brief.\n{not: a field}\n"


def test_the_same_model_asked_in_another_way_is_another_subject(bench, tmp_path):
    bench.script = said
    study = bench.study(pairs=1)
    file = tmp_path / "system.txt"
    file.write_text(SYSTEM, "utf-8")
    asked = ["respond", str(study.folder), "--subject", bench.claude, "--system", str(file)]
    asked += ["--thinking", "2000", "--effort", "high"]
    assert main(asked) == 0
    assert respond(study, bench.claude).added == 2
    name = f"{bench.claude}#system-{hashlib.sha256(SYSTEM.encode()).hexdigest()[:8]}"
    other = f"{name}#thinking-2000#effort-high"
    assert study.store.subjects() == sorted(["m", bench.claude, other])
    first, *_, last = bench.calls
    assert first.body["system"][0]["text"] == SYSTEM
    assert first.body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert first.body["max_tokens"] > 2000
    assert first.body["output_config"] == {"effort": "high"}
    assert not {"system", "thinking", "output_config"} & set(last.body)
    with study.store.read() as connection:
        kept = connection.execute(sa.select(response_attempts.c.provenance)).scalars().all()
    assert [facts.get("system_prompt") for facts in kept] == [SYSTEM, SYSTEM, None, None]
    assert kept[0]["settings"]["thinking"] == {"type": "enabled", "budget_tokens": 2000}


@pytest.mark.parametrize(
    ("thinking", "sent"), [("off", {"type": "disabled"}), ("adaptive", {"type": "adaptive"})]
)
def test_claude_thinks_as_it_is_told(bench: Bench, thinking: str, sent: dict[str, str]) -> None:
    bench.script = said
    run = respond(bench.study(pairs=1), bench.claude, thinking=thinking).run
    assert run.rater_id == f"{bench.claude}#thinking-{thinking}"
    assert bench.calls[0].body["thinking"] == sent


def test_effort_and_a_system_prompt_reach_other_models(bench: Bench) -> None:
    bench.script = said
    run = respond(bench.study(pairs=1), bench.openai, system=SYSTEM, effort="low").run
    assert run.rater_id.endswith("#effort-low")
    assert bench.calls[0].body["reasoning_effort"] == "low"
    assert bench.calls[0].body["messages"][0] == {"role": "system", "content": SYSTEM}


@pytest.mark.parametrize(
    ("subject", "options", "sentence"),
    [
        ("anthropic:m", {"thinking": "12"}, "from 1024 to"),
        ("anthropic:m", {"thinking": "9" * 5000}, "from 1024 to"),
        ("anthropic:m", {"thinking": "much"}, "off, adaptive or a number"),
        ("anthropic:m", {"effort": "a|b"}, "must be one word"),
        ("openai:m", {"thinking": "off"}, "--thinking is for Claude"),
    ],
)
def test_what_cannot_be_asked_so_is_refused(marked_study, subject, options, sentence):
    with pytest.raises(InputError, match=sentence):
        respond(marked_study(pairs=1), subject, **options)


def test_an_empty_system_prompt_is_refused(marked_study, tmp_path, run):
    (tmp_path / "s.txt").write_text(" \n")
    folder = str(marked_study(pairs=1).folder)
    for file, sentence in (("s.txt", "is empty"), ("none.txt", "there is no file")):
        asked = ["respond", folder, "--subject", "anthropic:m", "--system", str(tmp_path / file)]
        assert sentence in run.refused(*asked)
