"""`evenhand check`: anyone's labels, one command; and what nobody labelled is told apart."""

import itertools
import json
import math
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.rubrics.loading import rubric_text
from evenhand.study.settings.study_toml import change_config
from evenhand.study.tables.formats import read_table
from harness.studies import with_labels
from tests.commands import Run


def checked(folder: Path, *arguments: str | Path) -> pd.DataFrame:
    assert main(["check", *map(str, arguments), "--out", str(folder / "out")]) == 0
    files = {path.name for path in (folder / "out").iterdir()}
    assert files == {"report.html", "report.md", "report.json", "results.csv"}
    return read_table(folder / "out" / "results.csv")


def value(results: pd.DataFrame, statistic: str, a: str, b: str = "", subset: str = "all") -> float:
    keys = {"statistic": statistic, "rater_a": a, "rater_b": b, "subset": subset, "at": ""}
    found = results[(results[list(keys)] == pd.Series(keys)).all(axis=1)]
    assert len(found) == 1, keys
    return float(found["estimate"].iloc[0])


@pytest.fixture(scope="module")
def newsroom(
    shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, pd.DataFrame]:
    """The folder in which the published ratings were checked, and the results."""
    file, folder = shared_data / "real" / "newsroom.csv", tmp_path_factory.mktemp("newsroom")
    given = ("--level", "ordinal", "--categories", "1,2,3,4,5", "--resamples", "100")
    return folder, checked(folder, str(file), *given)


@pytest.mark.slow
def test_dices_with_its_124_raters_is_pooled(shared_data: Path, tmp_path: Path, capsys) -> None:
    import krippendorff

    file = shared_data / "real" / "dices350.csv"
    results = checked(tmp_path, str(file), "--resamples", "100")
    assert "the labels seen (No, Unsure, Yes) are taken as nominal" in capsys.readouterr().out
    wide = pd.read_csv(file).pivot(index="item_id", columns="rater_id", values="label")
    codes = wide.apply(lambda column: column.map({"No": 0, "Unsure": 1, "Yes": 2}))
    alpha = krippendorff.alpha(codes.to_numpy(float).T, level_of_measurement="nominal")
    assert value(results, "krippendorff_alpha_nominal", "humans") == pytest.approx(alpha, abs=1e-12)
    # 124 raters make 7,626 pairs: none of them has a row of its own
    assert not ((results["rater_a"] == "r0") & (results["rater_b"] == "r1")).any()


@pytest.mark.slow
def test_llmbar_combines_both_orders(shared_data: Path, tmp_path: Path) -> None:
    file = shared_data / "real" / "llmbar.csv"
    results = checked(tmp_path, str(file))
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    gold = table[table["rater_kind"] == "human"].set_index("item_id")["label"]
    models = table[table["rater_kind"] == "model"]
    wide = models.pivot(index=["rater_id", "item_id"], columns="order", values="label")
    for grader in ("ChatGPT/CoT", "PaLM2/Vanilla"):
        # One order without a label leaves the other's; two that differ leave the unit unscored.
        both = wide.loc[grader]
        label = both["ab"].where(both["ab"] != "", both["ba"])
        label = label[(label != "") & ((both["ba"] == label) | (both["ba"] == ""))]
        agreement = (label == gold[label.index]).mean()
        found = value(results, "observed_agreement", "humans", grader)
        assert found == pytest.approx(agreement, abs=1e-12)
        coverage = value(results, "coverage", "", grader)
        assert coverage < 1
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["schema"] == 1
    # One person labelled, so nobody knows how far people agree: no verdict can be given.
    assert {verdict["verdict"] for verdict in report["verdicts"]} <= {"inconclusive", "do_not_use"}


def write(folder: Path, rows: list[str], more: str = "") -> Path:
    head = f"unit_id,rater_id,rater_kind,label{more}"
    (folder / "r.csv").write_text("\n".join([head, *rows]) + "\n")
    return folder / "r.csv"


@pytest.mark.parametrize(
    ("rows", "options", "says"),
    [
        (["u1,r1,human,1"], ["--level", "ordinal"], "cannot be seen from the labels"),
        ([], [], "has a header but no ratings"),
        (["u1,r1,human,", "u2,r1,human,"], [], "no rating has a label"),
        (["u1,r1,human,1"], ["--rubric", "refusl"], "there is no rubric 'refusl'"),
        (["u1,r1,human,1"], ["--rubric", "refusal", "--affirmative", "9"], "affirmative names '9'"),
        (["u1,r1,human,1", "u1,r1,human,2"], [], "row 3: rater 'r1' has already rated item 'u1'"),
        (["u1,r1,human,1"], ["--categories", "1,2", "--affirmative", "3"], "affirmative names '3'"),
    ],
)
def test_bad_ratings_are_one_sentence(tmp_path, run, rows, options, says):
    assert says in run.refused("check", write(tmp_path, rows), *options)


