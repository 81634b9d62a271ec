"""What a verb makes of its words: mistyped ones, and options that would change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.cli.main import main


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("reprot study", "invalid choice: 'reprot' (did you mean report?)"),
        ("rubric sugest", "invalid choice: 'sugest' (did you mean suggest?)"),
        ("frobnicate", "invalid choice: 'frobnicate'; see `evenhand --help`"),
        ("--vesion", "unrecognized option: --vesion (did you mean --version?)"),
        ("report study --ot x", "unrecognized option: --ot (did you mean --out?)"),
        ("report study --ot=x", "unrecognized option: --ot (did you mean --out?)"),
        # A required option is not called missing where it was mistyped.
        ("gate study --grader g --requier r", "unrecognized option: --requier (did you mean --req"),
        ("plan --sides a,b", "evenhand plan: --sides says what a file means: write it once with"),
        ("report study other", "unrecognized arguments: other"),
        ("gate study", "the following arguments are required: --grader"),
        ("check labels.csv --level nominl", "invalid choice: 'nominl' (choose from"),
    ],
)
def test_a_mistyped_word_is_one_sentence_with_what_was_meant(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert len(said.err.splitlines()) == 1
    assert said.out == ""


@pytest.mark.parametrize(
    "words",
    [
        ["exclude", "nowhere", "ann", "--reason", "--no reason, she said"],
        ["exclude", "nowhere", "ann", "--reas", "in short"],
        ["exclude", "--reason=report", "--", "nowhere", "ann"],
    ],
)
def test_what_only_looks_mistyped_is_let_pass(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "nowhere is not a study" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("plan --rubric refusal", "--rubric is about the labels of a pilot"),
        ("plan labels.csv --power 0.9", "--power is an assumption for planning without a pilot"),
        ("plan . --categories 1,2", "--categories is for a ratings file"),
        ("select . --units units.csv", "--units is for a ratings file"),
        ("gate . --grader g --require kappa>0 --level ordinal", "--level is for a ratings file"),
        ("invite . --revoke --for ann --hours 3", "--hours is about new links"),
        ("account . disable ann --role lead", "--role is only for a login that is added"),
        ("adjudicate . --by ann", "--by says who made the decisions"),
        ("grade . --grader baseline:lexical --batch --cancel --dry-run", "--dry-run asks nothing"),
        ("demo --no-app --port 8600", "--port: not allowed with argument --no-app"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    words: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--rubric", "--cluster"])
def test_what_a_study_may_be_told_is_let_pass(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["gate", ".", "--grader", "g", "--require", "kappa>0", option, "x"]) == 2
    assert ". is not a study" in capsys.readouterr().err
