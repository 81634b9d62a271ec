"""`import evenhand as eh`: a notebook's way to what `evenhand check` does; its keywords are typed,
shown to editors, and the nearest named for a wrong one.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

import evenhand as eh
from docs.keywords import STUB, stub
from evenhand.cli.main import main
from evenhand.cli.studies import ITEM_OPTIONS
from evenhand.cli.verbs import OF_FILES
from evenhand.reporting.keywords import keyword_types
from evenhand.study import open_study
from evenhand.study.settings.analysis import Rules
from evenhand.study.settings.study_toml import change_config
from harness.judged_study import judged_study, tune_and_exclude
from tests.commands import python


@pytest.fixture(scope="module")
def labels() -> pd.DataFrame:
    """Three people and a grader on 60 units in 20 clusters; ben and the grader left some out."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 60)
    said = {
        name: np.where(rng.random(60) < 0.8, truth, rng.integers(0, 3, 60))
        for name in ("ann", "ben", "cem", "gpt")
    }
    wide = pd.DataFrame(said).replace(dict(enumerate(("low", "mid", "top")))).astype(object)
    wide.loc[3:5, "ben"] = None
    wide.loc[7, "gpt"] = None
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


PEOPLE = ["ann", "ben", "cem"]
SCALE: dict[str, Any] = {"categories": ["low", "mid", "top"], "level": "ordinal"}
OPTIONS = ["--categories", "low,mid,top", "--level", "ordinal"]


def of_the_command(file: Path, out: Path, *options: str) -> pd.DataFrame:
    assert main(["check", str(file), *options, "--out", str(out)]) == 0
    return results_in(out)


def results_in(folder: Path) -> pd.DataFrame:
    numbers = {"estimate": "", "low": "", "high": ""}
    return pd.read_csv(folder / "results.csv", keep_default_na=False, na_values=numbers)


def same(found: eh.Check, expected: pd.DataFrame) -> None:
    results = found.results.reset_index(drop=True)
    expected = expected.astype(results.dtypes.to_dict())
    pd.testing.assert_frame_equal(results, expected, check_exact=True)


@pytest.mark.slow
def test_long_and_wide_give_what_the_command_gives(labels, file, tmp_path):
    expected = of_the_command(file, tmp_path / "a", *OPTIONS)
    same(eh.check(eh.read(file), **SCALE), expected)
    wide = eh.check(labels, human=PEOPLE, model="gpt", **SCALE)
    same(wide, expected)
    by_index = labels.set_index("unit_id")
    same(eh.check(by_index, human=PEOPLE, model=["gpt"], **SCALE), expected)
    # Without rater_kind the raters' names say who is who.
    named = eh.read(file).drop(columns="rater_kind")
    same(eh.check(named, human=PEOPLE, model=["gpt"], **SCALE), expected)
    # The three report files are the command's too, but for what the ratings are called.
    page = wide.report(tmp_path / "b")
    assert page == tmp_path / "b" / "report.html"
    for name in ("report.html", "report.md", "report.json", "results.csv"):
        theirs = (tmp_path / "a" / name).read_text("utf-8").replace("ratings.csv", "ratings")
        assert (tmp_path / "b" / name).read_text("utf-8") == theirs, name
    assert wide.verdicts == json.loads((tmp_path / "b" / "report.json").read_text())["verdicts"]


@pytest.mark.slow
def test_settings_are_those_of_the_command(labels, file, tmp_path):
    options = ["--slice", "topic", "--cluster", "topic", "--margin", "0.3", "--affirmative", "top"]
    expected = of_the_command(file, tmp_path / "a", *OPTIONS, *options)
    settings: dict[str, Any] = {"slices": ["topic"], "cluster": "topic", "margin": 0.3}
    found = eh.check(labels, human=PEOPLE, model="gpt", affirmative="top", **SCALE, **settings)
    same(found, expected)
    people = found.results.query("statistic == 'fleiss_kappa' and rater_a == 'humans'")
    assert people[people["subset"] == "all"]["n_clusters"].tolist() == [2]
    with pytest.raises(eh.InputError, match="clustr"):
        eh.check(labels, human=PEOPLE, model="gpt", clustr="topic")