def test_two_versions_of_a_rubric_are_never_pooled(tmp_path: Path, run: Run) -> None:
    rows = ["u1,r1,human,1,refusal,aaaa", "u1,r2,human,1,refusal,bbbb"]
    error = run.refused("check", write(tmp_path, rows, ",rubric,rubric_hash"))
    assert "aaaa" in error
    assert "bbbb" in error


@pytest.mark.slow
def test_a_constant_grader_never_passes(tmp_path: Path) -> None:
    rows = [f"u{unit},always-yes,model,yes" for unit in range(300)]
    for unit, rater in itertools.product(range(300), range(3)):
        rows.append(f"u{unit},r{rater},human,{'no' if (unit + rater) % 20 == 0 else 'yes'}")
    checked(tmp_path, write(tmp_path, rows))
    (verdict,) = json.loads((tmp_path / "out" / "report.json").read_text())["verdicts"]
    assert verdict["verdict"] == "do_not_use"


def test_undefined_is_null_with_a_reason(tmp_path: Path) -> None:
    rows = [f"u{unit},r{rater},human,same" for unit in range(40) for rater in range(2)]
    file, few = write(tmp_path, rows), ("--resamples", "20")
    results = checked(tmp_path, file, "--categories", "same,other", *few)
    row = results[(results["statistic"] == "cohen_kappa") & (results["rater_b"] == "r1")].iloc[0]
    assert (row["estimate"], row["low"], row["high"]) == ("", "", "")
    assert "no_variation" in row["note"]
    assert math.isclose(value(results, "observed_agreement", "r0", "r1"), 1.0)


@pytest.mark.slow
def test_sides_by_option(tmp_path: Path, run: Run) -> None:
    """Labels x and y favour side a and b; the grader favours whichever stands first."""
    rows = [f"u{n},ann,human,{'xy'[n % 2]}," for n in range(20)]
    rows += [f"u{n},g,model,{each}" for n in range(20) for each in ("x,ab", "y,ba")]
    file, scale = write(tmp_path, rows, ",order"), ["--categories", "x,y", "--sides"]
    results = checked(tmp_path, file, *scale, "x,y").set_index("statistic")
    assert float(results.loc["bias_order", "estimate"]) == 1.0
    certain = "no resample differs: the interval is what 20 clusters allow"
    assert results.loc["bias_order_flips", "note"] == f"{certain}; 20 flips"
    assert "g, order: it favours the side shown first" in (tmp_path / "out/report.md").read_text()
    for wrong, says in (("x", "name two labels"), ("x,z", "'z' is said to favour side 'b'")):
        assert says in run.refused("check", file, *scale, wrong)


@pytest.mark.slow
def test_a_rubric_has_its_scale_once_it_is_asked_for_and_options_win(tmp_path, run):
    rows = [f"u{n},r{rater},human,{1 + n % 5}" for n in range(40) for rater in range(2)]
    file = write(tmp_path, rows)
    own = checked(tmp_path, file, "--rubric", "refusal")
    options = ("--affirmative", "1,2", "--level", "nominal")
    other = checked(tmp_path, file, "--rubric", "refusal", *options)
    # 8 of every 40 units carry each label: 4 and 5 are affirmative, then 1 and 2
    for results, alpha in ((own, True), (other, False)):
        share = results[(results["statistic"] == "prevalence") & (results["at"] == "affirmative")]
        assert set(share["estimate"].astype(float)) == {0.4}
        assert ("krippendorff_alpha_ordinal" in set(results["statistic"])) is alpha
    # A file's own rubric may have the name of one of the library.
    rows = [f"u{n},r{r},human,{'yx'[n % 2]},tone" for n in range(40) for r in range(2)]
    file = write(tmp_path, rows, ",rubric")
    assert "No scale is declared for tone" in run.ok("check", file)
    assert "correct it, declare it" in run.refused("check", file, "--rubric", "tone")


