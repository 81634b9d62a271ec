"""The gate's usual rule is the verdict, and a weaker rule says that it is one; baselines."""

import json
import shutil
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis.verdicts.versions import Drift
from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting import gate as gates
from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.gate import gate as usual_gate
from evenhand.reporting.load import load
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study.settings.study_toml import change_config
from harness.studies import with_labels
from tests.cases import refused

FIVE = ("1", "2", "3", "4", "5")
ORDINAL = ScaleOptions(categories=FIVE, level="ordinal", affirmative=("4", "5"))
COLUMNS = ["unit_id", "rater_id", "rater_kind", "label"]
OPTIONS = ["--categories", ",".join(FIVE), "--level", "ordinal", "--affirmative", "4,5"]
OPTIONS += ["--resamples", "50"]
gate = partial(usual_gate, resamples=50)
"""No bound of a verdict rests on resamples."""


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
    pd.DataFrame(rows, columns=COLUMNS).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_a_rule_that_is_weaker_than_the_verdict_says_so(ratings, run):
    found = gate(ratings, "bad", require="coverage >= 0.98", options=ORDINAL)
    assert found.outcome == "met"
    assert found.as_dict()["verdict"] == found.verdict == "do_not_use"
    suites = ElementTree.fromstring(gates.junit_xml(found))  # noqa: S314 - our own
    (said,) = suites.findall("testsuite/system-out")
    for told in (found.weaker, gates.summary_markdown(found), said.text or ""):
        assert "weaker than the verdict" in told
    asked = ["gate", str(ratings), "--grader", "bad", *OPTIONS, "--require", "coverage >= 0.98"]
    assert "This rule is weaker than the verdict" in run.ok(*asked)
    assert json.loads(run.ok(*asked, "--json"))["weaker_than_verdict"] is True
    for grader, rule in (("good", "coverage >= 0.98"), ("bad", "kappa.low > 0.9"), ("bad", None)):
        assert not gate(ratings, grader, require=rule, options=ORDINAL).weaker


@pytest.mark.slow
def test_kappa_is_the_one_that_the_report_shows(ratings):
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
def test_an_engine_gates_too(ratings, engine):
    rule = "weighted_kappa_quadratic.low > 0.99"
    for grader, more, code in (("good", (), 0), ("bad", (), 1), ("good", ("--require", rule), 1)):
        words = ["gate", str(ratings), "--grader", grader, *OPTIONS, "--engine", engine, *more]
        assert main(words) == code


def test_rules_are_read_or_refused():
    assert gates.parse_rule("verdict")[0]
    assert not gates.parse_rule("coverage > 0")[0]
    assert len(gates.parse_rule("coverage > 0, verdict ,kappa|binary.low>.5")[1]) == 2
    for text in ("", "verdict,", "verdicts", "verdict == pass"):
        refused("is not a valid condition; write verdict, or", gates.parse_rule, text)
    refused("--engine reads files", gates.gate, pd.DataFrame(), "g", engine="dask")


# A baseline


def labels(seed: int = 3, **keep: float) -> pd.DataFrame:
    """Labels on 150 units by raters who are right so often; `g` and `n` are models."""
    truth = np.random.default_rng(1).random(150) < 0.5
    rng = np.random.default_rng(seed)
    rows = []
    for who, share in keep.items():
        said = np.where(rng.random(150) < share, truth, ~truth)
        kind = "model" if who in ("g", "n") else "human"
        rows += [(f"u{n}", who, kind, "yes" if yes else "no") for n, yes in enumerate(said)]
    return pd.DataFrame(rows, columns=COLUMNS)


def loaded(file: Path, **changes: object) -> object:
    return load(file, ScaleOptions(affirmative=("yes",), settings=changes))


def saved(file: Path, **changes: float) -> None:
    gates.write_baseline(gates.baseline_of(loaded(file, **changes), "g"), file.with_name("b.json"))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Two people and a grader."""
    own = labels(**{"ann@x.org": 0.95, "ben": 0.95, "g": 0.95})
    return own.assign(seconds=12.5, rubric_hash="abc")


@pytest.fixture
def grades(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["rater_id"] == "g"]


@pytest.fixture(scope="module")
def frozen(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("frozen") / "first.csv"
    table.to_csv(file, index=False)
    saved(file)
    return file


@pytest.fixture
def first(frozen: Path, tmp_path: Path) -> Path:
    """The table as a file, and its baseline beside it, in a folder of the test's own."""
    for name in ("first.csv", "b.json"):
        shutil.copy(frozen.with_name(name), tmp_path)
    return tmp_path / "first.csv"