@pytest.mark.slow
def test_units_beside_the_ratings(labels: pd.DataFrame, file: Path, tmp_path: Path) -> None:
    columns = ["unit_id", "cluster_id", "topic"]
    labels[columns].to_csv(tmp_path / "units.csv", index=False)
    bare = labels.drop(columns=["cluster_id", "topic"])
    expected = of_the_command(file, tmp_path / "out", *OPTIONS, "--slice", "topic")
    for units in (labels[columns], tmp_path / "units.csv", str(tmp_path / "units.csv")):
        found = eh.check(bare, human=PEOPLE, model="gpt", units=units, slices=["topic"], **SCALE)
        same(found, expected)
    with pytest.raises(eh.InputError, match="units has no row for item 'u59'"):
        eh.check(bare, human=PEOPLE, model="gpt", units=labels[columns][:-1])


@pytest.mark.slow
def test_real_labels_in_both_orders(shared_data, tmp_path, capsys):
    file = shared_data / "real" / "llmbar.csv"
    expected = of_the_command(file, tmp_path, "--resamples", "20")
    said = capsys.readouterr().out.replace("--level and --categories", "level= and categories=")
    said = said.replace("`item_id`", "`unit_id`")  # as `read` calls it
    found = eh.check(eh.read(file), resamples=20)
    same(found, expected)
    assert said.startswith(f"{found}\nReport: ")


def test_read_gives_the_table_of_the_contract(file: Path) -> None:
    from evenhand.study.tables.ratings import RATINGS_COLUMNS

    table = eh.read(str(file))
    assert list(table) == [*RATINGS_COLUMNS, "cluster_id", "topic"]
    assert (len(table), table["draw"].dtype) == (236, "int64")
    with pytest.raises(eh.InputError, match=r"there is no file nothing\.csv"):
        eh.read(file.with_name("nothing.csv"))


@pytest.mark.slow
def test_labels_of_any_type(labels: pd.DataFrame) -> None:
    """Numbers, booleans and categories are the texts that a file would hold."""
    codes = labels.replace({"low": 1, "mid": 2, "top": 3})
    as_texts = labels.replace({"low": "1", "mid": "2", "top": "3"})
    who: dict[str, Any] = {"human": PEOPLE, "model": "gpt", "categories": [1, 2, 3]}
    expected = eh.check(as_texts, **who, resamples=50).results
    raters = [*PEOPLE, "gpt"]
    for kind in ("float64", "Int64", "category", object):
        found = eh.check(codes.astype(dict.fromkeys(raters, kind)), **who, resamples=50)
        pd.testing.assert_frame_equal(found.results, expected)


def test_raters_who_are_not_named_are_left_out(labels: pd.DataFrame, file: Path) -> None:
    found = eh.check(eh.read(file), human=["ann", "ben"], **SCALE, resamples=50)
    assert "Left out, because neither human nor model names them: cem." in found.notes
    # The graders stay as rater_kind has them.
    assert set(found.results["rater_b"]) >= {"ben", "gpt"}
    assert "cem" not in set(found.results["rater_a"]) | set(found.results["rater_b"])


