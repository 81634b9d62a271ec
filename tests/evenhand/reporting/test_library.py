"""`import evenhand as eh`: its functions give what the commands give, to the byte; its keywords are
typed, shown to editors, and the nearest named for a wrong one.
"""

import json
import re
import subprocess
import sys
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

import evenhand as eh
from docs.keywords import STUB, stub
from evenhand.cli.main import FILE_OPTIONS, main
from evenhand.cli.studies import ITEM_OPTIONS
from evenhand.reporting import planning
from evenhand.reporting.keywords import keyword_types
from evenhand.reporting.load import from_table
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study import open_study
from evenhand.study.settings.analysis import Rules
from evenhand.study.settings.study_toml import change_config
from evenhand.study.tables.formats import csv_bytes
from evenhand.study.tables.ratings import RATINGS_COLUMNS
from harness.judged_study import judged_study, tune_and_exclude
from harness.ports import free_port
from harness.served import answers, holds
from tests.cases import refused
from tests.commands import python

PEOPLE = ["ann", "ben", "cem"]
THREE: dict[str, Any] = {"human": PEOPLE, "model": "gpt"}
SCALE: dict[str, Any] = {"categories": ["low", "mid", "top"], "level": "ordinal"}
OPTIONS = ["--categories", "low,mid,top", "--level", "ordinal"]


@pytest.fixture(scope="module")
def labels() -> pd.DataFrame:
    """Three people and a grader on 60 units in 20 clusters; ben and the grader left some out."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 60)
    said = {
        name: np.where(rng.random(60) < 0.8, truth, rng.integers(0, 3, 60))
        for name in (*PEOPLE, "gpt")
    }
    wide = pd.DataFrame(said).replace(dict(enumerate(("low", "mid", "top")))).astype(object)
    wide.loc[3:5, "ben"] = wide.loc[7, "gpt"] = None
    wide.insert(0, "unit_id", [f"u{n:02d}" for n in range(60)])
    wide["cluster_id"] = [f"c{n // 3}" for n in range(60)]
    wide["topic"] = ["tax" if n % 2 else "war" for n in range(60)]
    return wide


@pytest.fixture(scope="module")
def file(labels: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a ratings file."""
    long = labels.melt(["unit_id", "cluster_id", "topic"], var_name="rater_id", value_name="label")
    long["rater_kind"] = np.where(long["rater_id"] == "gpt", "model", "human")
    path = tmp_path_factory.mktemp("ratings") / "ratings.csv"
    long.dropna(subset="label").to_csv(path, index=False)
    return path


def same(found: eh.Check, out: Path) -> None:
    """To the bytes of the results.csv of a folder."""
    assert csv_bytes(found.results) == (out / "results.csv").read_bytes()


@pytest.mark.slow
def test_long_and_wide_give_what_the_command_gives(labels, file, tmp_path, run):
    expected = tmp_path / "a"
    said = run.ok("check", file, *OPTIONS, "--out", expected)
    said = said.replace("--level and --categories", "level= and categories=")
    long = eh.check(eh.read(file), **SCALE)
    same(long, expected)
    assert said.replace("`item_id`", "`unit_id`").startswith(f"{long}\nReport: ")
    wide = eh.check(labels, **THREE, **SCALE)
    same(wide, expected)
    same(eh.check(labels.set_index("unit_id"), **THREE, **SCALE), expected)
    # Without rater_kind the raters' names say who is who.
    same(eh.check(eh.read(file).drop(columns="rater_kind"), **THREE, **SCALE), expected)
    # The report files are the command's too, but for what the ratings are called.
    assert wide.report(tmp_path / "b") == tmp_path / "b" / "report.html"
    for name in ("report.html", "report.md", "report.json", "results.csv"):
        theirs = (tmp_path / "a" / name).read_text("utf-8").replace("ratings.csv", "ratings")
        assert (tmp_path / "b" / name).read_text("utf-8") == theirs, name
    assert wide.verdicts == json.loads((tmp_path / "b" / "report.json").read_text())["verdicts"]


