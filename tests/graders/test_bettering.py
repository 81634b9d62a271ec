"""The lead's page A better grader: what was tried, with its gain, and the command that is next."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from evenhand.analysis.verdicts.ranking import rank_graders
from evenhand.cli.main import main
from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.bettering import (
    asked_anew,
    latest_end,
    next_move,
    sorted_by_kind,
    tried_table,
)
from evenhand.reporting.improving import improve
from evenhand.reporting.suggestions import rubric_first
from evenhand.study import Study
from evenhand.study.lead.disagreements import sort_disagreement
from harness.protocol_server import ProtocolServer
from harness.studies import MarkedStudy, with_edited_rubric
from tests.graders.test_improving import FAST, candidates, changed, grades, labelled, options

pytestmark = pytest.mark.slow


@pytest.fixture
def study(marked_study: MarkedStudy, tmp_path: Path, server: ProtocolServer) -> Study:
    server.script = grades
    return labelled(marked_study, tmp_path, server, "study")


def test_gains_come_with_intervals_and_the_next_step_is_a_command(
    study: Study, server: ProtocolServer, tmp_path: Path
) -> None:
    found = improve(study, options(server, candidates(tmp_path / "c")), FAST)
    end = latest_end(study, "kind")
    assert end is not None
    table = tried_table(study, "kind", end).set_index("origin")
    assert table["grader"].iloc[0] == found.old.rater_id
    best = table.loc["c0.toml"]
    assert best["grader"] == found.best.rater_id
    assert 0 < best["low"] < best["gain"] < best["high"]
    assert best["gain"] == pytest.approx(found.choice.gain, abs=0.05)
    poor = table.loc["c1.toml"]
    assert poor["low"] < 0 < poor["high"]
    move = next_move(study, "kind", end, [])
    assert move is not None
    assert move.command == found.command
    assert found.difference == end["difference"]
    assert main(shlex.split(move.command)[1:]) == 0


def test_the_page_shows_what_it_can_and_names_the_grader_that_was_asked(
    study: Study, server: ProtocolServer, tmp_path: Path
) -> None:
    asked = options(server, candidates(tmp_path / "c", ["POOR"]))
    found = improve(study, asked, FAST)
    analysis, _ = analyse_study(study, verify=False)
    ranking = rank_graders(analysis.results, analysis.verdicts)["kind"]
    move = next_move(study, "kind", latest_end(study, "kind"), ranking)
    assert move is not None
    command = shlex.split(move.command)
    assert {f"--grader={server.openai}", "--method=label", "--rubric=kind"} <= set(command)
    other = changed(study, {"decision": {"min_clusters": 60}, "analysis": {"cluster": "unit"}})
    end = latest_end(other, "kind")
    assert end is not None
    table = tried_table(other, "kind", end)
    assert list(table["grader"]) == [each.rater_id for each in (found.old, *found.candidates)]
    assert table["kappa"].notna().all()
    assert table["gain"].isna().all()


@pytest.mark.parametrize("same", [True, False])
def test_a_proof_is_of_the_text_that_people_were_asked_under(
    study: Study, server: ProtocolServer, tmp_path: Path, same: bool
) -> None:
    improve(study, options(server, candidates(tmp_path / "c")), FAST)
    end = latest_end(study, "kind")
    assert end is not None
    assert end["outcome"] == "better"
    assert not asked_anew(study, "kind", end)
    with with_edited_rubric(study, "kind", same=same) as edited:
        assert asked_anew(edited, "kind", end) != same
        assert (next_move(edited, "kind", end, []) is not None) == same
        unhashed = {name: value for name, value in end.items() if name != "rubric_hash"}
        assert not asked_anew(edited, "kind", unhashed), "earlier runs kept no hash"


def test_before_anything_was_tried_the_next_step_is_to_try(
    study: Study, server: ProtocolServer
) -> None:
    main(["grade", str(study.folder), "--grader", server.openai, "--method", "label"])
    analysis, _ = analyse_study(study, verify=False)
    ranking = rank_graders(analysis.results, analysis.verdicts)["kind"]
    move = next_move(study, "kind", None, ranking)
    assert move is not None
    asked = f"--rubric kind --grader {server.openai} --propose 4 --dry-run"
    assert shlex.split(move.command) == ["evenhand", "improve", str(study.folder), *asked.split()]


def test_disagreements_are_counted_by_grader_and_kind(study: Study) -> None:
    units = sorted(study.rubric_units(study.rubrics["kind"]))[:3]
    for unit, kind in zip(units, ("grader_wrong", "grader_wrong", "rubric_unclear"), strict=True):
        about = {"rubric": "kind", "unit_id": unit, "grader": "g"}
        sort_disagreement(study, "lead", **about, kind=kind)
    assert sorted_by_kind(study, "kind") == {"g": {"grader_wrong": 2, "rubric_unclear": 1}}


def test_a_grader_that_people_do_not_limit_is_not_told_to_mend_the_rubric(
    study: Study, server: ProtocolServer, tmp_path: Path
) -> None:
    asked = options(server, candidates(tmp_path / "c"))
    assert rubric_first(study, asked) == "", "nothing is known before the grader was asked"
    main(["grade", str(study.folder), "--grader", server.openai, "--method", "label"])
    assert rubric_first(study, asked) == ""
