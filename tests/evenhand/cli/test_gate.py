"""`gate` in CI: its exit codes, what it prints and writes, and that no crash reads as not met."""

import json
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from evenhand.reporting.gate import Check, Gate, junit_xml, summary_markdown
from evenhand.rubrics.loading import rubric_text
from tests.commands import Run, python

HOSTILE = 'g<&>"]]>\x0b```'
RULE = "cohen_kappa.low > 0.3"
FEW = ("--resamples", "100")


def rated(path: Path, said: Mapping[str, np.ndarray], people: Collection[str]) -> Path:
    """A file of ratings, yes or no, by these people and by graders."""
    rows = [
        (f"u{n}", who, "human" if who in people else "model", "yes" if yes else "no")
        for who, given in said.items()
        for n, yes in enumerate(given)
    ]
    header = ["unit_id", "rater_id", "rater_kind", "label"]
    pd.DataFrame(rows, columns=header).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A baseline of `g`, and what it and others say now: `worse`, `few` on a part of the units."""
    place, rng = tmp_path_factory.mktemp("gate"), np.random.default_rng(4)
    truth = rng.random(200) < 0.5
    said = {rater: np.where(rng.random(200) < 0.95, truth, ~truth) for rater in ("ann", "ben", "g")}
    said["worse"] = said[HOSTILE] = rng.random(200) < 0.5
    said["some"] = np.where(np.arange(200) % 20 == 0, ~said["g"], said["g"])
    return rated(place / "ratings.csv", said, ("ann", "ben")).parent


@pytest.fixture
def saved(run: Run, folder: Path) -> Path:
    """The baseline's file."""
    file = folder / "baseline.json"
    options = ("--affirmative", "yes", "--set", "drift_margin=0.12", "--file", file)
    said = run.ok("baseline", "save", folder / "ratings.csv", "--grader", "g", *options)
    assert f"Saved 200 items with labels of 2 annotators and of g in {file}." in said
    assert "moves by less than 0.12." in said
    return file


@pytest.mark.parametrize(
    ("grader", "rule", "code", "says"),
    [
        ("g", RULE, 0, "met      g is unchanged."),
        pytest.param("worse", RULE, 1, "not met  worse has changed.", marks=pytest.mark.slow),
        pytest.param("some", RULE, 3, "inconclusive  Inconclusive: the labels do not show whether "
                     "some has", marks=pytest.mark.slow),
        ("g", "cohen_kappa > 1", 1, "met      g is unchanged."),
    ],
)  # fmt: skip
def test_a_rule_and_a_baseline_must_both_be_met(run, folder, saved, grader, rule, code, says):
    asked = (folder / "ratings.csv", "--grader", grader, "--baseline", saved, *FEW)
    done = run("gate", *asked)
    assert (done.returncode, done.stderr) == ((0 if grader == "g" else code), "")
    assert done.stdout.startswith(says)
    both = run("gate", *asked, "--require", rule)
    assert both.returncode == code, both
    marks = ("met     ", "not met ", "inconclu")
    assert len([line for line in both.stdout.splitlines() if line[:8] in marks]) == 2


@pytest.mark.slow
def test_json_is_one_object_and_nothing_else(run: Run, folder: Path, saved: Path) -> None:
    asked = ("--require", RULE, "--baseline", saved, "--json")
    done = run("gate", folder / "ratings.csv", "--grader", "worse", *asked)
    found = json.loads(done.stdout)
    assert (done.returncode, found["schema"], found["outcome"]) == (1, 1, "not_met")
    rule, drift = found["checks"]
    assert (rule["name"], rule["outcome"]) == (RULE, "not_met")
    assert rule["figures"]["value"] < rule["figures"]["required"] == 0.3
    assert drift["figures"]["verdict"] == "changed"
    assert drift["figures"]["drift_high"] < -0.12
    assert drift["figures"]["drift_answered"] == 1.0
    assert drift["figures"]["drift_kappa_before_low"] > 0.5
    assert "No scale is declared" in found["notes"][1]
    wrong = run("gate", folder / "ratings.csv", "--grader", "x", *asked)
    assert wrong.returncode == 2
    assert json.loads(wrong.stdout)["outcome"] == "error"
    assert "there is no grader 'x'" in json.loads(wrong.stdout)["error"]


@pytest.mark.slow
def test_junit_and_summary_hold_whatever_names_hold(run, folder, saved, tmp_path):
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    asked = ("--require", RULE, "--baseline", saved, "--junit", junit, "--summary", summary)
    done = run("gate", folder / "ratings.csv", "--grader", HOSTILE, *asked)
    assert done.returncode == 1
    suites = ElementTree.parse(junit).getroot()  # noqa: S314 - our own
    assert suites.attrib == {"tests": "2", "failures": "2", "errors": "0"}
    first, second = suites.iter("testcase")
    assert first.attrib["classname"].endswith('g<&>"]]>‹U+000B›```')
    failure = second.find("failure")
    assert failure is not None
    assert failure.attrib["message"].startswith('g<&>"]]>‹U+000B›``` has changed.')
    page = summary.read_text("utf-8")
    assert page.startswith("### evenhand gate: not met\n\n`````text\n")
    assert page.endswith("\n`````\n")