def test_read_gives_the_table_of_the_contract(file):
    table = eh.read(str(file))
    assert list(table) == [*RATINGS_COLUMNS, "cluster_id", "topic"]
    assert (len(table), table["draw"].dtype) == (236, "int64")
    refused(r"there is no file nothing\.csv", eh.read, file.with_name("nothing.csv"))


@pytest.mark.slow
def test_labels_of_any_type(labels):
    """Numbers, booleans and categories are the texts that a file would hold."""
    codes, texts = (
        labels.replace({"low": kind(1), "mid": kind(2), "top": kind(3)}) for kind in (int, str)
    )
    who = {**THREE, "categories": [1, 2, 3], "resamples": 20}
    expected = eh.check(texts, **who).results
    for kind in ("float64", "Int64", object):
        found = eh.check(codes.astype(dict.fromkeys([*PEOPLE, "gpt"], kind)), **who)
        pd.testing.assert_frame_equal(found.results, expected)


@pytest.mark.slow
def test_a_missing_cell_is_no_rating_and_an_empty_text_is_unscored(labels):
    for table, note in (
        (labels, "unscored: absent 1"),
        (labels.fillna({"gpt": ""}), "unscored: no_label 1"),
    ):
        results = eh.check(table, **THREE, **SCALE, resamples=20).results
        row = results.query("statistic == 'coverage' and rater_b == 'gpt'").iloc[0]
        assert (row["estimate"], row["n_units"]) == (pytest.approx(59 / 60), 60)
        assert row["note"] == note


@pytest.mark.slow
def test_settings_and_units_beside_are_those_of_the_command(labels, file, tmp_path, run):
    options = ["--slice", "topic", "--cluster", "topic", "--margin", "0.3", "--affirmative", "top"]
    expected = tmp_path / "a"
    run.ok("check", file, *OPTIONS, *options, "--out", expected)
    given = {**THREE, **SCALE, "affirmative": "top", "slices": "topic", "margin": 0.3}
    own = labels[["unit_id", "cluster_id", "topic"]]
    own.to_csv(tmp_path / "units.csv", index=False)
    bare = labels.drop(columns=["cluster_id", "topic"])
    for table, units in ((labels, None), (bare, own), (bare, str(tmp_path / "units.csv"))):
        beside = {} if units is None else {"units": units}
        same(eh.check(table, **given, **beside, cluster="topic"), expected)
    refused("units has no row for item 'u59'", eh.check, bare, **THREE, units=own[:-1])


def test_units_and_ratings_that_contradict_each_other_are_refused(labels):
    own = labels[["unit_id", "cluster_id", "topic"]].assign(weight="0.50")
    table = labels.assign(weight=[0.5] * 59 + [None])  # an item without a value takes that of units
    assert eh.check(table, **THREE, **SCALE, units=own[::-1], resamples=10).verdicts
    own.loc[3, "topic"] = "war"
    why = "units, row 3: topic of item 'u03' is 'war' here and 'tax' in the ratings; keep"
    refused(why, eh.check, table, **THREE, **SCALE, units=own)


def test_a_chosen_rubric_has_its_verdict_over_all_rubrics(file, tmp_path):
    table = pd.concat([pd.read_csv(file).assign(rubric=name) for name in ("one", "two")])
    table.to_csv(tmp_path / "two.csv", index=False)
    rules = {**SCALE, "across_rubrics": "holm", "resamples": 10}
    first, _ = eh.check(table, **rules).verdicts
    found = eh.check(table, **rules, rubric="one")
    assert found.verdicts == eh.select(tmp_path / "two.csv", **rules, rubric="one").verdicts
    assert (found.verdicts, set(found.results["rubric"])) == ([first], {"one"})
    gate = eh.gate(tmp_path / "two.csv", "gpt", **rules, rubric="one")
    assert gate.checks[0].sentence == first["sentence"]
    other = table.assign(label=table["label"].mask(table["rubric"] == "two", "x" + table["label"]))
    (found,) = eh.check(other, **rules, rubric="one").verdicts  # "two" has labels of its own
    assert found["verdict"] == first["verdict"]


