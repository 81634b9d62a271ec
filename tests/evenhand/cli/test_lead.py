"""The lead's verbs on a synthetic crowd with known faults: who is named, and what a report says;
and invites, accounts and sessions by the verbs that people type.
"""

import io
import json
import os
import pty
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest

from evenhand import annotate_app
from evenhand.cli import lead as session_verbs
from evenhand.cli.main import main
from evenhand.errors import Refused
from evenhand.study import Study, open_study
from evenhand.study.access import admit, read_login, sign_in
from evenhand.study.desk.claims import STOPPED_BY, oversight
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.imports import import_ratings
from evenhand.study.settings.study_toml import change_config
from evenhand.study.tables.formats import read_table
from evenhand.study.tables.ratings import validate_ratings
from harness.studies import CODES, work_through
from tests.analysis.crowd import FAULTS, crowd
from tests.cases import refused
from tests.commands import Run, python

PAIRS = 100


@pytest.fixture
def folder(make_study) -> Path:
    """A study whose 200 responses the crowd has labelled on one rubric."""
    plan = {"pairs": PAIRS, "sample": PAIRS, "subjects": ("s",), "raters_per_unit": 15}
    study = make_study(**plan, rubrics=["refusal"], synthetic=True)
    units = study.rubric_units(study.rubrics["refusal"])
    table = crowd(3, pairs=len(units))
    table = table[table["rubric"] == "level"].assign(rubric="refusal")
    names = dict(zip(table["unit_id"].unique(), units, strict=True))
    table["unit_id"] = table["unit_id"].map(names)
    import_ratings(study, validate_ratings(table, "crowd"), "synthetic crowd")
    return study.folder


@pytest.fixture
def study(make_study) -> Study:
    return make_study()


