"""The gate's usual rule is the verdict; a weaker rule says that it is one."""

import json
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.gate import gate as usual_gate
from evenhand.reporting.gate import junit_xml, parse_rule, summary_markdown
from evenhand.reporting.ratings_file.declared import ScaleOptions
from tests.commands import Run

pytestmark = pytest.mark.slow

FIVE = ("1", "2", "3", "4", "5")
ORDINAL = ScaleOptions(categories=FIVE, level="ordinal", affirmative=("4", "5"))


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people who are one step off now and then; `good` is so less often, `bad` guesses."""
    rng, n = np.random.default_rng(11), 220
    truth = rng.integers(1, 6, n)
    rows = []
    for rater, off in (("a", 0.35), ("b", 0.35), ("c", 0.35), ("good", 0.2), ("bad", 3.0)):
        steps = np.where(rng.random(n) < off, rng.choice([-1, 1], n), 0)
        said = np.clip(truth + steps, 1, 5) if off < 1 else rng.integers(1, 6, n)
        kind = "human" if len(rater) == 1 else "model"
        rows += [(f"u{k}", rater, kind, str(label)) for k, label in enumerate(said)]
    path = tmp_path_factory.mktemp("verdict") / "ratings.csv"
    columns = ["unit_id", "rater_id", "rater_kind", "label"]
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    return path


OPTIONS = ["--categories", ",".join(FIVE), "--level", "ordinal", "--affirmative", "4,5"]
OPTIONS += ["--resamples", "50"]
gate = partial(usual_gate, resamples=50)
"""No bound of a verdict rests on resamples."""


@pytest.mark.parametrize(
    "rule", [[], ["--require", "verdict"], ["--require", "verdict,coverage>=0"]]
)
@pytest.mark.parametrize(("grader", "code"), [("good", 0), ("bad", 1)])
def test_without_a_rule_the_verdict_decides(ratings, capsys, rule, grader, code):
    assert main(["gate", str(ratings), "--grader", grader, *OPTIONS, *rule]) == code
    assert ("can replace an annotator" in capsys.readouterr().out) == (code == 0)


def test_too_few_labels_end_in_3(tmp_path: Path, ratings: Path) -> None:
    table = pd.read_csv(ratings, dtype=str)
    units = [f"u{k}" for k in range(25)]
    few = tmp_path / "few.csv"
    table[table["unit_id"].isin(units)].to_csv(few, index=False)
    found = gate(few, "good", options=ORDINAL)
    assert found.outcome == "inconclusive"
    assert found.verdict == "inconclusive"
    assert main(["gate", str(few), "--grader", "good", *OPTIONS]) == 3
    assert main(["gate", str(few), "--grader", "nobody", *OPTIONS]) == 2


def test_the_margin_of_the_verdict_may_be_set(ratings: Path) -> None:
    assert main(["gate", str(ratings), "--grader", "good", *OPTIONS, "--margin", "0.2"]) == 0


def test_a_rule_that_is_weaker_than_the_verdict_says_so(ratings: Path, run: Run) -> None:
    found = gate(ratings, "bad", require="coverage >= 0.98", options=ORDINAL)
    assert found.outcome == "met"
    assert "weaker than the verdict" in found.weaker
    assert found.as_dict()["weaker_than_verdict"] is True
    assert found.as_dict()["verdict"] == found.verdict == "do_not_use"
    assert "weaker than the verdict" in summary_markdown(found)
    suites = ElementTree.fromstring(junit_xml(found))  # noqa: S314 - our own
    (said,) = suites.findall("testsuite/system-out")
    assert "weaker than the verdict" in (said.text or "")
    asked = ["gate", str(ratings), "--grader", "bad", *OPTIONS, "--require", "coverage >= 0.98"]
    assert "This rule is weaker than the verdict" in run.ok(*asked)
    assert json.loads(run.ok(*asked, "--json"))["weaker_than_verdict"] is True


def test_a_rule_that_is_not_weaker_says_nothing(ratings: Path) -> None:
    for grader, rule in (("good", "coverage >= 0.98"), ("bad", "kappa.low > 0.9"), ("bad", None)):
        assert not gate(ratings, grader, require=rule, options=ORDINAL).weaker


def test_kappa_is_the_one_that_the_report_shows(ratings: Path) -> None:
    analysis, _ = analyse_file(ratings, ORDINAL)
    rows = analysis.results.query("rater_a == 'humans' and rater_b == 'good' and at == ''")
    rows = rows.set_index(["statistic", "subset"])["estimate"]
    names = {
        "kappa > 0": ("weighted_kappa_linear", "all"),
        "cohen_kappa > 0": ("cohen_kappa", "all"),
        "kappa|binary > 0": ("cohen_kappa", "all|binary"),
    }
    for rule, row in names.items():
        (check,) = gate(ratings, "good", require=rule, options=ORDINAL).checks
        assert check.figures["value"] == rows[row], rule
        assert check.name.startswith(rule.split()[0])
    nominal = ScaleOptions(categories=FIVE, level="nominal")
    (check,) = gate(ratings, "good", require="kappa > 0", options=nominal).checks
    assert check.figures["value"] == rows["cohen_kappa", "all"]
    assert "kappa (cohen_kappa), estimate" in check.sentence


@pytest.mark.slow
def test_an_engine_gates_by_the_verdict_too(ratings: Path, engine: str) -> None:
    for grader, outcome in (("good", "met"), ("bad", "not_met")):
        assert gate(ratings, grader, options=ORDINAL, engine=engine).outcome == outcome


def test_a_declared_reference_has_verdicts_of_its_own(ratings: Path) -> None:
    found = gate(ratings, "good", options=ORDINAL, reference="a")
    assert found.verdict in ("agrees_with_reference", "inconclusive")
    bad = gate(ratings, "bad", options=ORDINAL, reference="a")
    assert (bad.verdict, bad.outcome) == ("disagrees_with_reference", "not_met")


def test_rules_are_read_or_refused() -> None:
    assert parse_rule("verdict")[0]
    assert not parse_rule("coverage > 0")[0]
    assert len(parse_rule("coverage > 0, verdict ,kappa|binary.low>.5")[1]) == 2
    for text in ("", "verdict,", "verdicts", "verdict == pass"):
        with pytest.raises(InputError, match="is not a valid condition; write verdict, or"):
            parse_rule(text)
