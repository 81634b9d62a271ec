"""A study's tuned thresholds: what is known of them, and that everything judges them alike."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.analysis import Analysis
from evenhand.analysis.results import ResultRow
from evenhand.cli.main import main
from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.load import from_study
from evenhand.reporting.report import study_figures
from evenhand.reporting.selecting import calibrate
from evenhand.study import Study, open_study
from evenhand.study.creation import extend_sample
from evenhand.study.desk.claims import exclude
from evenhand.study.lead.imports import import_ratings
from evenhand.study.lead.progress import data_version
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.schema import threshold_events
from evenhand.study.tables.ratings import validate_ratings

pytestmark = pytest.mark.slow

RUBRIC, GRADER = "refusal", "prob"
PAIRS, SAMPLED = 60, 40


def _label(study: Study, pairs: list[str], rng: np.random.Generator, labels: bool) -> None:
    """Two people and a grader whose probabilities say yes from .1 up, on all units of the pairs.

    Without `labels` the grader has no categories, only probabilities.
    """
    rubric = study.rubrics[RUBRIC]
    units = study.units("all")
    yes = rubric.affirmative[0]
    no = next(key for key in rubric.categories if key not in rubric.affirmative)
    rows = []
    for unit in units.loc[units["cluster_id"].isin(pairs) & units["side"].ne(""), "unit_id"]:
        truth = rng.random() < 0.4
        stated = rng.uniform(0.08, 1.0) if truth else rng.uniform(0.0, 0.12)
        for who in ("ann", "ben"):
            said = truth != (rng.random() < 0.1)
            rows.append((unit, who, "human", yes if said else no, np.nan, ""))
        hard = yes if stated > 0.5 else no
        rows.append((unit, GRADER, "model", hard if labels else "", stated, "verbalised"))
    columns = ["unit_id", "rater_id", "rater_kind", "label", "p_positive", "prob_method"]
    table = pd.DataFrame(rows, columns=columns).assign(rubric=RUBRIC)
    import_ratings(study, validate_ratings(table), "ratings.csv")


@pytest.fixture
def tuned(make_study):
    """tuned(labels=False, **fields of StudyPlan) -> a study's folder, before anything is tuned."""

    def make(labels: bool = False, **fields: object) -> Path:
        study = make_study(pairs=PAIRS, sample=SAMPLED, stratify=(), **fields)
        _label(study, study.store.sample(), np.random.default_rng(4), labels)
        study.close()
        change_config(study.folder, {"analysis": {"resamples": 200}})
        return study.folder

    return make


def analysed(folder: Path) -> Analysis:
    with open_study(folder) as study:
        return analyse_study(study, verify=False)[0]


def written(folder: Path) -> float:
    """The threshold that `calibrate --write` puts into study.toml."""
    assert main(["calibrate", str(folder), "--rubric", RUBRIC, "--write"]) == 0
    with open_study(folder) as study:
        return study.config.thresholds[RUBRIC][GRADER]


def row(found: Analysis, statistic: str, rater_a: str = "humans", at: str = "") -> ResultRow:
    key = (RUBRIC, statistic, rater_a, GRADER, "all|binary", at)
    [one] = [each for each in found.rows if tuple(each.values())[:6] == key]
    return one


def bounds(one: ResultRow) -> tuple[float, float, float]:
    return one["estimate"], one["low"], one["high"]


def origin(folder: Path) -> str:
    [one] = [each for each in analysed(folder).thresholds if each.grader == GRADER]
    return one.origin


@pytest.mark.parametrize("labels", [False, True], ids=["probabilities", "labels"])
def test_writing_a_threshold_changes_no_verdict(tuned, labels):
    folder = tuned(labels)
    before = analysed(folder)
    threshold = written(folder)
    after = analysed(folder)

    [advised], [kept] = before.verdicts, after.verdicts
    assert advised["verdict"] == kept["verdict"] == "can_replace_at_threshold"
    assert f"at threshold {threshold:.3g}" in kept["sentence"]
    assert advised["sentence"] == kept["sentence"]
    for statistic in ("human_ceiling_difference", "cohen_kappa"):
        held_out = row(before, f"{statistic}_held_out", at="kappa")
        assert bounds(row(after, statistic)) == bounds(held_out)
        assert bounds(row(before, statistic)) != bounds(held_out)
    in_force = row(after, "threshold_in_force", "")
    assert (in_force["estimate"], in_force["n_clusters"]) == (threshold, SAMPLED)
    assert "tuned on 40 pairs to match annotators by kappa" in in_force["note"]
    assert any("was tuned on 40 pairs" in note for note in after.notes)
    # What is said of tuning is the same, and of categories (their p is corrected for all tests).
    same = [each for each in before.rows if "threshold" in each["statistic"]]
    on_categories = [each for each in before.rows if each["subset"] == "all"]
    same += [each for each in on_categories if not each["statistic"].startswith("bias")]
    now = {tuple(each.values())[:6]: repr(each) for each in after.rows}
    assert len(same) > 50
    for each in same:
        assert now[tuple(each.values())[:6]] == repr(each)


