"""`select`, `gate` and `plan` as they are run: exit codes, and sentences with numbers."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.reporting import planning
from evenhand.reporting.gate import check_clauses, parse_rule
from evenhand.study.store.grades import GradeAttempt
from tests.commands import Run
from tests.evenhand.cli.test_gate import rated

RULE = "human_ceiling_difference.low > -0.1, coverage >= 0.98"


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people right on 9 of 10 units, a grader that is so too and one that guesses."""
    rng, path = np.random.default_rng(4), tmp_path_factory.mktemp("gate") / "ratings.csv"
    truth = rng.random(400) < 0.5
    keep = {"ann": 0.9, "ben": 0.9, "cleo": 0.9, "good": 0.95, "guess": 0.5}
    said = {who: np.where(rng.random(400) < each, truth, ~truth) for who, each in keep.items()}
    return rated(path, said, ("ann", "ben", "cleo"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grader", "rule", "code", "says"),
    [
        ("good", RULE, 0, "met      human_ceiling_difference, low"),
        ("guess", RULE, 1, "not met  human_ceiling_difference, low"),
        ("good", "cohen_kappa > 0.2,cohen_kappa.high<1.1", 0, "required < 1.1"),
        ("good", "prevalence@yes > 0.1", 0, "prevalence at yes"),
    ],
)
def test_the_gate_opens_or_not(run, ratings, grader, rule, code, says):
    done = run("gate", ratings, "--grader", grader, "--require", rule)
    assert (done.returncode, done.stderr) == (code, "")
    assert says in done.stdout


def results_of(*rows: tuple[object, ...]) -> pd.DataFrame:
    names = ["statistic", "rater_a", "rater_b", "at", "estimate", "low", "high", "note"]
    return pd.DataFrame(rows, columns=names).assign(rubric="r", subset="all")


def held(rule: str, results: pd.DataFrame) -> str:
    (outcome,) = check_clauses(parse_rule(rule)[1], results, "r", "g", "weighted_kappa_linear")
    return outcome.check.line


def test_an_undefined_value_meets_nothing() -> None:
    undefined = ("cohen_kappa", "humans", "g", "", np.nan, np.nan, np.nan, "no_variation")
    results = results_of(("coverage", "", "g", "", 1.0, 1.0, 1.0, ""), undefined)
    said = held("cohen_kappa < 1", results)
    assert said.startswith("inconclusive")
    assert "undefined (no_variation)" in said
    with pytest.raises(InputError, match="no grader 'humans'"):
        check_clauses([], results, "r", "humans", "weighted_kappa_linear")


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


@pytest.mark.slow
def test_select_ranks_and_says_why(run: Run, ratings: Path) -> None:
    said = run.ok("select", ratings)
    assert said.index("good") < said.index("guess")
    assert "good can replace an annotator" in said
    assert "Do not use guess" in said
    assert "Rule: at most 0.1 kappa below human agreement" in said


@pytest.mark.slow
def test_select_knows_what_a_study_has_paid(run: Run, tmp_path: Path, make_study) -> None:
    study = make_study(pairs=40, subjects=("s1",))
    rubric = study.rubrics["refusal"]
    facts = {"rubric": "refusal", "rater_id": "g", "rubric_hash": rubric.hash}
    facts["provenance"] = {"cost_usd": 0.002}
    study.store.add_grades(
        GradeAttempt(**facts, unit_id=unit, label=str(1 + n % 5))
        for n, unit in enumerate(study.rubric_units(rubric))
    )
    folder = study.folder
    study.close()
    assert "2.00" in run.ok("select", folder)


@pytest.mark.slow
def test_plan_without_and_with_a_pilot(run: Run, ratings: Path, monkeypatch) -> None:
    """Panels of few people only: docs/concepts.md has commands that simulate larger ones."""
    monkeypatch.setattr(planning, "PEOPLE", (3,))
    said = run.ok("plan", "--agreement", "0.85", "--prevalence", "0.5")
    assert "To estimate kappa to within ±0.1, label 196 pairs" in said
    these = (
        r"Label about (\d+) pairs with these 3 annotators: a grader as good as an annotator then "
    )
    found = re.match(rf"{these}passes in 80% of studies\.", said)
    assert found, said
    assert 400 < int(found[1]) < 650
    assert "even 3 annotators and 1,600 pairs are too few" in said
    monkeypatch.setattr(planning, "PEOPLE", (3, 5))
    monkeypatch.setattr(planning, "SIZES", (100, 200, 400, 800))
    agreed = run.ok("plan", "--agreement", "0.93", "--power", "0.7")
    found = re.match(
        rf"{these}passes in 70% of studies\. For a verdict about annotators like them, have (\d) "
        r"annotators label about (\d+) pairs\.",
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
    assert good[2:5] == ["400", "400", "none"]
    assert int(good[-1]) == 400
    assert guess[2:4] == ["400", "400"]
    rows = said[said.index("Half-width of the 95% CI") :].splitlines()[4:-1]
    names = [row.split("  ")[1].strip() for row in rows if "±" in row]
    assert {"humans · good", "humans · good, binary label"} <= {*names}
    assert len(names) == len(set(names)), "nobody is listed twice"


@pytest.mark.slow
def test_plan_counts_people_who_differ_and_plans_on_a_scale(run: Run, monkeypatch) -> None:
    monkeypatch.setattr(planning, "SIZES", (50, 400))
    monkeypatch.setattr(planning, "PEOPLE", (3, 4))
    given = ("--strictness", "0", "--set", "looks=5", "--prevalence", "0.6")
    said = " ".join(run.ok("plan", *given).split())
    assert "say yes to 60% ± 0% of them" in said
    assert "(one-sided 0.8% each)" in said
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