@pytest.mark.journey
def test_raters_who_are_not_named_are_left_out_and_without_graders_there_is_no_verdict(
    labels, file
):
    found = eh.check(eh.read(file), human=["ann", "ben"], **SCALE, resamples=10)
    assert "Left out, because neither human nor model names them: cem." in found.notes
    # The graders stay as rater_kind has them.
    assert set(found.results["rater_b"]) >= {"ben", "gpt"}
    assert "cem" not in set(found.results["rater_a"]) | set(found.results["rater_b"])
    found = eh.check(labels, human=["ann", "ben"], resamples=10)
    assert found.verdicts == []
    for shown in (str(found), found._repr_html_()):
        assert "No verdict: there is no grader to evaluate." in shown


@pytest.mark.parametrize(("form", "change", "options", "says"), [
    ("wide", lambda t: t.rename(columns={"gpt": "dan"}), {},
     r"no column 'rater_id'; name the columns .* human=\[\.\.\.\]"),
    ("wide", lambda t: t, {"human": PEOPLE, "categories": ["low", "mid"]},
     r"ratings, row \d+, column 'ann': the label 'top' is not one of the declared .*low, mid"),
    ("wide", lambda t: t, {"human": PEOPLE, "level": "ordinal"}, r"categories=\['1', '2'"),
    ("wide", lambda t: t, {"human": PEOPLE, "sides": ["low"]}, "sides= is 'low'; name two"),
    ("wide", lambda t: t, {"human": PEOPLE, "rubric": "refusl"}, "there is no rubric 'refusl'"),
    ("wide", lambda t: pd.concat([t, t]), {"human": PEOPLE}, "item 'u00' has two rows"),
    ("wide", lambda t: t.rename(columns={"ann": "all"}), {"human": ["all"]},
     "stands for a group"),
    ("wide", lambda t: t.assign(gpt=["lo\0w", *t["gpt"][1:]]), THREE, "holds a NUL|a NUL char"),
    ("long", lambda t: t, {"human": ["ann", "dan"]}, "no rater 'dan'; it has ann, ben, cem, g"),
    ("long", lambda t: t, {"human": ["ann", "gpt"]}, "names 'gpt', whose rater_kind is 'mode"),
    ("long", lambda t: t.assign(label=t["label"].where(t.index != 17, "higher")), SCALE,
     "ratings, row 17: the label 'higher' of rater 'ann'"),
    ("long", lambda t: t.assign(unit_id=t["unit_id"].replace("u18", "u17")), {"name": "week-2"},
     r"week-2, row 18: rater 'ann' .* in row 17"),
])  # fmt: skip
def test_bad_tables_are_one_sentence(labels, file, form, change, options, says):
    table = labels if form == "wide" else eh.read(file)
    assert len(refused(says, eh.check, change(table), **options).splitlines()) == 1


def test_probabilities_are_normalised_with_the_labels():
    """A grader that writes No writes it in its probabilities, too."""
    rows = [
        {"unit_id": f"u{n}", "rater_id": who, "rater_kind": kind, "label": label[n % 2],
         "probabilities": shares}
        for n in range(40)
        for who, kind, label, shares in (
            ("ann", "human", "ny", ""),
            ("ben", "human", "ny", ""),
            ("gpt", "model", "NY", '{"N": 0.75, "Y": 0.25}'),
        )
    ]  # fmt: skip
    options = {"categories": ["n", "y"], "affirmative": "n", "normalise": True, "resamples": 10}
    found = eh.check(pd.DataFrame(rows), **options)
    assert "Normalised: 40 of 120 labels were changed." in found.notes
    rates = found.results.query("statistic == 'prevalence' and subset == 'all|binary'")
    assert rates.set_index("rater_a").loc["gpt", "estimate"] == 1  # all are 0.75 for n
    twice = '{"N": 0.7, "n": 0.05, "Y": 0.25}'  # those of two spellings are not added up
    table = pd.DataFrame(rows).replace({"probabilities": {rows[2]["probabilities"]: twice}})
    dataset = from_table(table, ScaleOptions(categories=("n", "y"), normalise=True))
    assert set(dataset.ratings["probabilities"]) == {"", twice}


