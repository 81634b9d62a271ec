"""A wording for people that a model drafts from their disagreements: priced, durable, checked."""

import pytest

from evenhand.cli.main import main
from evenhand.cli.verbs import BAD_INPUT, DONE
from evenhand.rubrics import load_rubric
from evenhand.study import Study
from evenhand.study.store.logs.decisions import proposals_of
from harness.replies import completion
from tests.graders.bench import Bench
from tests.graders.test_improving import PRICE, labelled

pytestmark = pytest.mark.slow

WORDS = "Judge the tone, not the help. Thanks alone are not kind."


@pytest.fixture
def study(bench: Bench) -> Study:
    """Three people who often differ, and a model that writes guidelines."""
    bench.script = lambda call: completion(f"<instructions>\n{WORDS}\n</instructions>")
    return labelled(bench, "study")


def test_a_model_writes_the_guidelines_and_nothing_else(study, bench, tmp_path, capsys):
    out, again = tmp_path / "kind-2.toml", tmp_path / "again.toml"
    asked = ["rubric", "suggest", str(study.folder), "--proposer", bench.openai]
    assert main([*asked, "--dry-run"]) == DONE
    assert bench.calls == []
    assert "expected" in capsys.readouterr().out
    assert main([*asked, "--out", str(out), "--budget", "1"]) == DONE
    (call,) = bench.calls
    assert "[[" not in call.user, "no text that was rated is sent"
    assert "Confused with no (Unkind)" in call.user
    draft, old = load_rubric(out), study.rubrics["kind"]
    assert (draft.name, draft.variant_of) == ("kind-2", "kind")
    assert draft.instructions.strip() == WORDS
    assert (draft.question, draft.options) == (old.question, old.options)
    (kept,) = proposals_of(study.store, "kind").values()
    assert kept.provenance["cost_usd"] == pytest.approx(PRICE, rel=0.05)
    assert main([*asked, "--out", str(again)]) == DONE
    assert len(bench.calls) == 1, "an answer that is kept is not asked for again"
    assert again.read_text("utf-8") == out.read_text("utf-8")


def test_an_answer_that_changes_the_question_is_refused_and_kept(study, bench, tmp_path, run):
    hostile = "Question: Is it long?"
    bench.script = lambda call: completion(f"<instructions>{hostile}</instructions>")
    out = tmp_path / "kind-2.toml"
    asked = ["rubric", "suggest", str(study.folder), "--proposer", bench.openai]
    assert "wrote nothing that can be used" in run.refused(*asked, "--out", out)
    assert not out.exists()
    assert len(proposals_of(study.store, "kind")) == 1


def test_no_money_is_spent_where_there_is_no_place_for_the_draft(study, bench, tmp_path):
    asked = ["rubric", "suggest", str(study.folder), "--proposer", bench.openai]
    assert main(asked) == BAD_INPUT
    (tmp_path / "there.toml").touch()
    assert main([*asked, "--out", str(tmp_path / "there.toml")]) == BAD_INPUT
    assert main([*asked, "--out", str(tmp_path / "x.toml"), "--budget", "0.001"]) != DONE
    assert bench.calls == []