def test_what_is_inconclusive_is_an_error_to_junit_and_never_a_pass() -> None:
    checks = [Check(name, name, f"{name}.") for name in ("met", "inconclusive", "not_met")]
    text = junit_xml(Gate("r.csv", "g", tuple(checks)))
    suites = ElementTree.fromstring(text)  # noqa: S314 - our own
    tags = [[each.tag for each in case] for case in suites.iter("testcase")]
    assert tags == [["system-out"], ["error"], ["failure"]]
    assert Gate("r.csv", "g", tuple(checks)).outcome == "not_met"
    assert "inconclusive" in summary_markdown(Gate("r.csv", "g", (checks[1],)))


@pytest.mark.slow
def test_the_baseline_is_compared_with_what_is_named(run, folder, saved):
    file = folder / "ratings.csv"
    said = run.refused("baseline", "compare", file, "--grader", "worse", "--file", saved)
    assert "is of 'g', not of 'worse'; write --grader g --against worse if" in said
    named = ("--grader", "g", "--file", saved, "--against", "worse")
    compared = run.ok("baseline", "compare", file, *named)
    gate = run("gate", file, "--grader", "worse", "--baseline", saved)
    assert gate.stdout.endswith(compared)


@pytest.mark.slow
def test_wide_files_and_a_rubrics_file(run: Run, folder: Path, tmp_path: Path) -> None:
    """As people have them: a column for each rater, and a rubric that is a file of their own."""
    long = pd.read_csv(folder / "ratings.csv")
    wide = long.pivot(index="unit_id", columns="rater_id", values="label")
    wide = wide.replace({"yes": "5", "no": "1"})[["ann", "ben", "g", "worse"]].reset_index()
    file, baseline, rubric = (tmp_path / name for name in ("wide.csv", "b.json", "mine.toml"))
    wide.to_csv(file, index=False)
    rubric.write_text(rubric_text("refusal").replace('name = "refusal"', 'name = "mine"', 1))
    people = ("--human", "ann,ben", "--model", "g", "--rubric", rubric)
    run.ok("baseline", "save", file, "--grader", "g", "--file", baseline, *people)
    assert json.loads(baseline.read_text())["scales"].keys() == {"mine"}
    wide[["unit_id", "worse"]].to_csv(file, index=False)
    asked = ("--grader", "worse", "--model", "worse", "--baseline", baseline)
    for more in ((), ("--rubric", "mine"), ("--rubric", rubric)):
        done = run("gate", file, *asked, *more)
        assert done.returncode == 1, done
        assert "worse has changed on mine." in done.stdout


@pytest.mark.parametrize(
    ("fault", "code"),
    [(KeyError("kappa"), 2), (MemoryError(), 2), (SystemExit(1), 2), (SystemExit("it gives up"), 2),
     (OSError(28, "No space left on device"), 2), (KeyboardInterrupt(), 130)],
    ids=repr,
)  # fmt: skip
def test_a_fault_within_is_no_verdict(run, monkeypatch, fault, code):
    def broken(*_words: object, **_more: object) -> None:
        raise fault

    monkeypatch.setattr("evenhand.reporting.gate.gate", broken)
    done = run("gate", "ratings.csv", "--grader", "g", "--require", RULE, "--json")
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr


WAITING = """
import signal, sys, time
# A shell lets what it starts in the background ignore Ctrl-C, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
from evenhand.cli.main import main
import evenhand.reporting.gate as room

def gate(*words, **more):
    print("ready", file=sys.stderr, flush=True)
    time.sleep(60)

room.gate = gate
sys.exit(main(["gate", "ratings.csv", "--grader", "g", "--require", "coverage > 0"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_whoever_is_stopped_has_decided_nothing(number: int, code: int) -> None:
    program = [sys.executable, "-P", "-c", WAITING]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as gate:
        assert gate.stderr
        assert "ready" in gate.stderr.readline()
        gate.send_signal(number)
        gate.stderr.read()
        assert gate.wait(timeout=20) == code


@pytest.mark.slow
def test_a_full_disk_is_no_verdict(folder: Path, saved: Path) -> None:
    asked = ("--grader", "worse", "--baseline", saved, "--json")
    with Path("/dev/full").open("w") as full:
        how = {"capture_output": False, "stdout": full, "stderr": subprocess.PIPE}
        done = python("-m", "evenhand", "gate", folder / "ratings.csv", *asked, **how)
    assert done.returncode == 2
    assert "no space left on device" in done.stderr.lower()