@pytest.mark.slow
def test_a_missing_cell_is_no_rating_and_an_empty_text_is_unscored(labels: pd.DataFrame) -> None:
    def reasons(table: pd.DataFrame) -> str:
        results = eh.check(table, human=PEOPLE, model="gpt", **SCALE, resamples=50).results
        row = results[(results["statistic"] == "coverage") & (results["rater_b"] == "gpt")].iloc[0]
        assert (row["estimate"], row["n_units"]) == (pytest.approx(59 / 60), 60)
        return str(row["note"])

    assert reasons(labels) == "unscored: absent 1"
    assert reasons(labels.fillna({"gpt": ""})) == "unscored: no_label 1"


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (lambda t: t.rename(columns={"gpt": "dan"}), {},
         r"no column 'rater_id'; name the columns .* human=\[\.\.\.\]"),
        (lambda t: t, {"human": ["ann", "dan"]}, "no column 'dan'; it has unit_id, ann, ben"),
        (lambda t: t, {"human": "ann", "model": "ann"}, "human and model both name 'ann'"),
        (lambda t: t, {"human": PEOPLE, "categories": ["low", "mid"]},
         r"ratings, row \d+, column 'ann': the label 'top' is not one of the declared .*low, mid"),
        (lambda t: t, {"human": PEOPLE, "level": "ordinal"}, r"example categories=\['1', '2'"),
        (lambda t: t, {"human": PEOPLE, "sides": ["low"]}, "sides= is 'low'; name two labels"),
        (lambda t: t, {"human": PEOPLE, "rubric": "refusl"}, "there is no rubric 'refusl'"),
        (lambda t: t, {"human": PEOPLE, "cluster": "tpic"}, "tpic"),
        (lambda t: t, {"human": PEOPLE, "margin": 5}, "margin"),
        (lambda t: pd.concat([t, t]), {"human": PEOPLE}, "item 'u00' has two rows"),
        (lambda t: t.rename(columns={"topic": "ann"}), {"human": PEOPLE}, "two columns are called"),
        (lambda t: t[:0], {"human": PEOPLE}, "has a header but no ratings"),
        (lambda t: t.rename(columns={"ann": "all"}), {"human": ["all"]}, "stands for a group"),
        (lambda t: t.to_dict(), {"human": PEOPLE}, "'unit_id' must be a list of cells, not a dict"),
    ],
)  # fmt: skip
def test_bad_tables_are_one_sentence(labels, change, options, says):
    with pytest.raises(eh.InputError, match=says) as error:
        eh.check(change(labels), **options)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        ({"rater_kind": None, "rater_id": lambda t: "r" + t["rater_id"].str[0]}, {},
         r"no column 'rater_kind'; say who the raters are with human="),
        ({}, {"human": ["ann", "dan"]}, "has no rater 'dan'; it has ann, ben, cem, gpt"),
        ({}, {"human": ["ann", "gpt"]}, "human= names 'gpt', whose rater_kind is 'model'"),
        ({"rater_kind": "Human"}, {}, "rater_kind is 'Human'"),
        ({"label": None}, {}, "the column 'label' is missing"),
    ],
)  # fmt: skip
def test_bad_long_tables_are_one_sentence(file, change, options, says):
    table = eh.read(file)
    for column, value in change.items():
        table = table.drop(columns=column) if value is None else table.assign(**{column: value})
    with pytest.raises(eh.InputError, match=says):
        eh.check(table, **options)


@pytest.mark.parametrize(
    ("dirty", "options", "says"),
    [
        ("Low", {}, "ratings, row 3, column 'gpt': the label 'Low' differs from 'low' only "
                             "by case; normalise=True reads them as one"),
        ("low.", {}, "looks like 'low', and is 'low.'"),
        ("None", {}, "may mean that there is no label (1 cell); say so with missing=['None']"),
        ('{"label": "low"}', {}, "is nested JSON"),
        (["low"], {}, "is nested JSON"),
        ("x" * 201, {}, "has 201 characters"),
        ("lo\0w", {}, "contains a NUL character"),
    ],
)  # fmt: skip
def test_dirty_labels_are_never_categories(labels, dirty, options, says):
    cells = ["top", "top", "top", dirty, *labels["gpt"][4:]]
    table = labels.assign(gpt=pd.Series(cells, dtype=object))
    with pytest.raises(eh.InputError) as error:
        eh.check(table, human=PEOPLE, model="gpt", **options)
    assert says in str(error.value)


@pytest.mark.slow
def test_dirty_labels_are_put_right_where_asked(labels: pd.DataFrame) -> None:
    dirty = labels.assign(gpt=labels["gpt"].replace({"low": " LOW", "mid": "Mid"}))
    who: dict[str, Any] = {"human": PEOPLE, "model": "gpt", "resamples": 50}
    found = eh.check(dirty, **who, normalise=True)
    changed = int(labels["gpt"].isin(["low", "mid"]).sum())
    of = int(labels[[*PEOPLE, "gpt"]].notna().to_numpy().sum())
    assert f"Normalised: {changed} of {of} labels were changed." in found.notes
    pd.testing.assert_frame_equal(found.results, eh.check(labels, **who).results)


def test_probabilities_are_normalised_with_the_labels(labels: pd.DataFrame) -> None:
    """A grader that writes No writes it in its probabilities, too."""
    rows = [
        {"unit_id": f"u{n}", "rater_id": who, "rater_kind": kind, "label": label,
         "probabilities": shares}
        for n in range(40)
        for who, kind, label, shares in (
            ("ann", "human", "ny"[n % 2], ""),
            ("ben", "human", "ny"[n % 2], ""),
            ("gpt", "model", "NY"[n % 2], '{"N": 0.75, "Y": 0.25}'),
        )
    ]  # fmt: skip
    found = eh.check(
        pd.DataFrame(rows), categories=["n", "y"], affirmative="n", normalise=True, resamples=20
    )
    assert "Normalised: 40 of 120 labels were changed." in found.notes
    rates = found.results.query("statistic == 'prevalence' and subset == 'all|binary'")
    assert rates.set_index("rater_a").loc["gpt", "estimate"] == 1  # all are 0.75 for n


