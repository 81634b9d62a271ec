"""A study that was backed up and restored, or moved, says the same in its report; and every verb
that changes a study, or takes something out of it, leaves a line in its log.
"""

import os
import pwd
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import Parser, build_parser
from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.noting import changing_settings, operator
from evenhand.rubrics import load_rubric
from evenhand.rubrics.loading import dump_rubric
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.decisions import acts
from harness.studies import with_labels, work_through


@pytest.mark.slow
def test_a_restored_and_a_moved_study_have_the_same_report(folder, run, tmp_path):
    archive, again = tmp_path / "b.zip", tmp_path / "again"

    def results(folder: Path) -> list[str]:
        with open_study(folder) as study:
            return [repr(row) for row in analyse_study(study, verify=False)[0].rows]

    change_config(folder, {"analysis": {"resamples": 100}})
    done = run.ok("backup", folder, archive)
    with open_study(folder) as now:
        grades = (now.ratings()["rater_kind"] == "model").sum()
    assert f"; annotators: 3; grades: {grades};" in done  # of the labels one was changed
    assert done.splitlines()[1] == run.ok("restore", archive, again).splitlines()[1]
    moved = run.ok("store", "copy", folder, "--to", "moved.db")
    assert "every table's count and checksum are the same" in moved
    first, second = results(folder), results(again)
    assert first == second
    assert len(first) > 100

    (tmp_path / "no.zip").write_text("no zip")
    for words, says in (
        (("restore", tmp_path / "no.zip", tmp_path / "third"), "is no backup of evenhand"),
        (("backup", folder, archive), "exists already"),
        (("backup", tmp_path, tmp_path / "c.zip"), "is not a study"),
        (("backup", folder, "--to", "s3://me:secret@b/c"), "kept in a folder, not at an"),
        (("restore", "s3://b/c.zip", tmp_path / "third"), "kept in a folder, not at an address"),
        (("store", "copy", folder, "--to", "moved.db"), "where the study's store is already"),
    ):
        said = run.refused(*words)
        assert says in said
        assert "secret" not in said
    assert "the newest; nothing was changed" in run.ok("store", "upgrade", folder)


ROOT = Path(__file__).parents[3]
READING = {
    "baseline compare", "check", "demo", "doctor", "gate", "plan", "progress", "rubric check",
    "rubric list", "rubric new", "rubric show", "rubric suggest", "select",
}  # fmt: skip
"""What leaves a study as it is and writes no file of it; `demo` makes a synthetic one."""
SERVING = {"annotate", "label"}
"""They note an edit of study.toml, and what `label` makes: tests/annotate_app."""
ASKING = {"improve", "reproduce", "respond"}
"""They ask a server: tests/graders, and tests/evenhand/cli/test_reproduce.py."""


@pytest.fixture
def folder(make_study) -> Path:
    """A study with labels of two annotators and a grader with probabilities."""
    study = make_study(pairs=30, sample=20, rubrics=["refusal"])
    desk = AnnotationDesk(study)
    for rater in ("ann", "ben"):
        work_through(desk, rater, 1)
    rubric = study.rubrics["refusal"]
    yes = np.random.default_rng(4).random(len(study.rubric_units(rubric))) < 0.5
    labels = np.where(yes, rubric.affirmative[0], rubric.categories[0]).tolist()
    with_labels(study, dict.fromkeys(("ann", "ben", "cem"), labels))
    about = {"p_positive": np.where(yes, 0.3, 0.1).tolist(), "prob_method": "verbalised"}
    with_labels(study, {"prob": labels}, graders=["prob"], **about)
    study.close()
    return study.folder


def verbs(parser: Parser, before: str = "") -> Iterator[str]:
    """All verbs, a verb of verbs as its verbs."""
    for name, own in parser.verbs.items():
        own.declare()
        yield from list(verbs(own, f"{before}{name} ")) or [f"{before}{name}"]


def noted(folder: Path) -> list[tuple[str, str, str]]:
    """(what, about whom or what, in detail) as the operator did it, the first first."""
    with open_study(folder) as study:
        found = acts(study.store).iloc[::-1].query("done_by == @operator()")
    return list(found[["kind", "about", "detail"]].itertuples(index=False, name=None))