@pytest.mark.slow
def test_a_crowds_faults_are_named_and_the_report_leaves_them_out(folder, tmp_path, run: Run):
    said = run.ok("quality", folder, "--out", tmp_path / "quality.csv")
    table = read_table(tmp_path / "quality.csv").set_index("rater_id")
    assert set(table.index[table["flagged"] != ""]) == FAULTS.keys()
    assert "hasty: takes" in said
    assert "good-0:" not in said

    for rater in FAULTS:
        run.ok("exclude", folder, rater, "--reason", table.loc[rater, "reason"])
    run.ok("report", folder, "--out", tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text("utf-8")
    assert "Excluded: 5 of 13 annotators" in page
    assert "takes 1" in page  # the reason, in the notes
    report = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    assert any("careless: " in note for note in report["study"]["notes"])

    run.ok("exclude", folder, "hasty", "--reason", "a fast reader, as the labels show", "--readmit")
    with open_study(folder) as study:
        assert oversight(study.store).exclusions.keys() == FAULTS.keys() - {"hasty"}
        assert len(study.ratings()) == 13 * 2 * PAIRS  # nothing is deleted


@pytest.mark.slow
def test_only_what_the_settings_name_stops_a_rater_and_a_persons_word_stands(folder, run: Run):
    def stopped() -> dict[str, Any]:
        run.ok("quality", folder, "--stop")
        with open_study(folder) as study:
            return dict(oversight(study.store).exclusions)

    assert stopped() == {}
    change_config(folder, {"quality": {"stop": ["fast", "run"]}})
    exclusions = stopped()
    assert exclusions.keys() == {"hasty", "liner"}
    assert {each.done_by for each in exclusions.values()} == {STOPPED_BY}
    assert "others' time" in exclusions["hasty"].reason
    with open_study(folder) as study:
        assert AnnotationDesk(study).end_reason("hasty") == "excluded"
    run.ok("exclude", folder, "hasty", "--reason", "reads fast", "--readmit")
    assert stopped().keys() == {"liner"}


@pytest.mark.journey
def test_a_rule_of_quality_that_cannot_be_is_named(study, run: Run):
    folder, file = study.folder, study.folder / "study.toml"
    settings = file.read_text("utf-8")
    for line, sentence in (
        ("stop = ['slow']", "quality.stop.0"),
        ("fast = 3", "quality.fast"),
        ("speed = 1", "quality.speed is no known key"),
    ):
        file.write_text(f"{settings}\n[quality]\n{line}\n", "utf-8")
        assert sentence in run.refused("quality", folder)


@pytest.mark.slow
def test_adjudication_by_file(folder, tmp_path, run: Run):
    queue = tmp_path / "queue.csv"
    run.ok("adjudicate", folder, "--out", queue)
    assert "good-0" not in queue.read_text("utf-8")
    table = read_table(queue).assign(label="1", reason="plainly so").head(4)
    table.to_csv(queue, index=False)
    given = ("--decisions", queue, "--by", "chair", "--out", tmp_path / "left.csv")
    for counts in ("4; known already: 0", "0; known already: 4"):
        assert f"Decisions by chair imported: {counts}." in run.ok("adjudicate", folder, *given)
    assert set(table["unit_id"]).isdisjoint(read_table(tmp_path / "left.csv")["unit_id"])
    with open_study(folder) as study:
        kinds = study.ratings()["rater_kind"].value_counts()
    assert kinds["adjudicator"] == 4
    run.ok("report", folder, "--out", tmp_path / "report")
    results = pd.read_csv(tmp_path / "report" / "results.csv")
    people = results.query("statistic == 'weighted_kappa_quadratic' and rater_a == 'humans'")
    # Of 13 people: the adjudicator is none of them.
    assert people["note"].str.startswith("mean over 78 pairs of raters").any()


@pytest.mark.journey
def test_a_study_without_labels(study, run: Run):
    for verb, says in (
        ("progress", "There is no estimate of the time left yet."),
        ("quality", "Nobody has labelled yet."),
        ("adjudicate", "Nothing is left to adjudicate."),
        ("session", "Nobody has taken part yet"),
    ):
        assert says in run.ok(verb, study.folder)


@pytest.mark.slow
def test_a_link_that_works_once_is_shown_on_a_terminal_and_into_no_log(study) -> None:
    says = "from pathlib import Path\nfrom evenhand.cli.main import print_lead_link\n"
    says += f"print_lead_link(Path({str(study.folder)!r}), 'http://localhost:8501')\n"
    logged = python("-c", says, check=True).stdout
    assert "lead=" not in logged
    assert f"run evenhand lead {study.folder}" in logged
    ours, theirs = pty.openpty()
    python("-c", says, capture_output=False, stdout=theirs, check=True)
    os.close(theirs)
    assert "http://localhost:8501/?lead=" in os.read(ours, 10_000).decode()
    os.close(ours)


def set_up(study: Study, toml: str) -> str:
    file = study.folder / "study.toml"
    file.write_text(f"{file.read_text('utf-8')}\n{toml}", "utf-8")
    return str(study.folder)


def address(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def test_invites_are_printed_one_to_a_line(study, run: Run) -> None:
    folder = str(study.folder)
    base = ["--url", "https://label.example.org/study"]
    said = run.ok("invite", folder, "--for", "anna", "--for", "bo", *base)
    lines = [line.split("\t") for line in said.splitlines()]
    assert [rater for rater, _ in lines] == ["anna", "bo"]
    for rater, url in lines:
        assert url.startswith("https://label.example.org/study/?invite=")
        assert admit(study, address(url)).rater_id == rater
    codes = [line.split("\t")[0] for line in run.ok("invite", folder, "--count", "3").splitlines()]
    assert len(set(codes)) == 3
    assert all(code.startswith("r-") for code in codes)
    assert "anna: links revoked: 1" in run.ok("invite", folder, "--for", "anna", "--revoke")
    assert run.ok("lead", folder, *base).startswith(f"{base[1]}/?lead=")
    refused("revoked", admit, study, address(lines[0][1]))


@pytest.mark.slow
def test_a_password_comes_by_a_pipe_or_the_environment_never_as_an_argument(
    study, monkeypatch, run, capsys
):
    password, account = "correct horse battery", ("account", str(study.folder))
    monkeypatch.delenv(session_verbs.PASSWORD_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO(password + "\n"))
    assert main([*account, "add", "ada"]) == 0
    monkeypatch.setenv(session_verbs.PASSWORD_VARIABLE, password + "!")
    assert main([*account, "add", "lea", "--role", "lead"]) == 0
    said = capsys.readouterr()
    assert password not in said.out + said.err
    for name, word, role in (("ada", password, "expert"), ("lea", password + "!", "lead")):
        assert read_login(study.store, sign_in(study.store, name, word, "", "")).role == role
    run.ok(*account, "disable", "ada")
    with pytest.raises(Refused):
        sign_in(study.store, "ada", password, "", "")
    assert "there is no account 'ada'" in run.refused(*account, "disable", "ada")
    monkeypatch.setenv(session_verbs.PASSWORD_VARIABLE, "short")
    assert "a password has 10 to 200 characters" in run.refused(*account, "add", "bo")
    assert run(*account, "add", "bo", password).returncode == 2  # no such argument


def test_a_crowd_session_from_the_link_to_the_tables(study, tmp_path, run, capsys):
    ids = {"PROLIFIC_PID": "5f1e" * 6, "STUDY_ID": "5f1f" * 6, "SESSION_ID": "5f20" * 6}
    person, folder = ids["PROLIFIC_PID"], set_up(study, CODES)
    with open_study(folder) as opened:
        invited = run("invite", folder, "--prolific")
        assert "Set places in [prolific]" in invited.stderr
        url = invited.stdout.strip()
        for name, value in ids.items():
            url = url.replace(f"{{{{%{name}%}}}}", value)
        rater = admit(opened, address(url)).rater_id
        work_through(AnnotationDesk(opened), rater, 1, seconds=30.0)
        assert AnnotationDesk(opened).next_sheet(rater)
    export = tmp_path / "prolific.csv"
    row = f"{ids['SESSION_ID']},{person},RETURNED"
    export.write_text(f"Submission id,Participant id,Status\n{row}\n")
    names = ("times", "participants", "background", "attention")
    files = {name: tmp_path / f"{name}.csv" for name in names}
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    said = run.ok("session", folder, "--submissions", export, *options)
    assert f"{rater}: returned; places given back: 1." in said
    times = read_table(files["times"])
    assert times.loc[0, ["rater_id", "state", "units"]].tolist() == [rater, "returned", "1"]
    assert read_table(files["participants"]).loc[0, "participant_id"] == person
    for name in ("times", "background", "attention"):
        assert person not in files[name].read_text()
    run.ok("session", folder, "--readmit", person)
    said = run.refused("session", folder, "--timed-out", rater, "--rejected", "nobody")
    assert "nobody called 'nobody' has taken part" in said
    said = run.ok("session", folder)  # nothing was done by halves
    assert rater in said
    assert "labelling" in said


@pytest.mark.parametrize(("entry", "warned"), [("open", True), ("invite", False)])
def test_an_open_study_that_others_reach_is_warned_of(study, capsys, monkeypatch, entry, warned):
    folder = set_up(study, f'[session]\nentry = "{entry}"\n')
    served = []
    monkeypatch.setattr(annotate_app, "serve", lambda *_, **options: served.append(options))
    assert main(["annotate", folder, "--url", "https://study.example.org"]) == 0
    assert served[0]["public_host"] == "study.example.org"
    said = capsys.readouterr()
    assert ("any annotator code" in said.err) is warned
    assert f"run evenhand lead {folder} on this machine." in said.out


def test_annotate_says_what_a_single_sign_on_lacks(study, run: Run, monkeypatch) -> None:
    monkeypatch.delenv("EVENHAND_OIDC_SECRET", raising=False)
    page = (Path(__file__).parents[3] / "docs" / "serving.md").read_text("utf-8")
    (as_documented,) = re.findall(r"```toml\n(\[oidc\].*?)```", page, re.S)
    folder = set_up(study, as_documented)
    assert "EVENHAND_OIDC_SECRET, which is not set" in run.refused("annotate", folder)
