"""An export carries what its labels mean, and `check` reads it by itself."""

import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_file, analyse_source, analyse_study
from evenhand.reporting.load import ScaleOptions, looked_at
from evenhand.reporting.ratings_file.declared import Sidecar, read_sidecar, sidecar_path
from evenhand.study import open_study
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.logs.decisions import look_numbers
from harness.judged_study import LATE, LEADS_WORDS, judged_study, tune_and_exclude
from tests.commands import Run


@pytest.fixture(scope="module")
def study_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = judged_study(tmp_path_factory.mktemp("judged"))
    change_config(folder, {"analysis": {"rater_slices": ["age_group"]}})
    with open_study(folder) as study:
        tune_and_exclude(study)
    return folder


@pytest.fixture(scope="module")
def ratings(study_folder: Path) -> Path:
    """What `evenhand export` writes, before anybody has looked at a verdict."""
    out = study_folder.parent / "ratings.csv"
    assert main(["export", str(study_folder), "--out", str(out)]) == 0
    return out


@pytest.fixture
def copied(ratings: Path, tmp_path: Path) -> Path:
    """The exported files in a folder of the test's own."""
    for name in ("ratings.csv", "ratings.units.csv", "ratings.scales.toml"):
        shutil.copy(ratings.with_name(name), tmp_path)
    return tmp_path / "ratings.csv"


@pytest.mark.slow
def test_the_files_say_what_the_study_says(study_folder: Path, ratings: Path) -> None:
    """Every row and verdict: wordings, thresholds tuned and declared, an exclusion, the cluster,
    groups, leanings, rules, prices, looks. What people said of themselves is not there.
    """
    of_files, context = analyse_file(ratings)
    with open_study(study_folder) as study:
        of_study, _ = analyse_study(study, verify=False, rater_slices=())
    assert [each["verdict"] for each in of_files.verdicts] != []
    assert of_files.verdicts == of_study.verdicts
    assert of_files.results.equals(of_study.results)
    subsets = set(of_files.results["subset"])
    assert "template_category=t0" in subsets
    rows = of_files.results.set_index(["statistic", "rater_b"])
    assert rows.loc[("price_per_1000_units", "paid"), "estimate"] == pytest.approx(2)
    late = [[e.provenance for e in a.thresholds if e.grader == LATE] for a in (of_files, of_study)]
    assert late[0] == late[1]
    assert context.rubric_titles["refusal"] == "Refusal"


@pytest.mark.slow
def test_every_setting_of_the_analysis_travels(study_folder: Path, ratings: Path) -> None:
    found = read_sidecar(ratings)
    assert found is not None
    with open_study(study_folder) as study:
        config, hashes = study.config, study.accepted_hashes()
    assert found.analysis == config.analysis.model_copy(update={"rater_slices": ()})
    assert (found.decision, found.seed) == (config.decision, config.seed)
    assert found.scales["refusal"].look == 1
    assert {name: each.hashes for name, each in found.scales.items()} == hashes
    written = tomllib.loads(sidecar_path(ratings).read_text("utf-8"))
    assert set(written["decision"]) == {"min_rarer", "looks", "bias_bound"}, "none of the usual"


def test_what_is_said_of_people_stays_with_the_study(study_folder: Path, ratings: Path) -> None:
    text = sidecar_path(ratings).read_text("utf-8")
    assert LEADS_WORDS not in text
    assert "dee" in text
    assert "age_group" not in text
    assert str(study_folder) not in text


@pytest.mark.slow
def test_an_export_is_no_look_and_a_later_one_counts(tmp_path: Path) -> None:
    folder = judged_study(tmp_path)
    out = tmp_path / "r.csv"
    looks = []
    for _ in range(2):
        assert main(["export", str(folder), "--out", str(out)]) == 0
        found = read_sidecar(out)
        assert found is not None
        looks.append(found.scales["refusal"].look)
        with open_study(folder) as study:
            present = looked_at(study, study.ratings())
            assert look_numbers(study.store, present, record=False) == {"refusal": 0}
            look_numbers(study.store, {"refusal": f"other labels {len(looks)}"}, record=True)
    assert looks == [1, 2]


@pytest.mark.slow
def test_options_win(copied: Path) -> None:
    given = ScaleOptions(rubric="refusal", thresholds={LATE: 0.7})
    analysis, _ = analyse_source(copied, replace(given, settings={"margin": 0.3, "resamples": 50}))
    assert (analysis.settings.margin, analysis.settings.resamples) == (0.3, 50)
    assert analysis.settings.cluster == "prompt_a"
    (late,) = [each for each in analysis.thresholds if each.grader == LATE]
    assert (late.threshold, late.origin) == (0.7, "declared")
    assert set(analysis.results["rubric"]) == {"refusal"}
    stable = analysis.results.query("statistic == 'stability_fleiss_kappa' and at == 'rubric'")
    assert not stable.empty, "the rubric's other wording came with it"


