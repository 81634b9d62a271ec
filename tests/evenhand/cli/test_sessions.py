"""Invites, accounts and sessions by the verbs that people type."""

from __future__ import annotations

import importlib
import io
import re
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from evenhand.cli import lead as session_verbs
from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.access.admission import admit
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.tables.formats import read_table
from tests.study.access.roles import role_of

PASSWORD = "correct horse battery"
PROLIFIC = '[prolific]\ncomplete = "C"\nscreened_out = "S"\nno_consent = "N"\n'


@pytest.fixture
def study(make_study) -> Study:
    return make_study()


def set_up(study: Study, toml: str) -> str:
    with (study.folder / "study.toml").open("a", encoding="utf-8") as file:
        file.write("\n" + toml)
    return str(study.folder)


def address(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def test_invites_are_printed_one_to_a_line(study, capsys) -> None:
    folder = str(study.folder)
    base = ["--url", "https://label.example.org/study"]
    assert main(["invite", folder, "--for", "anna", "--for", "bo", *base]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [rater for rater, _ in lines] == ["anna", "bo"]
    for rater, url in lines:
        assert url.startswith("https://label.example.org/study/?invite=")
        assert admit(study, address(url)).rater_id == rater
    assert main(["invite", folder, "--count", "3"]) == 0
    codes = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert len(set(codes)) == 3
    assert all(code.startswith("r-") for code in codes)
    assert main(["invite", folder, "--for", "anna", "--revoke"]) == 0
    assert "anna: links revoked: 1" in capsys.readouterr().out
    with pytest.raises(InputError, match="revoked"):
        admit(study, address(lines[0][1]))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--for", "a b"], "'a b' is no rater code"),
        (["--count", "0"], "--count must be from 1 to 10,000"),
        (["--count", "2", "--revoke"], "--revoke needs to know whose links"),
        (["--for", "a", "--hours", "0"], "more than 0 and at most"),
        (
            ["--for", "a", "--url", "label.example.org"],
            "is not a valid address; write one such as https://",
        ),
        (
            ["--for", "a", "--url", "javascript:alert(1)"],
            "is not a valid address; write one such as https://",
        ),
        (["--prolific"], "study.toml has no [prolific] section"),
        (["--for", "a", "--prolific"], "not allowed with argument"),
    ],
)
def test_an_invite_that_cannot_be_made(study, capsys, options, sentence) -> None:
    assert main(["invite", str(study.folder), *options]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_a_password_comes_by_a_pipe_or_the_environment_never_as_an_argument(
    study, monkeypatch, capsys
) -> None:
    folder = str(study.folder)
    monkeypatch.delenv(session_verbs.PASSWORD_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD + "\n"))
    assert main(["account", folder, "add", "ada"]) == 0
    monkeypatch.setenv(session_verbs.PASSWORD_VARIABLE, PASSWORD + "!")
    assert main(["account", folder, "add", "lea", "--role", "lead"]) == 0
    said = capsys.readouterr()
    assert PASSWORD not in said.out + said.err
    assert role_of(study.store, "ada", PASSWORD) == "expert"
    assert role_of(study.store, "lea", PASSWORD + "!") == "lead"
    assert main(["account", folder, "disable", "ada"]) == 0
    assert role_of(study.store, "ada", PASSWORD) is None
    assert main(["account", folder, "disable", "ada"]) == 2
    assert "there is no account 'ada'" in capsys.readouterr().err
    monkeypatch.setenv(session_verbs.PASSWORD_VARIABLE, "short")
    assert main(["account", folder, "add", "bo"]) == 2
    assert "a password has 10 to 200 characters" in capsys.readouterr().err
    assert main(["account", folder, "add", "bo", PASSWORD]) == 2  # no such argument


IDS = {"PROLIFIC_PID": "5f1e" * 6, "STUDY_ID": "5f1f" * 6, "SESSION_ID": "5f20" * 6}


def test_a_crowd_session_from_the_link_to_the_tables(study, tmp_path: Path, capsys) -> None:
    folder = set_up(study, PROLIFIC)
    with open_study(folder) as opened:
        assert main(["invite", folder, "--prolific"]) == 0
        said = capsys.readouterr()
        assert "Set places in [prolific]" in said.err
        url = said.out.strip()
        for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"):
            url = url.replace(f"{{{{%{name}%}}}}", IDS[name])
        rater = admit(opened, address(url)).rater_id
        desk = AnnotationDesk(opened)
        task = desk.next_task(rater)
        desk.submit(rater, task.task_id, "a", task.rubric.categories[0], 30.0)
        desk.next_task(rater)
    export = tmp_path / "prolific.csv"
    export.write_text(
        "Submission id,Participant id,Status\n{SESSION_ID},{PROLIFIC_PID},RETURNED\n".format_map(
            IDS
        )
    )
    files = {
        name: tmp_path / f"{name}.csv"
        for name in ("times", "participants", "background", "attention")
    }
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    assert main(["session", folder, "--submissions", str(export), *options]) == 0
    assert f"{rater}: returned; places given back: 1." in capsys.readouterr().out
    times = read_table(files["times"])
    assert times.loc[0, ["rater_id", "state", "units"]].tolist() == [rater, "returned", "1"]
    assert read_table(files["participants"]).loc[0, "participant_id"] == IDS["PROLIFIC_PID"]
    for name in ("times", "background", "attention"):
        assert IDS["PROLIFIC_PID"] not in files[name].read_text()
    assert main(["session", folder, "--readmit", IDS["PROLIFIC_PID"]]) == 0
    assert main(["session", folder]) == 0
    said = capsys.readouterr().out
    assert rater in said
    assert "labelling" in said
    assert main(["session", folder, "--timed-out", rater, "--rejected", "nobody"]) == 2
    assert "nobody called 'nobody' has taken part" in capsys.readouterr().err
    assert main(["session", folder]) == 0
    assert "labelling" in capsys.readouterr().out  # nothing was done by halves


def test_a_study_that_nobody_has_come_to(study, capsys) -> None:
    assert main(["session", str(study.folder)]) == 0
    assert "Nobody has taken part yet" in capsys.readouterr().out


@pytest.mark.parametrize(("entry", "warned"), [("open", True), ("invite", False)])
def test_an_open_study_that_others_reach_is_warned_of(
    study, capsys, monkeypatch, entry, warned
) -> None:
    folder = set_up(study, f'[session]\nentry = "{entry}"\n')
    served = []
    starting = importlib.import_module(
        "evenhand.annotate_app.serve"
    )  # the package's `serve` hides it
    monkeypatch.setattr(starting, "serve", lambda *_, **options: served.append(options))
    assert main(["annotate", folder, "--url", "https://study.example.org"]) == 0
    assert served[0]["public_host"] == "study.example.org"
    assert ("any rater code" in capsys.readouterr().err) is warned


def test_annotate_says_what_a_single_sign_on_lacks(study, capsys, monkeypatch) -> None:
    monkeypatch.delenv("EVENHAND_OIDC_SECRET", raising=False)
    page = (Path(__file__).parents[3] / "docs" / "serving.md").read_text("utf-8")
    (as_documented,) = re.findall(r"```toml\n(\[oidc\].*?)```", page, re.S)
    folder = set_up(study, as_documented)
    assert main(["annotate", folder]) == 2
    assert "EVENHAND_OIDC_SECRET, which is not set" in capsys.readouterr().err