def test_gate_select_report_and_the_leads_pages_agree(tuned, tmp_path, run):
    folder = tuned()
    written(folder)
    run.ok("report", folder)
    study_figures(folder, tmp_path / "live")
    rows = [path / "results.csv" for path in (folder / "report", tmp_path / "live")]
    assert rows[0].read_bytes() == rows[1].read_bytes()
    told = json.loads((tmp_path / "live" / "report.json").read_text("utf-8"))
    [verdict] = told["verdicts"]
    assert verdict["verdict"] == "can_replace_at_threshold"
    assert told["study"]["threshold_origins"][RUBRIC] == {GRADER: "tuned"}
    difference = row(analysed(folder), "human_ceiling_difference")
    low = difference["low"]
    gate = ["gate", str(folder), "--rubric", RUBRIC, "--grader", GRADER, "--require"]
    run.ok(*gate, f"human_ceiling_difference|binary.low > {low - 1e-6}")
    assert main([*gate, f"human_ceiling_difference|binary.low > {low + 1e-6}"]) == 1
    said = " ".join(run.ok("select", folder).split())
    assert f"{difference['estimate']:+.2f} [{low:+.2f}, {difference['high']:+.2f}]" in said
    assert verdict["sentence"] in said
    page = (folder / "report" / "report.html").read_text("utf-8")
    assert "(tuned on 40 pairs to match annotators by kappa)" in page
    assert "labels only, not binary labels" not in page


def test_a_number_put_in_by_hand_is_declared_and_worth_less_than_it_looks(tuned):
    folder = tuned()
    assert origin(folder) == "default"
    threshold = written(folder)
    assert origin(folder) == "tuned"
    honest = row(analysed(folder), "cohen_kappa")["estimate"]
    settings = folder / "study.toml"
    text = settings.read_text("utf-8")
    settings.write_text(text.replace(repr(threshold), "0.3"), "utf-8")
    by_hand = analysed(folder)
    assert origin(folder) == "declared"
    assert not any("tuned on" in note for note in by_hand.notes)
    note = row(by_hand, "cohen_kappa_at_threshold", at="0.3")["note"]
    assert note.startswith("the declared threshold")
    # The tuned one put back is the tuned one still.
    settings.write_text(text, "utf-8")
    assert origin(folder) == "tuned"
    whose = ["--rubric", RUBRIC, "--grader", GRADER]
    assert main(["calibrate", str(folder), *whose, "--write", "--threshold", "0.4"]) == 0
    assert origin(folder) == "declared"
    # Where it was tuned, a threshold that counts as declared looks better than it is.
    settings.write_text(text, "utf-8")
    with open_study(folder) as study, study.store.write() as connection:
        connection.execute(sa.delete(threshold_events))
    assert row(analysed(folder), "cohen_kappa")["estimate"] > honest


def test_fresh_pairs_are_judged_at_the_threshold_in_force(tuned):
    """After `extend`: what was tuned on stays held out, the rest is what the threshold is worth."""
    folder = tuned()
    with open_study(folder) as study:
        untuned = data_version(study)
        threshold = written(folder)
        assert data_version(study) != untuned  # the lead's pages count again
    tuned_only = row(analysed(folder), "cohen_kappa")
    with open_study(folder) as study:
        known = study.store.sample()
        version = data_version(study)
        extend_sample(study, PAIRS - SAMPLED)
        fresh = [pair for pair in study.store.sample() if pair not in known]
        _label(study, fresh, np.random.default_rng(9), labels=False)
        assert data_version(study) != version
    found = analysed(folder)
    assert row(found, "threshold_in_force", "")["n_clusters"] == SAMPLED
    assert row(found, "cohen_kappa")["n_clusters"] == PAIRS
    assert row(found, "cohen_kappa")["estimate"] != tuned_only["estimate"]
    [verdict] = found.verdicts
    assert f"at threshold {threshold:.3g}" in verdict["sentence"]
    # Written anew it was tuned on all of them.
    written(folder)
    assert row(analysed(folder), "threshold_in_force", "")["n_clusters"] == PAIRS


def test_whom_the_lead_excluded_is_not_tuned_to_and_what_was_declared_is_compared_with(tuned):
    folder = tuned()
    change_config(folder, {f"thresholds.{RUBRIC}": {GRADER: 0.7}})
    with open_study(folder) as study:
        [both] = calibrate(from_study(study), RUBRIC).results_by_rubric.values()
        exclude(study.store, "ben", "a test")
        [one] = calibrate(from_study(study), RUBRIC).results_by_rubric.values()
    assert "against the humans' majority" in both.rows[0]["note"]
    [kappa] = [e for e in both.rows if (e["statistic"], e["at"]) == ("threshold", "kappa")]
    assert kappa["note"].startswith("the declared one is 0.7")
    assert "against the one annotator, ann" in one.rows[0]["note"]
