"""`gate`, `baseline`, `select`, `plan` and `calibrate` as they are run: exit codes, what they
print and write, and that no crash reads as not met.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.reporting import gate as gates
from evenhand.reporting import planning
from evenhand.study import Study, open_study
from evenhand.study.store.grades import GradeAttempt
from harness.studies import with_labels
from tests.commands import Run, python

pytestmark = pytest.mark.journey

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


@pytest.mark.parametrize(("grader", "rule", "code", "says"), [
    ("g", RULE, 0, "met      g is unchanged."),
    pytest.param("worse", RULE, 1, "not met  worse has changed.", marks=pytest.mark.slow),
    pytest.param("some", RULE, 3, "inconclusive  Inconclusive: the labels do not show whether "
                 "some has", marks=pytest.mark.slow),
    ("g", "cohen_kappa > 1", 1, "met      g is unchanged."),
])  # fmt: skip
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
def test_junit_and_summary_hold_whatever_names_hold(run, folder, saved, tmp_path):
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    asked = ("--require", RULE, "--baseline", saved, "--junit", junit, "--summary", summary)
    assert run("gate", folder / "ratings.csv", "--grader", HOSTILE, *asked).returncode == 1
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
    checks = [gates.Check(name, name, f"{name}.") for name in ("met", "inconclusive", "not_met")]
    text = gates.junit_xml(gates.Gate("r.csv", "g", tuple(checks)))
    suites = ElementTree.fromstring(text)  # noqa: S314 - our own
    tags = [[each.tag for each in case] for case in suites.iter("testcase")]
    assert tags == [["system-out"], ["error"], ["failure"]]
    assert gates.Gate("r.csv", "g", tuple(checks)).outcome == "not_met"
    assert "inconclusive" in gates.summary_markdown(gates.Gate("r.csv", "g", (checks[1],)))


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


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people right on 9 of 10 units, a grader that is so too and one that guesses."""
    rng, path = np.random.default_rng(4), tmp_path_factory.mktemp("gate") / "ratings.csv"
    truth = rng.random(400) < 0.5
    keep = {"ann": 0.9, "ben": 0.9, "cleo": 0.9, "good": 0.95, "guess": 0.5}
    said = {who: np.where(rng.random(400) < each, truth, ~truth) for who, each in keep.items()}
    return rated(path, said, ("ann", "ben", "cleo"))


def results_of(*rows: tuple[object, ...]) -> pd.DataFrame:
    names = ["statistic", "rater_a", "rater_b", "at", "estimate", "low", "high", "note"]
    return pd.DataFrame(rows, columns=names).assign(rubric="r", subset="all")


def held(rule: str, results: pd.DataFrame) -> str:
    (outcome,) = gates.check_clauses(
        gates.parse_rule(rule)[1], results, "r", "g", "weighted_kappa_linear"
    )
    return outcome.check.line


def test_an_undefined_value_meets_nothing() -> None:
    undefined = ("cohen_kappa", "humans", "g", "", np.nan, np.nan, np.nan, "no_variation")
    results = results_of(("coverage", "", "g", "", 1.0, 1.0, 1.0, ""), undefined)
    said = held("cohen_kappa < 1", results)
    assert said.startswith("inconclusive")
    assert "undefined (no_variation)" in said
    with pytest.raises(InputError, match="no grader 'humans'"):
        gates.check_clauses([], results, "r", "humans", "weighted_kappa_linear")


def test_a_rule_about_the_audit_is_held_against_its_worst_attack() -> None:
    effects = {"plain_order": (0.0, 0.1), "flattery": (0.3, 0.5), "placebo": (0.9, 0.9)}
    results = results_of(
        ("coverage", "", "g", "", 1.0, 1.0, 1.0, ""),
        *(("injection_flips", "g", "", at, estimate, -high, high, "")
          for at, (estimate, high) in effects.items()),
    )  # fmt: skip
    worst = "injection_flips at flattery (the worst of 2 attacks)"
    for rule, said in (
        ("injection_flips.high < 0.4", f"not met  {worst}, high: 0.5, required < 0.4"),
        ("injection_flips.high < 0.6", f"met      {worst}, high: 0.5, required < 0.6"),
        ("injection_flips >= 0.2", "at plain_order (the worst"),
        ("injection_flips@placebo.low < 0", "met      injection_flips at placebo, low: -0.9"),
    ):
        assert said in held(rule, results)
    results.loc[results["at"] == "plain_order", "high"] = np.nan
    undecided = held("injection_flips.high < 0.6", results)
    assert undecided.startswith("inconclusive  injection_flips at plain")
    fails = held("injection_flips.high < 0.4", results)
    assert fails.startswith("not met  injection_flips at flattery")