@pytest.mark.journey
def test_other_names_are_understood_or_suggested(file):
    table = eh.read(file).rename(columns={"unit_id": "item", "rater_id": "annotator"})
    one, other = (eh.check(each, resamples=10).verdicts for each in (table, file))
    assert one == other
    advised = ".rename(columns={'item': 'unit_id', 'annotator': 'rater_id'})"
    assert advised in refused("", eh.check, table.assign(worker="y"))
    assert eval(f"table{advised}").equals(eh.read(file))  # noqa: S307


@pytest.mark.journey
def test_a_notebook_shows_verdicts_panel_and_figure(labels, monkeypatch):
    found = eh.check(labels, **THREE, **SCALE, affirmative=["top"])
    html, text = found._repr_html_(), str(found)
    (verdict,) = found.verdicts
    places = [html.index(part) for part in (str(escape(verdict["sentence"])), "<table>", "<svg")]
    assert (places, html.count("<svg")) == (sorted(places), 1)
    assert "Annotators with one another" in html
    assert len(html) < 50_000
    # Colours of its own for light and dark; nothing is run, nothing is fetched.
    assert "prefers-color-scheme: dark" in html
    assert not re.search(r"<script|src=|href=|url\(|@import|on\w+=|:root", html)
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setattr("builtins.get_ipython", lambda: shell, raising=False)
    assert str(found) == text
    assert "Annotators with one another" in text


HOSTILE = "<script>alert('x')</script>&\"[b]**"


@pytest.mark.slow
def test_what_others_wrote_is_escaped(labels):
    """As a label, a rater, a rubric, a cluster and the name: shown as text, never run."""
    table = labels.replace({"top": HOSTILE}).rename(columns={"gpt": HOSTILE, "ann": "<b>ann"})
    table = table.assign(cluster_id=HOSTILE + table["cluster_id"], rubric="<img src=x>")
    who = {"human": ["<b>ann", "ben", "cem"], "model": HOSTILE, "name": "<h1>mine"}
    gated = eh.gate(table, HOSTILE, **who, resamples=20)
    for found in (eh.check(table, **who, resamples=20), gated, eh.select(table, **who)):
        shown = found._repr_html_()
        assert not re.search(r"<script|<b>|<img|<h1>", shown)
        assert "&lt;script&gt;alert(" in shown
        assert HOSTILE in str(found)


@pytest.mark.slow
def test_a_study_opened_in_python_is_that_of_the_report(tmp_path):
    folder = judged_study(tmp_path)
    change_config(folder, {"decision": {"min_clusters": 500}})
    too_few = eh.open_study(folder)
    change_config(folder, {"decision": {"min_clusters": 10}})  # fewer are free to look at
    with open_study(folder) as study:
        tune_and_exclude(study)
    dataset = eh.open_study(folder)
    excluded = set(dataset.facts.excluded)
    assert excluded and excluded <= set(dataset.ratings["rater_id"])
    assert not excluded & set(dataset.counted(next(iter(dataset.scales)))["rater_id"])
    assert f"{len(dataset.ratings)} ratings" in repr(dataset)
    # Nobody has looked at the labels yet, and to open a study is no look.
    for opened in (dataset, eh.open_study(folder), too_few):
        (unseen, *_) = eh.check(opened, resamples=50, min_clusters=10).verdicts
        assert unseen["verdict"] == "inconclusive"
        assert "Labels have come in since the last report." in unseen["sentence"]
        assert unseen["next"] == {"kind": "look", "number": 0}
    assert main(["report", str(folder), "--out", str(tmp_path / "report")]) == 0
    said = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    found = eh.check(eh.open_study(folder))
    assert found.verdicts == said["verdicts"]
    same(found, tmp_path / "report")
    refused("give only settings", eh.check, dataset, categories=["A", "B"])


def test_the_public_names():
    results = ["Calibration", "Check", "Comparison", "Gate", "Labelling", "Plan", "Selection"]
    verbs = ["calibrate", "check", "compare", "gate", "label", "plan", "select"]
    others = ["Dataset", "InputError", "__version__", "analysis", "open_study", "read"]
    assert dir(eh) == sorted([*results, *verbs, *others])
    assert set(dir(eh)) == set(eh.__all__)
    for name in dir(eh):
        getattr(eh, name)
    with pytest.raises(AttributeError):
        eh.chekc  # noqa: B018