def now(file: Path, table: pd.DataFrame, grader: str = "g", **how: object) -> Drift:
    """The comparison with these grades."""
    table.to_csv(file.with_name("now.csv"), index=False)
    baseline = gates.read_baseline(file.with_name("b.json"))
    present = load(file.with_name("now.csv"), ScaleOptions(), scales=baseline.known_scales())
    (found,) = gates.drifts_from(baseline, present, grader, **how)
    return found


SETS = {"no": "b", "yes": "a;b"}


@pytest.mark.parametrize(
    ("options", "rubrics", "columns"),
    [
        (ScaleOptions(several=True), ["topic/a", "topic/b"],
         lambda t: {"rubric": "topic", "label": t["label"].map(SETS)}),
        (ScaleOptions(), ["criteria", "score"],
         lambda t: {"response_id": t["unit_id"].str[:-1] + "r", "points": "2",
                    "criterion": "c" + t["unit_id"].str[-1]}),
        (ScaleOptions(level="interval"), ["baseline b.json"],
         lambda t: {"label": (t["label"] == "yes") / (t.index % 9 + 1.0)}),
    ],
)  # fmt: skip
def test_sets_criteria_and_new_numbers_are_compared(tmp_path, table, options, rubrics, columns):
    file = tmp_path / "r.csv"
    table = table.assign(**columns(table)).drop(columns="seconds")
    if rubrics[0] == "criteria":
        table = table.drop(columns="unit_id")
    table.to_csv(file, index=False)
    gates.write_baseline(gates.baseline_of(load(file, options), "g"), tmp_path / "b.json")
    if options.level:
        table.loc[table["rater_id"] == "g", "label"] += 0.0123
        table.to_csv(file, index=False)
    again = gates.compare(file, "g", baseline=tmp_path / "b.json", options=options)
    assert [check.name.removeprefix("baseline b.json, ") for check in again.checks] == rubrics


def test_what_is_frozen_are_labels_and_what_they_mean_and_nobody_is_named(first):
    text = first.with_name("b.json").read_text("utf-8")
    content = json.loads(text)
    assert (content["file"], content["format"], content["grader"]) == ("evenhand baseline", 1, "g")
    scale = {"categories": ["no", "yes"], "level": "nominal", "affirmative": ["yes"]}
    assert content["scales"][""] == scale | {"hashes": ["abc"]}
    assert content["units"][:2] == ["unit_id,cluster_id", "u0,u0"]
    assert content["ratings"][0] == "unit_id,rater_id,rater_kind,label,draw"
    assert len(content["ratings"]) == 1 + 3 * 150
    assert "ann" not in text
    assert "12.5" not in text
    assert '"u0,person-1,human,' in text
    again = gates.read_baseline(first.with_name("b.json"))
    assert again == gates.Baseline.model_validate(content)
    assert (again.n_units, again.n_people) == (150, 2)


@pytest.mark.journey
def test_labels_come_back_as_they_were(first, table, grades):
    """Quotes, commas and line breaks in a unit's name are none of CSV's."""
    named = [each.assign(unit_id='a "b",\n' + each["unit_id"]) for each in (table, grades)]
    named[0].to_csv(first, index=False)
    saved(first)
    assert now(first, named[1]).verdict == "unchanged"
    other = now(first, labels(seed=5, n=0.6).assign(unit_id=named[1]["unit_id"].tolist()), "n")
    assert (other.verdict, other.grader) == ("changed", "n")


@pytest.mark.slow
def test_the_margin_is_frozen_with_the_labels_and_may_be_named_anew(first, grades):
    saved(first, drift_margin=0.01)
    assert now(first, grades).verdict == "inconclusive"
    assert now(first, grades, drift_margin=0.2).verdict == "unchanged"
    saved(first, margin=0.2)
    assert now(first, grades).verdict == "unchanged"


def test_a_reference_stands_alone_and_the_weights_of_ordered_labels_are_kept(first, table):
    found = gates.baseline_of(loaded(first, reference="ben", ordered="quadratic"), "g")
    assert (found.analysis.ordered, found.n_people) == ("quadratic", 1)
    assert "ben" not in found.model_dump_json()
    own = table.query("rater_id == 'ben'")["label"].tolist()
    assert [line.split(",")[3] for line in found.ratings if "person-1" in line] == own


def test_units_that_were_not_asked_again_have_no_answer(first, grades):
    found = now(first, grades.head(100))
    assert found.verdict == "changed"
    assert "no label on 33% of the items that it answered (absent 50)" in found.sentence