def test_other_names_are_understood_or_suggested(file: Path) -> None:
    names = {"unit_id": "item", "rater_id": "annotator"}
    table = eh.read(file).rename(columns=names)
    assert eh.check(table, resamples=10).verdicts == eh.check(file, resamples=10).verdicts
    with pytest.raises(eh.InputError) as error:
        eh.check(table.assign(worker="y"))
    advised = ".rename(columns={'item': 'unit_id', 'annotator': 'rater_id'})"
    assert advised in str(error.value)
    assert eval(f"table{advised}").equals(eh.read(file))  # noqa: S307


def test_messages_name_a_row_by_its_index(file: Path) -> None:
    table = eh.read(file)
    table.loc[17, "label"] = "higher"
    with pytest.raises(eh.InputError, match="ratings, row 17: the label 'higher' of rater 'ann'"):
        eh.check(table, **SCALE)
    with pytest.raises(eh.InputError, match=r"week-2, row 18: rater 'ann' .* in row 17"):
        eh.check(table.assign(unit_id=table["unit_id"].replace("u18", "u17")), name="week-2")


@pytest.mark.slow
def test_a_notebook_shows_verdicts_panel_and_figure(labels: pd.DataFrame) -> None:
    found = eh.check(labels, human=PEOPLE, model="gpt", **SCALE, affirmative=["top"])
    shown = found._repr_html_()
    (verdict,) = found.verdicts
    places = [shown.index(part) for part in (str(escape(verdict["sentence"])), "<table>", "<svg")]
    assert places == sorted(places)
    assert shown.count("<svg") == 1
    assert "Annotators with one another" in shown
    assert len(shown) < 50_000
    # Colours of its own for light and dark; nothing is run, nothing is fetched.
    assert "prefers-color-scheme: dark" in shown
    assert not re.search(r"<script|src=|href=|url\(|@import|on\w+=", shown)
    assert re.findall(r":root", shown) == []


def test_its_text_is_the_same_within_a_notebook(labels: pd.DataFrame, monkeypatch) -> None:
    found = eh.check(labels, human=PEOPLE, model="gpt", **SCALE)
    outside = str(found)
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setattr("builtins.get_ipython", lambda: shell, raising=False)
    assert str(found) == outside
    assert "Annotators with one another" in outside


def test_without_graders_there_is_no_verdict(labels: pd.DataFrame) -> None:
    found = eh.check(labels, human=PEOPLE, resamples=50)
    assert found.verdicts == []
    for shown in (str(found), found._repr_html_()):
        assert "No verdict: there is no grader to evaluate." in shown


HOSTILE = "<script>alert('x')</script>&\"[b]**"


@pytest.mark.slow
def test_hostile_labels_are_escaped(labels: pd.DataFrame) -> None:
    """As a label, a rater, a rubric, a cluster and the name: shown as text, never run."""
    table = labels.replace({"top": HOSTILE}).rename(columns={"gpt": HOSTILE, "ann": "<b>ann"})
    table = table.assign(cluster_id=HOSTILE + table["cluster_id"], rubric="<img src=x>")
    who: dict[str, Any] = {"human": ["<b>ann", "ben", "cem"], "model": HOSTILE}
    found = eh.check(table, **who, name="<h1>mine", resamples=50)
    shown = found._repr_html_()
    assert not re.search(r"<script|<b>|<img|<h1>", shown)
    assert "&lt;script&gt;alert(" in shown
    assert HOSTILE in str(found)


@pytest.mark.slow
def test_a_study_opened_in_python_is_that_of_the_report(tmp_path: Path) -> None:
    folder = judged_study(tmp_path)
    change_config(folder, {"decision": {"min_clusters": 10}})  # fewer are free to look at
    with open_study(folder) as study:
        tune_and_exclude(study)
    dataset = eh.open_study(folder)
    rubric = next(iter(dataset.scales))
    excluded = set(dataset.facts.excluded)
    assert excluded and excluded <= set(dataset.ratings["rater_id"])
    assert not excluded & set(dataset.counted(rubric)["rater_id"])
    assert f"{len(dataset.ratings)} ratings" in repr(dataset)
    # Nobody has looked at the labels yet, and to open a study is no look.
    for opened in (dataset, eh.open_study(folder)):
        (unseen, *_) = eh.check(opened, resamples=50).verdicts
        assert unseen["verdict"] == "inconclusive"
        assert "Labels have come in since the last report." in unseen["sentence"]
        assert unseen["next"] == {"kind": "look", "number": 0}
    assert main(["report", str(folder), "--out", str(tmp_path / "report")]) == 0
    said = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    found = eh.check(eh.open_study(folder))
    assert found.verdicts == said["verdicts"]
    same(found, results_in(tmp_path / "report"))
    with pytest.raises(eh.InputError, match="give only settings"):
        eh.check(dataset, categories=["A", "B"])