def test_importing_it_loads_nothing_heavy():
    code = "import sys, evenhand as eh; eh.InputError, eh.__version__, dir(eh); print(*sys.modules)"
    loaded = {name.partition(".")[0] for name in python("-c", code, check=True).stdout.split()}
    assert not loaded & {"numpy", "pandas", "pydantic", "rich", "sqlalchemy", "jinja2", "argparse"}


TABLE = {"ann": list("yn") * 20, "ben": list("yyn") * 13 + ["n"], "gpt": list("yynn") * 10}
WHO: dict[str, Any] = {"human": ["ann", "ben"], "model": "gpt", "resamples": 20}


def test_every_setting_and_every_option_of_the_commands_is_a_keyword():
    assert STUB.read_text("utf-8") == stub(), "run: python -m docs.keywords"
    keywords, plural = keyword_types(), {"--threshold": "thresholds"}
    options = {plural.get(each, each.strip("-").replace("-", "_")) for each in FILE_OPTIONS}
    assert {*keywords["RatingsKeywords"]} == {*Rules.model_fields} | options | {"name"}
    items = {each.strip("-").replace("-", "_") for each in ITEM_OPTIONS}
    of_study = {"rubric", "sample", "stratify", "seed", "raters"}
    assert set(keywords["LabelKeywords"]) == items | of_study


@pytest.mark.parametrize(("call", "says"), [
    (lambda: eh.check(TABLE, humans=["ann"]),
     "check has no argument humans; did you mean human?"),
    (lambda: eh.compare(TABLE, "gpt", base_line="b"),
     "compare has no argument base_line; did you mean baseline?"),
    (lambda: eh.label(TABLE, "s", qestion="?"),
     "label has no argument qestion; did you mean question?"),
    (lambda: eh.check(TABLE, **WHO, level="ordnal"),
     "level is 'ordnal'; did you mean ordinal?"),
    (lambda: eh.check(TABLE, **WHO, overlap="x"), "overlap is 'x'; it must be 'random' or"),
    (lambda: eh.check(TABLE, **WHO, thresholds={"gpt": "x"}),
     "thresholds has 'x' for 'gpt'; give a number from 0 to 1"),
    (lambda: eh.gate(TABLE, "gpt", drift_margin=0.1, **WHO),
     "drift_margin= is about a comparison with a baseline; add baseline="),
    (lambda: eh.gate(TABLE, "gpt", "kapa > 0", **WHO),
     "require: there is no statistic 'kapa' here"),
    (lambda: eh.gate(TABLE, "gtp", **WHO), "there is no grader 'gtp' here; the raters are"),
    (lambda: eh.compare(TABLE, "gpt", **WHO),
     "name the baseline=, or with against= the grader to compare with"),
    (lambda: eh.calibrate(TABLE, **WHO), "there are no probabilities to tune a threshold on"),
    (lambda: eh.plan(power=2), "power= is 2; it must lie between 0 and 1"),
    (lambda: eh.check(TABLE, **WHO, categories={"y", "n"}),
     'categories is in order; give a list, such as categories=["1", "2"]'),
    (lambda: eh.plan(categories=["y", "n"]),
     "categories= is about the labels of a pilot; give its table or path"),
    (lambda: eh.plan(overlap="random"), "overlap= is about the labels of a pilot"),
    (lambda: eh.plan(TABLE, agreement=0.9),
     "agreement= is an assumption for planning without a pilot; leave it out"),
    (lambda: eh.read(TABLE), "path must be text or a path, not a dict"),
    (lambda: eh.check(TABLE, **WHO, margin=True), "margin must be a number, not True"),
    (lambda: eh.check(TABLE, **WHO, seed=-1), "seed must be 0 or more"),
    (lambda: eh.label({"response": ["x"]}, "s", question="?", options=["a"]),
     'options: name two options at least, such as options=["yes", "no"]'),
    (lambda: eh.label({"response": ["x"]}, "s"),
     'Say what to ask: question="TEXT" with options=["yes", "no"] or scale="1-5", or rubric='),
    (lambda: eh.check(TABLE, **WHO).report(__file__), f"{__file__} is a file; name a folder"),
    (lambda: eh.plan(TABLE, half_width="x", **WHO), "half_width must be a number"),
    (lambda: eh.label(TABLE, question="?"),
     "a table has no name for the study; name its folder: label(items, FOLDER)"),
])  # fmt: skip
def test_wrong_use_is_one_sentence(call, says):
    said = refused("", call)
    assert said.startswith(says)
    assert "--" not in said
    assert len(said.splitlines()) == 1