def test_check_says_in_one_line_that_it_read_it(copied: Path, run: Run) -> None:
    told = run.ok("check", copied, "--rubric", "refusal-2", "--resamples", "10").splitlines()
    (said,) = [line for line in told if "scales.toml" in line]
    assert said.endswith("come from ratings.scales.toml. Options given here take precedence.")


def test_a_file_written_by_hand(tmp_path: Path) -> None:
    """A scale is enough; ratings without a rubric are of the only one."""
    file = tmp_path / "mine.csv"
    rows = [f"u{n},{who},human,{n % 2}" for n in range(40) for who in ("ann", "ben")]
    file.write_text("\n".join(["unit_id,rater_id,rater_kind,label", *rows]), "utf-8")
    sidecar_path(file).write_text(
        '[scales.tone]\ncategories = ["0", "1", "2"]\nlevel = "ordinal"\naffirmative = ["2"]\n'
        "[analysis]\nresamples = 50\n",
        "utf-8",
    )
    analysis, _ = analyse_file(file)
    assert set(analysis.results["rubric"]) == {"tone"}
    assert "weighted_kappa_quadratic" in set(analysis.results["statistic"])


DAMAGED = {
    "no TOML": (b"[scales", "not valid TOML"),
    "bytes": (b"\xff\xfe\x00", "not UTF-8"),
    "nested": (b"a = " + b"[" * 100_000, "not valid TOML"),
    "a number": (b"seed = " + b"9" * 10_000, "not valid TOML"),
    "newer": (b"format = 2", "format"),
    "unknown": (b"colour = 1", "colour is no known key"),
    "steering": (b'"\\u001b[31m" = 1', "?[31m is no known key"),
    "a name that steers": (b'study = "\\u001b]0;me\\u0007"', "study"),
    "elsewhere": (b'units = "../units.csv"', "not the name of a file beside"),
    "absent": (b'units = "gone.csv"', "gone.csv, which is not next to it"),
    "for ever": (b"[analysis]\nresamples = 999999999", "at most 100000"),
    "margin": (b"[analysis]\nmargin = -1", "analysis.margin"),
    "what went": (b'[analysis]\nensembles = [["g", "h"]]', "analysis.ensembles was removed"),
    "rule": (b"[decision]\nmin_coverage = 7", "decision.min_coverage"),
    "no categories": (b"[scales.refusal]\ncategories = []", "categories"),
    "affirmative": (b'[scales.refusal]\ncategories = ["1"]\naffirmative = ["9"]',
        "affirmative names '9'"),
    "collapse": (b'[scales.refusal]\ncategories = ["1", "2"]\ncollapse = {x = ["1"]}',
        "no place for '2'"),
    "wording": (b'[scales.b]\ncategories = ["1"]\nvariant_of = "a"', "a variant of 'a'"),
    "price": (b'[scales.r]\ncategories = ["1"]\n[scales.r.usage.g]\nattempts = 1\nunits = 1\n'
        b"labelled = 1\nunscored = 0\ncost_usd = inf", "cost_usd"),
    "tuned": (
        b'[scales.r]\ncategories = ["1"]\n[[scales.r.tuned]]\ngrader = "g"\nobjective = "kappa"\n'
        b'reference = "humans"\ninstead_of = 0.5\nclusters = []',
        "none of the thresholds",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", DAMAGED)
def test_a_damaged_one_is_one_sentence(copied: Path, run: Run, fault: str) -> None:
    content, says = DAMAGED[fault]
    sidecar_path(copied).write_bytes(content)
    (sentence,) = run.refused("check", copied).splitlines()
    assert "ratings.scales.toml" in sentence
    assert says in sentence
    assert "\x1b" not in sentence


def test_a_folder_of_this_name_is_one_sentence(copied: Path) -> None:
    sidecar_path(copied).unlink()
    sidecar_path(copied).mkdir()
    with pytest.raises(InputError, match=r"^ratings.scales.toml: this is a folder"):
        read_sidecar(copied)


def test_without_one_nothing_is_known(copied: Path) -> None:
    sidecar_path(copied).unlink()
    assert read_sidecar(copied) is None
    assert Sidecar().known_scales() == {}