def test_the_public_names() -> None:
    results = ["Calibration", "Check", "Comparison", "Gate", "Labelling", "Plan", "Selection"]
    verbs = ["calibrate", "check", "compare", "gate", "label", "plan", "select"]
    others = ["Dataset", "InputError", "__version__", "analysis", "open_study", "read"]
    assert dir(eh) == sorted([*results, *verbs, *others])
    assert set(dir(eh)) == set(eh.__all__)
    for name in dir(eh):
        getattr(eh, name)
    with pytest.raises(AttributeError):
        eh.chekc  # noqa: B018


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys, evenhand as eh; eh.InputError, eh.__version__, dir(eh); print(*sys.modules)"
    loaded = {name.partition(".")[0] for name in python("-c", code, check=True).stdout.split()}
    assert not loaded & {"numpy", "pandas", "pydantic", "rich", "sqlalchemy", "jinja2", "argparse"}


TABLE = {"ann": list("yn") * 20, "ben": list("yyn") * 13 + ["n"], "gpt": list("yynn") * 10}
WHO: dict[str, Any] = {"human": ["ann", "ben"], "model": "gpt", "resamples": 20}
KEYWORDS = keyword_types()


def test_type_checkers_know_the_keywords() -> None:
    assert STUB.read_text("utf-8") == stub(), "run: python -m docs.keywords"


