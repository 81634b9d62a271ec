"""The lead's page A better grader: what was tried, with its gain, and the command that is next."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.analysis.verdicts.ranking import rank_graders
from evenhand.cli.main import main
from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.bettering import (
    asked_anew,
    errors_by_kind,
    latest_end,
    next_move,
    sorted_by_kind,
    tried_table,
    words_tried,
)
from evenhand.reporting.improving import improve
from evenhand.reporting.suggestions import rubric_first
from evenhand.study import Study
from evenhand.study.lead.disagreements import sort_disagreement
from evenhand.study.store.logs.improvements import parts_of
from harness.protocol_server import ProtocolServer
from harness.studies import MarkedStudy, with_edited_rubric, with_labels
from tests.graders.test_improving import FAST, candidates, changed, grades, labelled, options

pytestmark = pytest.mark.slow


@pytest.fixture
def study(marked_study: MarkedStudy, tmp_path: Path, server: ProtocolServer) -> Study:
    server.script = grades
    return labelled(marked_study, tmp_path, server, "study")


def test_gains_come_with_intervals_and_the_next_step_is_a_command(
    study: Study, server: ProtocolServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    monkeypatch.chdir(tmp_path)
    frozen = next_move(study, "kind", end, [])
    assert frozen is not None
    assert main(shlex.split(frozen.command)[1:]) == 0
    assert (tmp_path / "kind-grader.json").is_file()


def test_errors_are_counted_on_units_to_learn_from_and_all_words_are_shown(
    study: Study, server: ProtocolServer, tmp_path: Path
) -> None:
    folder = candidates(tmp_path / "c")
    found = improve(study, options(server, folder), FAST)
    main(["grade", str(study.folder), "--grader", server.openai, "--method", "label"])
    errors, units = errors_by_kind(study, "kind", found.old.rater_id)
    learn = {each for each, part in parts_of(study.store, "kind").items() if part == "learn"}
    assert units == 2 * len(learn)
    ratings = study.ratings()
    ratings = ratings[ratings["unit_id"].str.partition("|")[0].isin(learn)]
    majority = ratings[ratings["rater_kind"] == "human"].groupby("unit_id")["label"]
    majority = majority.agg(lambda own: own.mode()[0])
    own = ratings[ratings["rater_id"] == found.old.rater_id].set_index("unit_id")["label"]
    counts = {
        (people, grader): int(((majority == people) & (own.loc[majority.index] == grader)).sum())
        for people, grader in (("yes", "no"), ("no", "yes"))
    }
    assert {(row.people, row.grader): row.units for row in errors.itertuples()} == counts
    assert (errors["clear"] <= errors["units"]).all()
    shown = words_tried(study, "kind")
    assert len(shown) == 3
    for candidate in found.candidates:
        source = (folder / candidate.origin).read_text("utf-8")
        assert shown[candidate.rater_id] == f"# {candidate.origin}\n{source}"


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


@pytest.mark.parametrize(
    ("promising", "more", "command"),
    [(True, 40, ["extend", "--pairs", "40"]), (False, 0, ["improve", "--candidate", "--dry-run"])],
)
def test_a_grader_that_was_imported_is_tried_beside_another(
    study: Study, promising: bool, more: int, command: list[str]
) -> None:
    units = sorted(study.rubric_units(study.rubrics["kind"]))
    with_labels(study, {"judge": ["yes"] * len(units)}, "kind", units=units, graders=["judge"])
    analysis, _ = analyse_study(study, verify=False)
    (judge,) = rank_graders(analysis.results, analysis.verdicts)["kind"]
    about = {"promising": promising, "more_clusters": more}
    ranking = [replace(judge, verdict=judge.verdict | about)]
    move = next_move(study, "kind", None, ranking)
    assert move is not None
    assert set(command) <= set(shlex.split(move.command))
    assert "judge" in move.said


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