def test_select_knows_what_a_study_has_paid(run: Run, tmp_path: Path, make_study) -> None:
    study = make_study(pairs=40, subjects=("s1",))
    rubric = study.rubrics["refusal"]
    facts = {"rubric": "refusal", "rater_id": "g", "rubric_hash": rubric.hash}
    facts["provenance"] = {"cost_usd": 0.002}
    study.store.add_grades(
        GradeAttempt(**facts, unit_id=unit, label=str(1 + n % 5))
        for n, unit in enumerate(study.rubric_units(rubric))
    )
    study.close()
    assert "2.00" in run.ok("select", study.folder)


@pytest.mark.slow
def test_plan_without_and_with_a_pilot(run: Run, ratings: Path, monkeypatch) -> None:
    """Panels of few people only: docs/concepts.md has commands that simulate larger ones."""
    monkeypatch.setattr(planning, "PEOPLE", (3,))
    said = run.ok("plan", "--agreement", "0.85", "--prevalence", "0.5")
    assert "To estimate kappa to within ±0.1, label 196 pairs" in said
    these = r"Label about (\d+) pairs with these 3 annotators: a grader as good as an annotator "
    found = re.match(rf"{these}then passes in 80% of studies\.", said)
    assert found, said
    assert 400 < int(found[1]) < 650
    assert "even 3 annotators and 1,600 pairs are too few" in said
    monkeypatch.setattr(planning, "PEOPLE", (3, 5))
    monkeypatch.setattr(planning, "SIZES", (100, 200, 400, 800))
    agreed = run.ok("plan", "--agreement", "0.93", "--power", "0.7")
    found = re.match(
        rf"{these}then passes in 70% of studies\. For a verdict about annotators like them, "
        r"have (\d) annotators label about (\d+) pairs\.",
        agreed,
    )
    assert found, agreed
    few, people, like = map(int, found.groups())
    assert 150 < few < 280
    assert (people, 300 < like < 550) == (5, True)
    said = run.ok("plan", ratings, "--affirmative", "yes", "--half-width", "0.02")
    assert "400 items x 3" in " ".join(said.split())
    assert "more for ±0.02" in said
    lines = [line.split() for line in said.splitlines()]
    good, guess = (next(line for line in lines if name in line) for name in ("good", "guess"))
    # Clear for these three; for people like them three people decide nothing.
    assert (good[2:5], int(good[-1])) == (["400", "400", "none"], 400)
    assert guess[2:4] == ["400", "400"]
    rows = said[said.index("Half-width of the 95% CI") :].splitlines()[4:-1]
    names = [row.split("  ")[1].strip() for row in rows if "±" in row]
    assert {"humans · good", "humans · good, binary label"} <= {*names}
    assert len(names) == len(set(names)), "nobody is listed twice"


def test_plan_counts_people_who_differ_and_plans_on_a_scale(run: Run, monkeypatch) -> None:
    monkeypatch.setattr(planning, "SIZES", (50, 400))
    monkeypatch.setattr(planning, "PEOPLE", (3, 4))
    given = ("--strictness", "0", "--set", "looks=5", "--prevalence", "0.6")
    said = " ".join(run.ok("plan", *given).split())
    assert "say yes to 60% ± 0% of them" in said
    assert "Declared interim analyses: 5, at a one-sided level of 0.6% each." in said
    assert "default plan" not in said
    hardly = run.ok("plan", "--prevalence", "0.9")
    assert hardly.startswith("No grader can pass. Two annotators' kappa is 0.17, and")
    assert "needs at least 0.2." in hardly
    monkeypatch.setattr(planning, "PEOPLE", (3,))
    said = " ".join(run.ok("plan", "--scale", "0-10", "--mean", "7").split())
    found = re.search(r"Even a grader without any error needs about (\d+) pairs", said)
    assert found
    assert 60 < int(found[1]) < 90
    assert "labels from 0 to 10 with a mean of 7; those of two annotators have" in said
    assert "Human agreement must clearly reach 0.17" in said
    few, many = (int(re.findall(rf"{size} ±0\.\d\d (\d+)%", said)[0]) for size in (50, 400))
    assert few < 40
    assert many > 85
    hardly = run.ok("plan", "--scale", "1-5", "--correlation", "0.2")
    assert hardly.startswith("No grader can pass. Two annotators' kappa is 0.1")
    nothing = run.ok("plan", "--scale", "1-5", "--statistic", "mean", "--correlation", "0")
    assert "Without a grader it takes 392; with any number of grades, at least 392." in nothing