def test_every_setting_and_every_option_of_the_commands_is_a_keyword() -> None:
    plural = {"--threshold": "thresholds"}
    options = {plural.get(each, each.strip("-").replace("-", "_")) for each in OF_FILES}
    assert {*KEYWORDS["RatingsKeywords"]} == {*Rules.model_fields} | options | {"name"}
    items = {each.strip("-").replace("-", "_") for each in ITEM_OPTIONS}
    of_study = {"rubric", "sample", "stratify", "seed", "raters"}
    assert set(KEYWORDS["LabelKeywords"]) == items | of_study


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: eh.check(TABLE, humans=["ann"]),
         "check has no argument humans; did you mean human?"),
        (lambda: eh.gate(TABLE, "gpt", requires="verdict"),
         "gate has no argument requires; did you mean require?"),
        (lambda: eh.select(TABLE, marjin=0.1),
         "select has no argument marjin; did you mean margin?"),
        (lambda: eh.plan(half_widht=0.1),
         "plan has no argument half_widht; did you mean half_width?"),
        (lambda: eh.calibrate(TABLE, objektive="f1"),
         "calibrate has no argument objektive; did you mean objective?"),
        (lambda: eh.compare(TABLE, "gpt", base_line="b"),
         "compare has no argument base_line; did you mean baseline?"),
        (lambda: eh.label(TABLE, "s", qestion="?"),
         "label has no argument qestion; did you mean question?"),
        (lambda: eh.check(TABLE, zzz=1), "check has no argument zzz"),
        (lambda: eh.check(TABLE, **WHO, level="ordnal"),
         "level is 'ordnal'; did you mean ordinal?"),
        (lambda: eh.check(TABLE, **WHO, scope="those"), "scope is 'those'; did you mean these?"),
        (lambda: eh.check(TABLE, **WHO, overlap="x"), "overlap is 'x'; it must be 'random' or"),
        (lambda: eh.plan(statistic="zzz"),
         "statistic is 'zzz'; use kappa, alpha, rate, threshold"),
        (lambda: eh.calibrate(TABLE, objective="youdn"),
         "objective is 'youdn'; did you mean youden?"),
        (lambda: eh.check(TABLE, **WHO, thresholds={"gpt": "x"}),
         "thresholds has 'x' for 'gpt'; give a number from 0 to 1"),
        (lambda: eh.gate(TABLE, "gpt", drift_margin=0.1, **WHO),
         "drift_margin= is about a comparison with a baseline; add baseline="),
        (lambda: eh.gate(TABLE, "gpt", new_rubric=True, **WHO),
         "new_rubric=True is about a comparison with a baseline; add baseline="),
        (lambda: eh.gate(TABLE, "gpt", "kapa > 0", **WHO),
         "require: there is no statistic 'kapa' here"),
        (lambda: eh.gate(TABLE, "gtp", **WHO), "there is no grader 'gtp' here; the raters are"),
        (lambda: eh.compare(TABLE, "gpt", **WHO),
         "name the baseline=, or with against= the grader to compare with"),
        (lambda: eh.calibrate(TABLE, **WHO), "there are no probabilities to tune a threshold on"),
        (lambda: eh.plan(power=2), "power= is 2; it must lie between 0 and 1"),
        (lambda: eh.check(TABLE, **WHO, categories={"y", "n"}),
         'categories is in order; give a list, such as categories=["1", "2"]'),
        (lambda: eh.check(TABLE, **WHO, categories="yn"), "categories is in order; give a list"),
        (lambda: eh.check(TABLE, **WHO, sheet="labels"),
         "sheet= names one of a workbook; a table in memory has none, leave it out"),
        (lambda: eh.label(TABLE, "s", question="?", options=["a", "b"], sheet="labels"),
         "sheet= names one of a workbook; a table in memory has none, leave it out"),
        (lambda: eh.plan(categories=["y", "n"]),
         "categories= is about the labels of a pilot; give its table or path"),
        (lambda: eh.plan(TABLE, agreement=0.9),
         "agreement= is an assumption for planning without a pilot; leave it out"),
        (lambda: eh.read("x.csv", sep=";"), "read has no argument sep"),
        (lambda: eh.read(TABLE), "path must be text or a path, not a dict"),
        (lambda: eh.check(TABLE, **WHO, margin="x"), "margin must be a number, not 'x'"),
        (lambda: eh.check(TABLE, **WHO, margin=True), "margin must be a number, not True"),
        (lambda: eh.check(TABLE, **WHO, seed=None), "seed must be a whole number, not None"),
        (lambda: eh.check(TABLE, **WHO, seed=-1), "seed must be 0 or more"),
        (lambda: eh.check(TABLE, **WHO, slices=5), "slices must be text or a list, not 5"),
        (lambda: eh.check(TABLE, **WHO, columns="unit=item"),
         "columns must be a dict, not 'unit=item'"),
        (lambda: eh.check(TABLE, **WHO, normalise="no"), "normalise must be True or False, not"),
        (lambda: eh.gate(TABLE, 5, **WHO), "grader must be text, not 5"),
        (lambda: eh.gate(TABLE, "gpt", baseline=TABLE), "baseline must be text or a path, not a"),
        (lambda: eh.plan(raters=2.5), "raters must be a whole number, not 2.5"),
        (lambda: eh.label(TABLE, "s", question="?", scale=5), "scale must be text, not 5"),
        (lambda: eh.label({"response": ["x"]}, "s", question="?", options=["a"]),
         'options: name two options at least, such as options=["yes", "no"]'),
        (lambda: eh.label({"response": ["x"]}, "s"),
         'Say what to ask: question="TEXT" with options=["yes", "no"] or scale="1-5", or rubric='),
        (lambda: eh.label(TABLE, question="?"),
         "a table has no name for the study; name its folder: label(items, FOLDER)"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence(call: Any, says: str) -> None:
    with pytest.raises(eh.InputError) as error:
        call()
    assert str(error.value).startswith(says)
    assert "--" not in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_column_may_be_named_alone() -> None:
    table = TABLE | {"topic": ["tax", "war"] * 20}
    one, several = (eh.check(table, **WHO, slices=each) for each in ("topic", ["topic"]))
    assert one.results.equals(several.results)
    assert one.results["subset"].str.startswith("topic=").any()


WITHOUT_STUDIES = """
import sys
import evenhand as eh
class Lean:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sqlalchemy":
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Lean())
try:
    eh.label([{"response": "x"}], "s", question="?", options=["a", "b"])
except eh.InputError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_library_that_is_not_installed_is_named(tmp_path: Path) -> None:
    done = python("-c", WITHOUT_STUDIES, cwd=tmp_path)
    assert "sqlalchemy is not installed here; write `pip install 'evenhand[study]'`" in done.stdout