@pytest.mark.journey
def test_every_verb_that_changes_or_takes_out_is_noted(folder, tmp_path, run, monkeypatch):
    monkeypatch.setenv("EVENHAND_PASSWORD", "correct horse battery staple")
    with open_study(folder) as study:
        pairs, unit = study.store.pairs(), study.rubric_units(study.rubrics["refusal"])[0]
    pd.DataFrame(
        [{"pair_id": pairs["pair_id"][0], "subject": "s3", "side": side, "response": "No."}
         for side in "ab"]
    ).to_csv(tmp_path / "responses.csv", index=False)  # fmt: skip
    pd.DataFrame(
        [{"unit_id": unit, "rubric": "refusal", "rater_id": "dee", "rater_kind": "human",
          "label": load_rubric("refusal").categories[0]}]
    ).to_csv(tmp_path / "ratings.csv", index=False)  # fmt: skip
    threshold = ["--write", "--rubric", "refusal", "--grader", "prob", "--threshold", "0.2"]
    baseline = ["--grader", "prob", "--file", tmp_path / "prob.baseline"]
    wording = tmp_path / "refusal-2.toml"
    other = {"name": "refusal-2", "variant_of": "refusal", "translations": {}}
    other["instructions"] = "Say how far the response does what is asked."
    wording.write_text(dump_rubric(load_rubric("refusal").model_copy(update=other)), "utf-8")
    lexical = ["--grader", "baseline:lexical"]
    done: dict[str, Sequence[tuple[Sequence[str | Path], list[tuple[str, str, str]]]]] = {
        "extend": [(["--pairs", "2"], [("settings",), ("sample", "", "pairs: 22")])],
        "calibrate": [(threshold, [("settings",), ("threshold", "refusal, prob", "0.2")])],
        "grade": [(lexical, [("grades", "baseline:lexical")])],
        "audit injection": [
            ([*lexical, "--units", "2"], [("grades", "baseline:lexical")]),
            ([*lexical, "--units", "2", "--dry-run"], []),
        ],
        "import": [
            ([tmp_path / "responses.csv"], [("import", "responses.csv", "responses: 2")]),
            ([tmp_path / "ratings.csv"], [("import", "ratings.csv", "ratings: 1")]),
        ],
        "export": [
            (["--out", tmp_path / "out.csv"], [("export", "out.csv, out.units.csv", "")]),
            (["--out", tmp_path / "wide.csv", "--format", "wide"], [("export",)]),
        ],
        "invite": [
            (["--for", "eve"], [("invite", "", "made: 1")]),
            (["--for", "eve", "--revoke"], [("invite", "eve", "revoked: 1")]),
        ],
        "account": [
            (["add", "ada", "--role", "lead"], [("account", "ada", "set: lead")]),
            (["disable", "ada"], [("account", "ada", "ended")]),
        ],
        "session": [(["--times", tmp_path / "times.csv"], [("export", "times.csv", "")])],
        "lead": [([], [("link", "", "")])],
        "pause": [([], [("pause", "", "")]), (["--resume"], [("resume", "", "")])],
        "quality": [(["--out", tmp_path / "quality.csv"], [("export", "quality.csv", "")])],
        "exclude": [(["ben", "--reason", "hasty"], [("exclude", "ben", "hasty")])],
        "adjudicate": [(["--out", tmp_path / "queue.csv"], [("export", "queue.csv", "")])],
        "report": [(["--out", tmp_path / "report"], [("export", "report.html", "")])],
        "baseline save": [(baseline, [("export", "prob.baseline", "")])],
        "backup": [
            ([tmp_path / "b.zip"], [("backup", "b.zip", "")]),
            (["--to", tmp_path], [("backup",)]),
        ],
        "rubric reword": [
            ([wording, "--pairs", "4"], [("rewording", "refusal-2"), ("settings",)])
        ],
        "store copy": [(["--to", "moved.db"], [("store", "", "copied")])],
        "store upgrade": [([], [])],  # there is nothing to upgrade
    }  # fmt: skip
    before = noted(folder)
    for verb, ways in done.items():
        for given, wanted in ways:
            ended = run(*verb.split(), folder, *given)
            assert ended.returncode == 0, ended.stderr
            added = noted(folder)[len(before) :]
            assert [act[: len(want)] for act, want in zip(added, wanted, strict=True)] == wanted
            before += added
    new, restored = tmp_path / "new", tmp_path / "restored"
    from_pairs = [new, "--pairs", ROOT / "data" / "demo_pairs.csv", "--sample", "6"]
    for verb, made, words, expected in (
        ("new", new, from_pairs, ("study", "new", "")),
        ("restore", restored, [tmp_path / "b.zip", restored], ("study", "restored", "from b.zip")),
    ):
        run.ok(verb, *words)
        assert expected in noted(made)
    assert set(verbs(build_parser())) == {*done, "new", "restore", *READING, *SERVING, *ASKING}


def test_whoever_runs_it_is_named_by_the_system_and_not_by_the_environment(monkeypatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody else")
    assert operator() == f"command line, {pwd.getpwuid(os.getuid()).pw_name}"

    def unknown(number: int) -> pwd.struct_passwd:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)  # a container's user need not have a name
    assert operator() == f"command line, {os.getuid()}"


def test_an_edit_by_hand_is_nobodys_and_what_a_verb_changes_is_the_operators(make_study) -> None:
    with open_study(make_study().folder) as study:
        change_config(study.folder, {"": {"name": "by hand"}})
        with changing_settings(study):
            change_config(study.folder, {"": {"name": "by a verb"}})
        with changing_settings(study):
            pass
        found = acts(study.store)
    assert found["kind"].tolist() == ["settings", "settings"]
    assert found["done_by"].tolist() == [operator(), ""]