@pytest.mark.slow
def test_slices_raters_and_margin_by_option(tmp_path: Path) -> None:
    """The leanings are mixed, so that siding with some annotators is no siding with one side."""
    rows = []
    leanings = {"r1": "left", "r2": "right", "r3": "left", "r4": "right", "g": ""}
    for unit, (rater, leaning) in itertools.product(range(80), leanings.items()):
        kind = "model" if rater == "g" else "human"
        label = "yes" if (unit * 7 + (rater == "r3") * (unit % 5 == 0)) % 3 else "no"
        rows.append(f"u{unit},{rater},{kind},{label},{'tax' if unit % 2 else 'war'},{leaning}")
    results = checked(
        tmp_path, write(tmp_path, rows, ",topic,leaning"), "--slice", "topic", "--set",
        "rater_slices=leaning", "--set", "sensitivity_cluster=topic", "--margin", "0.2",
    )  # fmt: skip
    assert {"topic=tax", "topic=war", "leaning=left"} <= set(results["subset"])
    assert "cluster=topic" in set(results["at"])
    tax = results[(results["subset"] == "topic=tax") & (results["statistic"] == "cohen_kappa")]
    assert set(tax["n_units"]) == {"40"}
    (verdict,) = json.loads((tmp_path / "out" / "report.json").read_text())["verdicts"]
    assert "margin 0.20" in verdict["sentence"]


@pytest.mark.slow
def test_estimates_are_held_against_the_libraries(newsroom: tuple[Path, pd.DataFrame]) -> None:
    assert set(newsroom[1]["n_clusters"]) >= {"420"}
    facts = json.loads((newsroom[0] / "out" / "report.json").read_text())["study"]
    # 3 pairs of raters x 3 kappas, 3 alphas and Fleiss' kappa of humans and of all
    assert "17 values compared with scikit-learn, krippendorff and statsmodels" in json.dumps(facts)


def test_a_wrong_estimate_never_reaches_a_report() -> None:
    from evenhand.analysis.bootstrap.intervals import Interval
    from evenhand.analysis.labels.matrix import Coded
    from evenhand.analysis.results import ResultRows
    from evenhand.analysis.verification import library_values, verify_estimates

    codes, kinds = np.array([[0, 0], [0, 1], [1, 1], [1, 1]], dtype=np.int8), ("human", "human")
    about = (np.arange(4), ("x", "y"), (1.0, 2.0), "nominal", "all")
    coded = Coded(("a", "b"), kinds, codes, *about)
    rows = ResultRows("r")
    rows.add("cohen_kappa", Interval(0.6, 0, 1), (4, 4), rater_a="a", rater_b="b", subset="all")
    with pytest.raises(RuntimeError, match=r"a library gives 0\.5"):
        verify_estimates(rows, coded.subset, library_values(coded))


@pytest.mark.slow
def test_groups_and_variants_by_option(tmp_path: Path) -> None:
    """The grader errs on one group only; its labels of one question differ in one wording."""
    rng = np.random.default_rng(3)
    truth, rows = rng.random(60) < 0.5, []
    for question, wording, rater in itertools.product(range(60), "xyz", ("r1", "r2", "g")):
        source, kind = "left" if question % 2 else "right", "model" if rater == "g" else "human"
        wrong = rater == "g" and source == "right" and wording == "z"
        label = "yes" if truth[question] != wrong else "no"
        about = f"q{question},{source},{wording}"
        rows.append(f"q{question}-{wording},{rater},{kind},{label},{about}")
    file = write(tmp_path, rows, ",cluster_id,source,wording")
    results = checked(tmp_path, file, "--set", "groups=source", "--set", "variants=wording")
    keyed = results.set_index(["statistic", "rater_a", "rater_b", "subset", "at"])["estimate"]
    keyed = pd.to_numeric(keyed)
    at_right = keyed["group_balanced_accuracy", "humans", "g", "source=right", ""]
    assert at_right == pytest.approx(2 / 3, abs=0.02)  # a third of it is wrong, on either side
    apart = keyed["group_difference", "humans", "g", "source=right", ""]
    assert apart == pytest.approx(at_right - 1)
    assert keyed["stability_fleiss_kappa", "humans", "", "all", "wording"] == 1
    # Half the questions have all three labels alike, the others one pair of three
    observed = (1 + 1 / 3) / 2
    yes = keyed["prevalence", "g", "", "all", "yes"]
    chance = yes**2 + (1 - yes) ** 2
    stable = keyed["stability_fleiss_kappa", "g", "", "all", "wording"]
    assert stable == pytest.approx((observed - chance) / (1 - chance))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "grader"),
    [
        ("--wide {rater}_{rubric} --human ann,ben --model gpt --affirmative yes", "gpt"),
        ("--human ann_tone,ben_tone --model gpt_tone --categories no,yes --no-normalise --set "
         "looks=3 --seed 5 --margin .2", "gpt_tone"),
    ],
)  # fmt: skip
def test_settings_that_check_wrote_are_those_of_each_verb(tmp_path, run, asked, grader):
    rows = ["item,ann_tone,ben_tone,gpt_tone"]
    for n in range(40):
        labels = ["yes" if (n * k) % 7 < 3 + (k == 5) else "no" for k in (1, 1, 5)]
        rows.append(",".join([f"q{n}", *labels]))
    file = tmp_path / "r.csv"
    file.write_text("\n".join(rows) + "\n", "utf-8")
    (tmp_path / "r.scales.toml").write_text("[analysis]\nresamples = 100\n", "utf-8")
    given = checked(tmp_path, file, *asked.split(), "--write-settings")
    pd.testing.assert_frame_equal(checked(tmp_path, file), given)
    written = tomllib.loads((tmp_path / "r.scales.toml").read_text("utf-8"))
    assert ("normalise" in written["file"]) == ("--no-normalise" in asked)
    assert written["analysis"]["resamples"] == 100, "what it said already stays"
    rule = ["--require", "cohen_kappa > -1", "--grader", grader]
    run.ok("gate", file, *rule)
    assert main(["plan", str(file)]) == main(["select", str(file)]) == 0
    told = run.refused("gate", file, *rule, "--wide", "{rater}")
    assert "evenhand check RATINGS --wide ... --write-settings" in told