# The other verbs: each function says what its command says, of a path, a table and a study

BINARY: dict[str, Any] = {"categories": ["no", "yes"], "affirmative": "yes", "resamples": 100}
WORDS = ["--categories", "no,yes", "--affirmative", "yes", "--resamples", "100"]


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people, a grader with probabilities and a plain one, on 90 units."""
    rng = np.random.default_rng(3)
    truth = rng.random(90) < 0.4
    rows = []
    for who, right in (("ann", 0.95), ("ben", 0.92), ("cem", 0.93), ("plain", 0.9), ("sure", 0.94)):
        for n, yes in enumerate(np.where(rng.random(90) < right, truth, ~truth)):
            share = np.clip(0.35 + 0.3 * yes + rng.normal(0, 0.12), 0.01, 0.99)
            kind = "model" if who in ("plain", "sure") else "human"
            p = round(float(share), 3) if who == "sure" else np.nan
            label, method = "yes" if yes else "no", "verbalised" if p == p else ""
            rows.append((f"u{n}", who, kind, label, p, method))
    columns = ["unit_id", "rater_id", "rater_kind", "label", "p_positive", "prob_method"]
    path = tmp_path_factory.mktemp("same") / "ratings.csv"
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def results(ratings: Path) -> bytes:
    """results.csv of `evenhand check`."""
    out = ratings.with_name("out")
    assert main(["check", str(ratings), *WORDS, "--out", str(out)]) == 0
    return (out / "results.csv").read_bytes()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose graders give probabilities."""
    return judged_study(tmp_path_factory.mktemp("judged"))


def forms(path: Path) -> list[Any]:
    """The same labels as a path and as a table."""
    return [str(path), pd.read_csv(path, keep_default_na=True)]


def shown(found: Any) -> str:
    """What a notebook shows, as text without markup."""
    html = found._repr_html_()
    assert "<script" not in html
    return unescape(re.sub(r"<style>.*?</style>|<[^>]*>", "", html, flags=re.DOTALL))


@pytest.mark.slow
def test_gate(ratings, results, run):
    for rule, code in ((None, 3), ("kappa > 0.99", 1), ("coverage >= 1", 0)):
        words = ["gate", ratings, "--grader", "sure", *WORDS, *(["--require", rule] * bool(rule))]
        printed, told = run(*words), json.loads(run(*words, "--json").stdout)
        for given in forms(ratings):
            found = eh.gate(given, "sure", rule, **BINARY)
            assert (found.exit_code, printed.returncode) == (code, code)
            assert found.passed is {0: True, 1: False, 3: None}[code]
            assert bool(found) == (code == 0)
            said_here = f"{found}\n".replace("level= and categories=", "--level and --categories")
            assert said_here == printed.stdout
            assert found.as_dict() | {"source": str(ratings), "notes": told["notes"]} == told
            assert found.table["outcome"].tolist() == [each.outcome for each in found.checks]
            assert csv_bytes(found.results) == results
            assert found.sentence in shown(found)


@pytest.mark.journey
def test_select(ratings, results, run):
    printed = run("select", ratings, *WORDS).stdout
    for given in forms(ratings):
        found = eh.select(given, **BINARY)
        assert f"{found}\n" == printed
        assert csv_bytes(found.results) == results
    table = found.table.set_index("grader")
    assert [verdict["grader"] for verdict in found.verdicts] == list(table.index)
    row = found.results.query(
        "statistic == 'human_ceiling_difference' and rater_b == 'plain' and subset == 'all'"
    )
    assert table.loc["plain", "difference"] == row["estimate"].item()
    for sentence in found.recommendations:
        assert sentence in shown(found)


