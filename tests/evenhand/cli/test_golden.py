"""`rubric check --grader`: a grader held against the golden answers of a rubric."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.cli.verbs import OVER_BUDGET
from evenhand.rubrics.loading import draft_rubric
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, labelled, message
from tests.commands import Run

pytestmark = pytest.mark.slow

GRADER = "anthropic:claude-opus-5"


@pytest.fixture
def server(monkeypatch, tmp_path: Path) -> Iterator[ProtocolServer]:
    """The provider on loopback; temporary folders are made in an empty one of the test's own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    server = ProtocolServer()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-for-loopback")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
    yield server
    server.close()


def test_what_a_grader_gets_wrong_is_listed(run, server, tmp_path):
    # It finds everything faithful, and cannot be read on one answer.
    server.script = lambda call: message("Hmm.") if "cook" in call.user else labelled("yes")
    said = run.ok("rubric", "check", "faithfulness", "--grader", GRADER)
    *_, right, second, third, fifth = said.splitlines()
    assert right.endswith("got 3 of 6 golden answers of faithfulness right.")
    assert second.startswith("  Golden answer 2 is no, and the grader gave yes: Every night, from")
    assert third.startswith("  Golden answer 3 is no, and the grader gave no label: Hanna Lind")
    assert fifth.startswith("  Golden answer 5 is no, and the grader gave yes: The plant stands")
    assert not [*(tmp_path / "temporary").iterdir()]


def test_a_rubric_of_ones_own_with_texts_of_its_own(run, server, tmp_path):
    text = draft_rubric("mine").replace('column = "response"', 'column = "summary"')
    file = tmp_path / "mine.toml"
    file.write_text(text.replace("texts.response", "texts.summary"))
    server.script = lambda call: labelled(
        "no" if "Addition" in call.user else "partly" if "times" in call.user else "yes"
    )
    *_, last = run.ok("rubric", "check", file, "--grader", GRADER).splitlines()
    assert last.endswith("got 3 of 3 golden answers of mine right.")
    assert all("<summary>" in call.user for call in server.calls)


def test_what_it_would_cost_is_told_first_and_bounded(run: Run, server: ProtocolServer) -> None:
    asking = ("rubric", "check", "tone", "--grader", GRADER)
    assert "The first prompt of" in run.ok(*asking, "--dry-run")
    assert not server.calls
    done = run(*asking, "--budget", "0.000001")
    assert done.returncode == OVER_BUDGET
    assert "golden answers" not in done.stdout
    assert "the budget of" in done.stderr


def test_a_comparison_is_put_in_both_orders(run: Run, server: ProtocolServer) -> None:
    shown = []

    def says_first(call: Call) -> Reply:
        """A grader that likes whatever it reads first."""
        shown.append(call.user)
        return labelled("A")

    server.script = says_first
    right, first, *_ = run.ok("rubric", "check", "preference", "--grader", GRADER).splitlines()[-7:]
    assert right.endswith("got 0 of 6 golden answers of preference right.")
    assert first.startswith("  Golden answer 1 is A, and the grader gave A / B: Translate into")
    leap = [each for each in shown if "leap year?" in each]
    assert sorted("<response_a>\n366\n" in each for each in leap) == [False, True]
    assert all(each.count("leap year? Answer") == 1 for each in leap)
