"""`gate` in CI: its exit codes, what it prints and writes, and that no crash reads as not met."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from evenhand.reporting.gate import Check, Gate, junit_xml, summary_markdown
from tests.commands import Run, python

HOSTILE = 'g<&>"]]>\x0b```'
RULE = "cohen_kappa.low > 0.3"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A baseline of `g`, and what it and others say now: `worse`, `few` on a part of the units."""
    place, rng = tmp_path_factory.mktemp("gate"), np.random.default_rng(4)
    truth, rows = rng.random(200) < 0.5, {}
    for rater, keep in {"ann": 0.95, "ben": 0.95, "g": 0.95}.items():
        rows[rater] = np.where(rng.random(200) < keep, truth, ~truth)
    rows["worse"] = rng.random(200) < 0.5
    rows["some"] = np.where(np.arange(200) % 20 == 0, ~rows["g"], rows["g"])
    rows[HOSTILE] = rows["worse"]
    table = pd.DataFrame(
        [
            (f"u{n}", who, "human" if who in ("ann", "ben") else "model", "yes" if yes else "no")
            for who, said in rows.items()
            for n, yes in enumerate(said)
        ],
        columns=["unit_id", "rater_id", "rater_kind", "label"],
    )
    table.to_csv(place / "ratings.csv", index=False)
    return place


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
    ("grader", "code", "says"),
    [
        ("g", 0, "met      g is unchanged."),
        ("worse", 1, "not met  worse has changed."),
        ("some", 3, "inconclusive  Inconclusive: the labels do not show whether some has"),
    ],
)
def test_a_baseline_opens_the_gate_or_not(run, folder, saved, grader, code, says):
    done = run("gate", folder / "ratings.csv", "--grader", grader, "--baseline", saved)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith(says)
    named = ("--grader", "g", "--file", saved, "--against", grader)
    assert done.stdout.endswith(run.ok("baseline", "compare", folder / "ratings.csv", *named))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grader", "rule", "code"),
    [("g", RULE, 0), ("worse", RULE, 1), ("some", RULE, 3), ("g", "cohen_kappa > 1", 1)],
)
def test_a_rule_and_a_baseline_must_both_be_met(run, folder, saved, grader, rule, code):
    asked = ("--grader", grader, "--require", rule, "--baseline", saved)
    done = run("gate", folder / "ratings.csv", *asked)
    assert done.returncode == code, done
    assert len([line for line in done.stdout.splitlines() if line[:8] in MARKS]) == 2


MARKS = ("met     ", "not met ", "inconclu")


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


def test_what_we_inconclusive_is_an_error_to_junit_and_never_a_pass() -> None:
    checks = [Check(name, name, f"{name}.") for name in ("met", "inconclusive", "not_met")]
    text = junit_xml(Gate("r.csv", "g", tuple(checks)))
    suites = ElementTree.fromstring(text)  # noqa: S314 - our own
    tags = [[each.tag for each in case] for case in suites.iter("testcase")]
    assert tags == [["system-out"], ["error"], ["failure"]]
    assert Gate("r.csv", "g", tuple(checks)).outcome == "not_met"
    assert "inconclusive" in summary_markdown(Gate("r.csv", "g", (checks[1],)))


def test_the_baseline_must_be_of_the_grader_that_is_named(run, folder, saved):
    said = run.refused("baseline", "compare", folder, "--grader", "worse", "--file", saved)
    assert "is of 'g', not of 'worse'; write --grader g --against worse if" in said


@pytest.mark.slow
def test_wide_files_and_a_rubrics_file(run: Run, folder: Path, tmp_path: Path) -> None:
    """As people have them: a column for each rater, and a rubric that is a file of their own."""
    long = pd.read_csv(folder / "ratings.csv")
    wide = long.pivot(index="unit_id", columns="rater_id", values="label")
    wide = wide.replace({"yes": "5", "no": "1"})[["ann", "ben", "g", "worse"]].reset_index()
    file, baseline = tmp_path / "wide.csv", tmp_path / "b.json"
    wide.to_csv(file, index=False)
    rubric = tmp_path / "mine.toml"
    shipped = Path(__file__).parents[3] / "rubrics" / "refusal.toml"
    rubric.write_text(shipped.read_text("utf-8").replace('name = "refusal"', 'name = "mine"', 1))
    people = ("--human", "ann,ben", "--model", "g", "--rubric", rubric)
    done = run("baseline", "save", file, "--grader", "g", "--file", baseline, *people)
    assert done.returncode == 0, done.stderr
    assert json.loads(baseline.read_text())["scales"].keys() == {"mine"}
    wide[["unit_id", "worse"]].to_csv(file, index=False)
    asked = ("--grader", "worse", "--model", "worse", "--baseline", baseline)
    for more in ((), ("--rubric", "mine"), ("--rubric", rubric)):
        done = run("gate", file, *asked, *more)
        assert done.returncode == 1, done
        assert "worse has changed on mine." in done.stdout


# No crash ends in 1


@pytest.mark.parametrize(
    ("fault", "code"),
    [(KeyError("kappa"), 2), (MemoryError(), 2), (RecursionError(), 2), (SystemExit(1), 2),
     (OSError(28, "No space left on device"), 2), (KeyboardInterrupt(), 130),
     (SystemExit("some library gives up"), 2)],
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