@pytest.mark.slow
def test_plan(ratings, run, monkeypatch):
    monkeypatch.setattr(planning, "PEOPLE", (3, 4))
    monkeypatch.setattr(planning, "SIZES", (50, 200))
    words = ("plan", "--agreement", "0.9", "--subjects", "2", "--margin", "0.2")
    found = eh.plan(agreement=0.9, subjects=2, margin=0.2)
    assert f"{found}\n" == run(*words).stdout
    assert found.tables["sizes"]["pairs"].tolist() == [50, 200]
    printed = run("plan", ratings, *WORDS, "--half-width", "0.05").stdout
    for given in forms(ratings):
        found = eh.plan(given, half_width=0.05, **BINARY)
        assert f"{found}\n" == printed
    tables = {"deciding", "components", "dependability", "intervals", "corrected"}
    assert set(found.tables) == tables
    assert found.tables["deciding"]["grader"].tolist() == ["plain", "sure"]
    assert found.tables["components"]["share"].sum() == pytest.approx(1)


@pytest.mark.slow
def test_calibrate(study, ratings, run):
    printed = run("calibrate", study, "--rubric", "refusal", "--objective", "f1").stdout
    for given in (study, eh.open_study(study)):
        found = eh.calibrate(given, rubric="refusal", objective="f1")
        assert f"{found}\n" == printed
    assert set(found.results["rubric"]) == {"refusal"}
    for given in forms(ratings):
        found = eh.calibrate(given, **BINARY)
        assert set(found.results["rater_b"]) == {"sure"}
        recommended = found.results.query("statistic == 'threshold_recommended' and at == 'kappa'")
        kept = {grader: t for each in found.thresholds.values() for grader, t in each.items()}
        tuned = recommended[recommended["note"].str.startswith("tuned")]
        assert kept == dict(zip(tuned["rater_b"], tuned["estimate"], strict=True))
    refused(r"the study has no rubric 'x'", eh.calibrate, study, rubric="x")


@pytest.mark.journey
def test_compare(ratings, tmp_path, run):
    file, now = tmp_path / "sure.json", tmp_path / "now.csv"
    save = ["baseline", "save", ratings, "--grader", "sure", "--file", file, *WORDS]
    run.ok(*save, "--missing", "skip")
    rows = pd.read_csv(ratings).query("rater_id == 'plain'")
    rows[["unit_id", "rater_id", "rater_kind", "label"]].to_csv(now, index=False)
    words = ["baseline", "compare", now, "--grader", "sure", "--file", file, "--against", "plain"]
    printed = run(*words, "--missing", "skip").stdout
    told = json.loads(run(*words, "--json").stdout)
    for given in forms(now):
        found = eh.compare(given, "sure", "plain", baseline=file)
        assert f"{found}\n" == printed
        assert found.as_dict() | {"source": str(now)} == told
        assert {"drift", "rate_change"} <= set(found.results["statistic"])
        gated = eh.gate(given, "plain", baseline=file)
        assert (gated.checks, gated.passed) == (found.checks, found.passed)
    # Without a file: the two as they are in one table.
    beside = eh.compare(pd.read_csv(ratings), "sure", "plain", **BINARY)
    assert beside.checks[0].figures == found.checks[0].figures
    assert beside.checks[0].sentence == found.checks[0].sentence
    assert beside.notes == ("The labels of sure are the baseline that plain is compared with.",)
    refused("write grader='sure' and against='plain' if", eh.compare, now, "plain", baseline=file)
    # Each at its own threshold, without what a code says is no label.
    sure = pd.read_csv(ratings).query("rater_id == 'sure'").assign(label="")
    half = sure.assign(rater_id="half", p_positive=sure["p_positive"] / 2)
    table = pd.concat([pd.read_csv(ratings).query("rater_kind == 'human'"), sure, half])
    table.iloc[0, table.columns.get_loc("label")] = "skip"
    own = {"thresholds": {"sure": 0.5, "half": 0.25}, "missing": ["skip"]}
    assert eh.compare(table, "sure", "half", **BINARY, **own).checks[0].figures["drift"] == 0