def test_settings_are_written_of_what_is_at_hand(tmp_path: Path, run: Run) -> None:
    """No units from another folder; and a rubric by its name, not as a file of one's own."""
    names = ("r.csv", "own.toml", "r.scales.toml", "far")
    file, own, settings, far = (tmp_path / name for name in names)
    file.write_text("unit_id,a,b\n1,1,2\n2,4,5\n", "utf-8")
    far.mkdir()
    (far / "u.csv").write_text("unit_id,topic\n1,a\n2,b\n", "utf-8")
    own.write_text(rubric_text("refusal"), "utf-8")
    asked = ["check", file, "--human", "a,b", "--resamples", "20", "--write-settings"]
    assert "put it next to the ratings" in run.refused(*asked, "--units", far / "u.csv")
    assert "leave out --write-settings" in run.refused(*asked, "--rubric", own)
    assert not settings.exists()
    run.ok(*asked, "--rubric", "refusal")
    assert tomllib.loads(settings.read_text("utf-8"))["file"]["rubric"] == "refusal"
    settings.write_text('[file]\nrubric = "../own"\n', "utf-8")
    assert "file.rubric is '../own'" in run.refused("check", file)


@pytest.mark.slow
def test_everything_graded_reaches_the_report(make_study, tmp_path):
    study = make_study(pairs=24, sample=10)
    raters = (("ann", "sample"), ("ben", "sample"), ("dice", "all"))
    for seed, (rater, scope) in enumerate(raters):
        rng = np.random.default_rng(seed)
        for name, rubric in study.rubrics.items():
            units = study.rubric_units(rubric, scope)
            given = {rater: rng.choice(rubric.categories, len(units)).tolist()}
            about = {"units": units, "graders": ["dice"], "rubric_hash": rubric.hash}
            with_labels(study, given, name, **about)
    folder = str(study.folder)
    assert main(["grade", folder, "--grader", "baseline:lexical", "--scope", "all"]) == 0
    change_config(study.folder, {"analysis": {"resamples": 100}})
    assert main(["report", folder, "--out", str(tmp_path / "out")]) == 0

    results = read_table(tmp_path / "out" / "results.csv")
    whole = results[results["subset"] == "all|binary"]
    raw = whole[whole["statistic"] == "rate_raw"]
    assert set(raw["rater_b"]) == {"dice", "baseline:lexical"}
    assert set(raw["at"]) == {"s1", "s2"}
    assert set(raw["n_units"]) == {"24"}
    ppi = whole[(whole["statistic"] == "rate_ppi") & (whole["rater_b"] == "dice")]
    assert set(ppi["note"]) == {"10 of them labelled by annotators"}
    # What is compared with people stays on the sample: 10 pairs of 2 subjects, and their responses.
    beside = results[(results["rater_a"] == "humans") & (results["rater_b"] == "dice")]
    agreement = beside[(beside["statistic"] == "observed_agreement") & (beside["subset"] == "all")]
    assert set(agreement["n_units"]) == {"20", "40"}