@pytest.mark.journey
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.assign(rater_id="x"), "now.csv has no grader 'g'; it has x"),
        (lambda t: t.assign(unit_id="v" + t["unit_id"]), "none of the 150 items that 'g' graded"),
        (lambda t: t.assign(rubric_hash="xyz"), "the text of rubric '' has changed since"),
        (lambda t: t.assign(label="maybe"), "now.csv, row 2: the label 'maybe' of rater 'g' is"),
        (lambda t: t.assign(rubric="other"), "now.csv has no ratings on ; its rubrics"),
    ],
    ids=["grader", "units", "hash", "label", "rubric"],
)
def test_what_cannot_be_compared_is_one_sentence(first, grades, change, says):
    assert refused("", now, first, change(grades)).startswith(says)
    if "text of rubric" in says:  # which may be meant
        assert now(first, change(grades), new_rubric=True).verdict == "unchanged"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: "unit_id,label\nu,1\n", "b.json is not JSON, so it is no baseline"),
        (lambda text: "[" * 100_000, "b.json is not JSON, so it is no baseline"),
        (lambda text: "[]", "b.json is not a baseline: "),
        (lambda text: text.replace('"format": 1', '"format": 2'), "b.json is not a baseline: form"),
        (lambda text: text.replace('"u0,person-1,human', '"u0,\\"p,human'), "b.json is not a base"),
        (lambda text: text.replace('"no",', '"yes",'), "b.json is not a baseline: the scale"),
    ],
    ids=["csv", "nested", "list", "newer", "quotes", "scale"],
)
def test_a_file_that_is_no_baseline_is_refused(first, damage, says):
    file = first.with_name("b.json")
    file.write_text(damage(file.read_text("utf-8")), "utf-8")
    said = refused("", gates.read_baseline, file)
    assert said.startswith(says)
    assert len(said.splitlines()) == 1


def test_what_cannot_be_frozen_is_one_sentence(first, table):
    refused(r"first.csv has no grader 'x'; it has g", gates.baseline_of, loaded(first), "x")
    own = table["rater_id"] == "g"
    table.assign(unit_id=table["unit_id"].mask(own, table["unit_id"] + "x")).to_csv(
        first, index=False
    )
    refused("no item has a label of an annotator and of 'g'", gates.baseline_of, loaded(first), "g")
    steering = "g\x1b[2J"
    table.assign(rater_id=table["rater_id"].mask(own, steering)).to_csv(first, index=False)
    cannot = r"first.csv cannot be frozen: grader is"
    assert refused(cannot, gates.baseline_of, loaded(first), steering).isprintable()


@pytest.mark.slow
def test_units_that_were_likelier_to_be_picked_count_less(first, table):
    """As the analysis of both versions in one file counts them."""

    def drift() -> float:
        saved(first)
        return next(r for r in now(first, worse).rows if r["statistic"] == "drift")["estimate"]

    worse = labels(seed=6, g=0.8)
    plain = drift()
    chances = {f"u{n}": 0.8 if n % 3 else 0.2 for n in range(150)}
    table.assign(inclusion_probability=table["unit_id"].map(chances)).to_csv(first, index=False)
    weighted = drift()
    every = pd.concat([table, worse.assign(rater_id="later")]).drop(columns="rubric_hash")
    every.assign(inclusion_probability=every["unit_id"].map(chances)).to_csv(first, index=False)
    options = ScaleOptions(affirmative=("yes",), settings={"resamples": 10})
    analysis, _ = analyse_file(first, options)
    apart = analysis.results.query("statistic == 'kappa_difference' and subset == 'all'").iloc[0]
    assert weighted == pytest.approx(-apart["estimate"])
    assert weighted != pytest.approx(plain)


@pytest.mark.slow
def test_a_study_is_frozen_with_its_pairs_and_the_hash_of_its_rubric(make_study):
    study = make_study(pairs=40, subjects=("s1", "s2"))
    change_config(study.folder, {"decision": {"drift_margin": 0.3}, "analysis": {"resamples": 50}})
    rubric = study.rubrics["refusal"]
    rng, count = np.random.default_rng(2), len(study.rubric_units(rubric))
    yes, right = rng.random(count) < 0.5, {"ann": 0.95, "ben": 0.95, "g": 0.95, "n": 0.5}
    said = {who: yes == (rng.random(count) < keep) for who, keep in right.items()}
    given = {who: np.where(own, "5", "1").tolist() for who, own in said.items()}
    with_labels(study, given, graders=["g", "n"])
    study.close()
    found = load(study.folder, ScaleOptions())
    baseline = gates.baseline_of(found, "g", "refusal")
    assert set(baseline.scales) == {"refusal"}
    assert baseline.scales["refusal"].unit == rubric.unit
    assert baseline.decision.drift_margin == 0.3
    assert baseline.units[1].split(",")[1] == "p0001"
    (same,) = gates.drifts_from(baseline, found, "g")
    (other,) = gates.drifts_from(baseline, found, "n")
    assert (same.verdict, other.verdict) == ("unchanged", "changed")
    assert "in 40 pairs" in same.sentence
    with pytest.raises(InputError, match="the baseline has no rubric 'hedging'; it has refusal"):
        gates.drifts_from(baseline, found, "g", rubric="hedging")