def test_a_grader_without_a_label_is_judged(tmp_path):
    pd.DataFrame(TABLE | {"gpt": None}).to_csv(tmp_path / "blank.csv")
    for given in (TABLE | {"gpt": [None] * 40}, tmp_path / "blank.csv"):
        assert "Do not use gpt" in str(eh.check(given, **WHO))


@pytest.mark.slow
def test_a_study_is_read_as_the_command_reads_it(study, run):
    printed = run("select", study, "--resamples", "100").stdout
    assert f"{eh.select(study, resamples=100)}\n" == printed
    told = run("gate", study, "--grader", "fine", "--rubric", "refusal", "--json")
    found = eh.gate(study, "fine", rubric="refusal")
    assert found.as_dict() == json.loads(told.stdout)
    assert found.exit_code == told.returncode
    assert eh.gate(eh.open_study(study), "fine", rubric="refusal", require="coverage > 0").passed
    assert {verdict["grader"] for verdict in eh.check(study, resamples=100).verdicts} >= {"fine"}
    for given, why in ((study, "human= is for ratings"), (eh.open_study(study), "a Dataset knows")):
        refused(why, eh.select, given, human=["ann"])


@pytest.mark.journey
def test_label_makes_the_study_of_the_command(here, run, monkeypatch):
    serving = import_module("evenhand.annotate_app")
    monkeypatch.setattr(serving, "serve", lambda folder, port, public_host: 0)  # it does not return
    items = pd.DataFrame({
        "question": [f"What is {n} and one?" for n in range(12)],
        "output": [f"It is {n + 1}." for n in range(12)],
        "model": [f"m{n % 2}" for n in range(12)],
        "judge": ["yes", "no"] * 6,
    })  # fmt: skip
    asked = {"question": "Right?", "options": ["yes", "no"], "judge": "judge"}
    asked["show"] = ["question", "output"]
    items.to_csv("items.csv", index=False)
    words = "label items.csv --question Right? --options yes,no --judge judge"
    words += " --show question,output --no-browser --port 8600"
    printed = run.ok(*words.split())
    given = {"path": "items.csv", "frame": items, "records": items.to_dict("records")}
    for name, own in given.items():
        found = eh.label(own, name, port=8600, **asked)
        assert found.folder == Path(name)
        assert found.command == f"evenhand annotate {name} --port 8600"
        (link,) = found.links
        assert link.startswith("http://localhost:8600/?invite=")
        assert f'<a href="{link}">' in found._repr_html_()
        assert str(found).replace(name, "items-study").split("http")[0] == printed.split("http")[0]
    kept = {}
    for name in (*given, "items-study"):
        with open_study(name) as study:
            kept[name] = study.store.pairs(), study.units("all"), study.ratings()
    for name in given:
        for ours, theirs in zip(kept[name], kept["items-study"], strict=True):
            columns = [column for column in ours if column != "created_at"]
            pd.testing.assert_frame_equal(ours[columns], theirs[columns])
    assert list(eh.label(items, "frame").notes) == ["frame exists already: labelling continues."]
    refused("sample= is settled in frame", eh.label, items, "frame", sample=3)
    with pytest.raises(eh.InputError, match="what is asked for is settled in frame"):
        eh.label(items.assign(output="Another answer."), "frame", **asked)
    named = items.set_index(pd.Index([f"q{n}" for n in range(12)], name="item_id"))
    with open_study(eh.label(named, "indexed", **asked).folder) as study:
        assert set(study.store.pairs()["pair_id"]) == set(named.index)


@pytest.mark.slow
def test_a_page_is_served_in_the_background(tmp_path):
    """A program serves a labelling page while it does other things."""
    program = (
        "import evenhand as eh\n"
        "items = [{'response': 'one'}, {'response': 'two'}]\n"
        f"found = eh.label(items, 's', question='?', options=['a', 'b'], port={free_port()})\n"
        "found.serve()\nprint(found.links[0], flush=True)\ninput()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, **pipes) as process:
        page = process.stdout.readline().strip()
        assert holds(lambda: answers(page), 60), page
        process.communicate("\n", timeout=60)
