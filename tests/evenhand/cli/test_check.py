"""`evenhand check`: anyone's labels, one command; and what nobody labelled is told apart."""

import itertools
import json
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.rubrics.loading import rubric_text
from evenhand.study.tables.formats import read_table
from tests.commands import Run


def checked(folder: Path, *arguments: str | Path) -> pd.DataFrame:
    assert main(["check", *map(str, arguments), "--out", str(folder / "out")]) == 0
    files = {path.name for path in (folder / "out").iterdir()}
    assert files == {"report.html", "report.md", "report.json", "results.csv"}
    return read_table(folder / "out" / "results.csv")


@pytest.mark.slow
def test_llmbar_combines_both_orders(shared_data: Path, tmp_path: Path) -> None:
    file = shared_data / "real" / "llmbar.csv"
    own = checked(tmp_path, file).query("subset == 'all' and at == ''")
    own = pd.to_numeric(own.set_index(["statistic", "rater_a", "rater_b"])["estimate"])
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
        assert own["observed_agreement", "humans", grader] == pytest.approx(agreement, abs=1e-12)
        assert own["coverage", "", grader] < 1
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["schema"] == 1
    # One person labelled, so nobody knows how far people agree: no verdict can be given.
    assert {verdict["verdict"] for verdict in report["verdicts"]} <= {"inconclusive", "do_not_use"}


@pytest.mark.slow
def test_estimates_are_held_against_the_libraries(shared_data: Path, tmp_path: Path) -> None:
    given = ("--level", "ordinal", "--categories", "1,2,3,4,5", "--resamples", "100")
    results = checked(tmp_path, shared_data / "real" / "newsroom.csv", *given)
    assert set(results["n_clusters"]) >= {"420"}
    facts = json.loads((tmp_path / "out" / "report.json").read_text())["study"]
    # 3 pairs of raters x 3 kappas, 3 alphas and Fleiss' kappa of humans and of all
    assert "17 values compared with scikit-learn, krippendorff and statsmodels" in json.dumps(facts)


def write(folder: Path, rows: list[str], more: str = "") -> Path:
    head = f"unit_id,rater_id,rater_kind,label{more}"
    (folder / "r.csv").write_text("\n".join([head, *rows]) + "\n")
    return folder / "r.csv"


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


@pytest.mark.journey
def test_undefined_is_null_with_a_reason(tmp_path: Path) -> None:
    rows = [f"u{unit},r{rater},human,same" for unit in range(40) for rater in range(2)]
    asked = (write(tmp_path, rows), "--categories", "same,other", "--resamples", "20")
    found = checked(tmp_path, *asked).query("rater_b == 'r1'").set_index("statistic")
    row = found.loc["cohen_kappa"]
    assert (row["estimate"], row["low"], row["high"]) == ("", "", "")
    assert "no_variation" in row["note"]
    assert float(found.loc["observed_agreement", "estimate"]) == 1.0


@pytest.mark.slow
def test_sides_by_option(tmp_path: Path) -> None:
    """Labels x and y favour side a and b; the grader favours whichever stands first."""
    rows = [f"u{n},ann,human,{'xy'[n % 2]}," for n in range(20)]
    rows += [f"u{n},g,model,{each}" for n in range(20) for each in ("x,ab", "y,ba")]
    file, scale = write(tmp_path, rows, ",order"), ["--categories", "x,y", "--sides"]
    results = checked(tmp_path, file, *scale, "x,y").set_index("statistic")
    assert float(results.loc["bias_order", "estimate"]) == 1.0
    certain = "no resample differs: the interval is what 20 clusters allow"
    assert results.loc["bias_order_flips", "note"] == f"{certain}; 20 flips"
    assert "g, order: it favours the side shown first" in (tmp_path / "out/report.md").read_text()


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
@pytest.mark.parametrize(("asked", "grader"), [
    ("--wide {rater}_{rubric} --human ann,ben --model gpt --affirmative yes", "gpt"),
    ("--human ann_tone,ben_tone --model gpt_tone --categories no,yes --no-normalise --set "
     "looks=3 --seed 5 --margin .2", "gpt_tone"),
])  # fmt: skip
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


@pytest.mark.journey
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
