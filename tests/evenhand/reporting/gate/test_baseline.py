"""A baseline: what is frozen, read back, compared with, and refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis.verdicts.drift import Drift
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.gate import Baseline, baseline_of, compared, read_baseline, write_baseline
from evenhand.reporting.load import load
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study.settings.study_toml import change_config
from harness.studies import with_labels

OPTIONS = ScaleOptions(affirmative=("yes",))


def ratings(seed: int = 3, **keep: float) -> pd.DataFrame:
    """Labels on 150 units by raters who are right so often; `g` and `n` are models."""
    truth = np.random.default_rng(1).random(150) < 0.5
    rng = np.random.default_rng(seed)
    rows = []
    for who, share in keep.items():
        said = np.where(rng.random(150) < share, truth, ~truth)
        kind = "model" if who in ("g", "n") else "human"
        rows += [(f"u{n}", who, kind, "yes" if yes else "no") for n, yes in enumerate(said)]
    return pd.DataFrame(rows, columns=["unit_id", "rater_id", "rater_kind", "label"])


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """Two people and a grader."""
    table = ratings(**{"ann@x.org": 0.95, "ben": 0.95, "g": 0.95})
    table["seconds"] = 12.5
    table["rubric_hash"] = "abc"
    table.to_csv(tmp_path / "first.csv", index=False)
    return tmp_path / "first.csv"


def saved(file: Path, **changes: float) -> Path:
    found = baseline_of(load(file, replace(OPTIONS, settings=changes)), "g")
    write_baseline(found, file.with_name("b.json"))
    return file.with_name("b.json")


def now(file: Path, table: pd.DataFrame, grader: str = "g", **how: object) -> Drift:
    """The comparison with these grades."""
    table.to_csv(file.with_name("now.csv"), index=False)
    baseline = read_baseline(file.with_name("b.json"))
    present = load(file.with_name("now.csv"), ScaleOptions(), scales=baseline.known_scales())
    (found,) = compared(baseline, present, grader, **how)
    return found


def test_what_is_frozen_are_labels_and_what_they_mean_and_nobody_is_named(first: Path) -> None:
    text = saved(first).read_text("utf-8")
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
    again = read_baseline(first.with_name("b.json"))
    assert again == Baseline.model_validate(content)
    assert (again.n_units, again.n_people) == (150, 2)


def test_labels_come_back_as_they_were(first: Path) -> None:
    """Quotes, commas and line breaks in a unit's name are none of CSV's."""
    table = pd.read_csv(first).assign(unit_id=lambda t: 'a "b",\n' + t["unit_id"])
    table.to_csv(first, index=False)
    saved(first)
    assert now(first, table[table["rater_id"] == "g"]).verdict == "unchanged"


@pytest.mark.slow
def test_the_same_and_another_grader(first: Path) -> None:
    saved(first)
    table = pd.read_csv(first)
    same = now(first, table[table["rater_id"] == "g"])
    assert same.verdict == "unchanged"
    other = now(first, ratings(seed=5, n=0.6), "n")
    assert (other.verdict, other.grader) == ("changed", "n")


@pytest.mark.slow
def test_the_margin_is_frozen_with_the_labels_and_may_be_named_anew(first: Path) -> None:
    table = pd.read_csv(first)
    table = table[table["rater_id"] == "g"]
    saved(first, drift_margin=0.01)
    assert now(first, table).verdict == "inconclusive"
    assert now(first, table, drift_margin=0.2).verdict == "unchanged"
    saved(first, margin=0.2)
    assert now(first, table).verdict == "unchanged"


def test_a_reference_stands_alone(first: Path) -> None:
    found = baseline_of(load(first, replace(OPTIONS, settings={"reference": "ben"})), "g")
    assert found.n_people == 1
    assert "ben" not in found.model_dump_json()
    text = "\n".join(found.ratings)
    own = pd.read_csv(first).query("rater_id == 'ben'")["label"].tolist()
    assert [line.split(",")[3] for line in text.splitlines() if "person-1" in line] == own


def test_units_that_were_not_asked_again_have_no_answer(first: Path) -> None:
    saved(first)
    table = pd.read_csv(first).query("rater_id == 'g'")
    found = now(first, table.head(100))
    assert found.verdict == "changed"
    assert "no label on 33% of the items that it answered (absent 50)" in found.sentence


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
def test_what_cannot_be_compared_is_one_sentence(first: Path, change, says: str) -> None:
    saved(first)
    table = pd.read_csv(first).query("rater_id == 'g'")
    with pytest.raises(InputError) as raised:
        now(first, change(table))
    assert str(raised.value).startswith(says)


def test_another_text_of_the_rubric_may_be_meant(first: Path) -> None:
    saved(first)
    table = pd.read_csv(first).query("rater_id == 'g'").assign(rubric_hash="xyz")
    assert now(first, table, new_rubric=True).verdict == "unchanged"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: "unit_id,label\nu,1\n", "b.json is not JSON, so it is no baseline"),
        (lambda text: "[" * 100_000, "b.json is not JSON, so it is no baseline"),
        (lambda text: "[]", "b.json is not a baseline: "),
        (lambda text: text.replace('"format": 1', '"format": 2'), "b.json is not a baseline: form"),
        (lambda text: text.replace('"u0,person-1,human', '"u0,\\"p,human'), "b.json is not a base"),
        (lambda text: text.replace('"no",', '"yes",'), "b.json is not a baseline: the scale"),
        (lambda text: text.replace(',"model,', ",x,"), None),
    ],
    ids=["csv", "nested", "list", "newer", "quotes", "scale", "none"],
)
def test_a_file_that_is_no_baseline_is_refused(first: Path, damage, says: str | None) -> None:
    file = saved(first)
    file.write_text(damage(file.read_text("utf-8")), "utf-8")
    if says is None:
        read_baseline(file)
        return
    with pytest.raises(InputError) as raised:
        read_baseline(file)
    assert str(raised.value).startswith(says)
    assert len(str(raised.value).splitlines()) == 1


def test_there_must_be_something_to_freeze(first: Path) -> None:
    found = load(first, OPTIONS)
    with pytest.raises(InputError, match=r"first.csv has no grader 'x'; it has g"):
        baseline_of(found, "x")
    table = pd.read_csv(first)
    table.loc[table["rater_id"] == "g", "unit_id"] += "x"
    table.to_csv(first, index=False)
    with pytest.raises(InputError, match="no item has a label of an annotator and of 'g'"):
        baseline_of(load(first, OPTIONS), "g")


@pytest.mark.slow
def test_units_that_were_likelier_to_be_picked_count_less(first: Path) -> None:
    """As the analysis of both versions in one file counts them."""
    table = pd.read_csv(first)
    number = table["unit_id"].str[1:].astype(int)
    table["inclusion_probability"] = np.where(number % 3 == 0, 0.2, 0.8)
    table.to_csv(first, index=False)
    saved(first)
    worse = ratings(seed=6, g=0.8)
    row = next(r for r in now(first, worse).rows if r["statistic"] == "drift")
    plain = now_unweighted(first, table, worse)
    every = pd.concat([table, worse.assign(rater_id="later")])
    chances = table.drop_duplicates("unit_id").set_index("unit_id")["inclusion_probability"]
    every["inclusion_probability"] = every["unit_id"].map(chances)
    every.drop(columns="rubric_hash").to_csv(first, index=False)
    analysis, _ = analyse_file(first, replace(OPTIONS, settings={"resamples": 10}))
    apart = analysis.results.query("statistic == 'kappa_difference' and subset == 'all'").iloc[0]
    assert row["estimate"] == pytest.approx(-apart["estimate"])
    assert row["estimate"] != pytest.approx(plain)


def now_unweighted(file: Path, table: pd.DataFrame, worse: pd.DataFrame) -> float:
    table.drop(columns="inclusion_probability").to_csv(file, index=False)
    saved(file)
    return next(r for r in now(file, worse).rows if r["statistic"] == "drift")["estimate"]


def test_a_name_that_no_line_holds_is_one_sentence(first: Path) -> None:
    table = pd.read_csv(first)
    table["rater_id"] = table["rater_id"].replace("g", "g\x1b[2J")
    table.to_csv(first, index=False)
    with pytest.raises(InputError, match=r"first.csv cannot be frozen: grader is") as raised:
        baseline_of(load(first, OPTIONS), "g\x1b[2J")
    assert str(raised.value).isprintable()


@pytest.mark.slow
def test_a_study_is_frozen_with_its_pairs_and_the_hash_of_its_rubric(make_study) -> None:
    study = make_study(pairs=40, subjects=("s1", "s2"))
    change_config(study.folder, {"decision": {"drift_margin": 0.3}, "analysis": {"resamples": 50}})
    rubric = study.rubrics["refusal"]
    rng, count = np.random.default_rng(2), len(study.rubric_units(rubric))
    yes, right = rng.random(count) < 0.5, {"ann": 0.95, "ben": 0.95, "g": 0.95, "n": 0.5}
    said = {who: yes == (rng.random(count) < keep) for who, keep in right.items()}
    given = {who: np.where(own, "5", "1").tolist() for who, own in said.items()}
    with_labels(study, given, graders=["g", "n"])
    folder = study.folder
    study.close()
    found = load(folder, ScaleOptions())
    baseline = baseline_of(found, "g", "refusal")
    assert set(baseline.scales) == {"refusal"}
    assert baseline.scales["refusal"].unit == rubric.unit
    assert baseline.decision.drift_margin == 0.3
    assert baseline.units[1].split(",")[1] == "p0001"
    (same,) = compared(baseline, found, "g")
    (other,) = compared(baseline, found, "n")
    assert (same.verdict, other.verdict) == ("unchanged", "changed")
    assert "in 40 pairs" in same.sentence
    with pytest.raises(InputError, match="the baseline has no rubric 'hedging'; it has refusal"):
        compared(baseline, found, "g", rubric="hedging")