@pytest.fixture
def study(make_study) -> Study:
    """A grader whose probabilities say yes from .1 up, two annotators and a grader with hard
    labels.
    """
    made = make_study(pairs=40)
    rubric = made.rubrics["refusal"]
    rng, count = np.random.default_rng(4), len(made.rubric_units(rubric))
    truth = rng.random(count) < 0.4
    stated = np.where(truth, rng.uniform(0.1, 1.0, count), rng.uniform(0.0, 0.1, count))
    said = {who: truth != (rng.random(count) < 0.05) for who in ("ann", "ben", "hard")}
    keys = (rubric.affirmative[0], rubric.categories[0])
    given = {who: np.where(yes, *keys).tolist() for who, yes in said.items()}
    with_labels(made, given, graders=["hard"])
    given = {"prob": np.where(stated > 0.5, *keys).tolist()}
    about = {"p_positive": stated.tolist(), "prob_method": "verbalised"}
    with_labels(made, given, graders=["prob"], **about)
    with (made.folder / "study.toml").open("a") as file:
        file.write("\n# a remark of its owner\n")
    return made


def test_it_says_what_to_use_and_only_what_is_recommended_or_named_is_written(study, run) -> None:
    settings, calibrate = study.folder / "study.toml", ("calibrate", study.folder)

    def thresholds() -> dict[str, dict[str, float]]:
        with open_study(study.folder) as again:
            return {name: dict(each) for name, each in again.config.thresholds.items()}

    before = settings.read_bytes()
    gain = "instead of 0.5; on held-out items it gains +0."
    said = run.ok(*calibrate)
    assert "prob, to match annotators by kappa: use 0.1" in said
    assert gain in said
    assert settings.read_bytes() == before
    said = run.ok(*calibrate, "--reference", "ann", "--objective", "f1")
    assert "prob, to match ann by F1: use 0.1" in said
    said = run.ok(*calibrate, "--reference", "hard", "--write")
    assert "prob, to match hard by kappa: use 0.1" in said
    written = thresholds()
    assert 0.1 <= written["refusal"]["prob"] < 0.2
    assert "# a remark of its owner" in settings.read_text("utf-8")
    # It is in force now, and no default: the advice stays the same.
    said = run.ok(*calibrate, "--reference", "hard", "--write")
    assert "prob, to match hard by kappa: use 0.1" in said
    assert gain in said
    assert "threshold: {:.3g}, tuned on 40 pairs".format(written["refusal"]["prob"]) in said
    assert thresholds() == written
    whose = ["--rubric", "refusal", "--grader", "prob"]
    run.ok(*calibrate, *whose, "--write", "--threshold", "0.3")
    assert thresholds() == {"refusal": {"prob": 0.3}}


def test_a_rubric_that_nobody_labelled_stops_no_other(study: Study, run: Run) -> None:
    """The grader has probabilities on even-handedness too, which comes first and has no labels."""
    with_labels(
        study, {"prob": "A" * 80}, "even-handedness",
        graders=["prob"], p_positive=0.2, prob_method="verbalised",
    )  # fmt: skip
    said = run.ok("calibrate", study.folder)
    assert "prob, to match annotators by kappa: use 0.1" in said
    assert "Left out, because annotators labelled nothing: even-handedness." in said
    alone = run.refused("calibrate", study.folder, "--rubric", "even-handedness")
    assert "no annotator has labelled 'even-handedness'" in alone
