"""What a study takes from files: under its own names, and without codes for no label."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from evenhand.study import open_study
from tests.evenhand.cli.commands import Run

LABELS = ("yes", "no", "99", "yes", "NO", "yes\u200b")


@pytest.fixture
def items(tmp_path: Path) -> Path:
    """Six texts with a judge's labels, of which one is a code and two are spelled otherwise."""
    file = tmp_path / "items.csv"
    rows = [("id", "response", "side", "judge")]
    rows += [(f"i{n}", f"A text of number {n}.", "left", label) for n, label in enumerate(LABELS)]
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows(rows)
    return file


@pytest.fixture
def study(run: Run, items: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    done = run("new", folder, "--items", items, "--question", "Good?", "--options", "yes,no",
               "--judge", "judge", "--missing", "99")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def labels_of(folder: Path, rater: str) -> list[str]:
    with open_study(folder) as study:
        ratings = study.ratings()
        return ratings.loc[ratings["rater_id"] == rater, "label"].tolist()


def given_by(folder: Path, rater: str, label: str = "yes") -> Path:
    """A file of labels by a rater on all items of a study, and 99 on the last."""
    with open_study(folder) as study:
        units = study.units("all")["unit_id"].tolist()
    file = folder.parent / "labels.csv"
    labels = [label] * (len(units) - 1) + ["99"]
    lines = [f"{unit} ,{rater},human,{each}" for unit, each in zip(units, labels, strict=True)]
    file.write_text("\n".join(["unit_id,rater_id,rater_kind,label", *lines]) + "\n")
    return file


def test_a_judges_codes_are_no_labels(run: Run, study: Path, items: Path, tmp_path: Path) -> None:
    assert labels_of(study, "judge") == ["yes", "no", "yes", "no", "yes"]
    asked = ("--question", "Good?", "--options", "yes,no")
    refused = run("new", tmp_path / "s", "--items", items, *asked, "--judge", "judge")
    assert refused.returncode == 2
    assert "row 4: judge is '99', which is no option" in refused.stderr
    assert "--missing" in refused.stderr
    refused = run("new", tmp_path / "s", "--items", items, *asked, "--missing", "99")
    assert "--missing goes with --judge" in refused.stderr


@pytest.mark.parametrize("declared", [True, False])
def test_an_import_leaves_codes_out(run: Run, study: Path, declared: bool) -> None:
    file, options = given_by(study, "ann"), ["--missing", "99"]
    refused = run("import", study, file)
    assert refused.returncode == 2
    if declared:
        settings = study / "study.toml"
        text = settings.read_text("utf-8")
        assert "\nmissing = []\n" in text
        settings.write_text(text.replace("\nmissing = []\n", '\nmissing = ["99"]\n'), "utf-8")
        options = []
    done = run("import", study, file, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Read as no label: 99 (1)" in done.stdout
    assert labels_of(study, "ann") == ["yes"] * 5


def test_a_rater_who_looks_like_another_is_asked_about(run: Run, study: Path) -> None:
    missing = ("--missing", "99")
    assert run("import", study, given_by(study, "ann"), *missing).returncode == 0
    file = given_by(study, "Ann", "no")
    refused = run("import", study, file, *missing)
    assert refused.returncode == 2
    assert "'Ann' looks like 'ann'" in refused.stderr
    assert run("import", study, file, *missing, "--no-normalise").returncode == 0
    assert labels_of(study, "Ann") == ["no"] * 5
