"""Another text of a rubric, tried on held-out pairs through the real SDK (synthetic)."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.graders import GradingOptions, forecast
from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.suggestions import compare_texts
from evenhand.rubrics import load_rubric
from evenhand.study import Study
from evenhand.study.lead.disagreements import sort_disagreement
from evenhand.study.store.grades import tried_rater
from harness.replies import Call, Reply, labelled
from harness.studies import with_labels
from tests.cases import refused
from tests.graders.bench import Bench
from tests.graders.grading import grade as grade_in
from tests.peers import metrics

pytestmark = pytest.mark.journey

PAIRS = 40
RUBRIC = "even-handedness"
PRESENT = load_rubric(RUBRIC)
NEW = PRESENT.model_copy(update={"instructions": PRESENT.instructions + "\nCaveats count."})
READ = ("p0003", "p0017")
"""Pairs with a sorted disagreement; the second was taken back."""


grade = partial(grade_in, orders=("ab",))
"""The answers here are in the pair's own orientation."""


def answer_by_text(call: Call) -> Reply:
    """Of the present text's labels every third is wrong, of the new one's every tenth."""
    n = int(call.unit[1:5])
    wrong = n % 10 == 0 if "Caveats count." in call.system else n % 3 == 0
    return labelled("ABC"[(n + wrong) % 3])


@pytest.fixture
def study(bench: Bench) -> Study:
    """Graded under the present text, labelled by two annotators who err now and then."""
    bench.script = answer_by_text
    study = bench.study(pairs=PAIRS, rubrics=(RUBRIC,))
    rng, units = np.random.default_rng(3), study.rubric_units(PRESENT)
    true = ["ABC"[int(unit[1:5]) % 3] for unit in units]
    given = {
        who: [label if rng.random() < 0.9 else "ABC"[rng.integers(3)] for label in true]
        for who in ("ann", "ben")
    }
    with_labels(study, given, RUBRIC, units=units)
    for pair in READ:
        about = {"rubric": RUBRIC, "unit_id": f"{pair}|m", "grader": bench.claude}
        sort_disagreement(study, "lead", **about, kind="rubric_unclear")
    sort_disagreement(study, "lead", **about, kind="")
    grade(study, [bench.claude])
    bench.calls.clear()
    return study


def test_only_held_out_pairs_are_asked_and_what_was_tried_is_no_part_of_the_study(bench, study):
    for change, said in (
        ({"name": "tone"}, "the text is of a rubric 'tone'"),
        ({"options": load_rubric("refusal").options}, "asks for other items or options"),
        ({}, "is the one that the study's"),
    ):
        refused(said, grade, study, [bench.claude], text=PRESENT.model_copy(update=change))
    assert not bench.calls
    before, _ = analyse_study(study, look=False)
    summary = grade(study, [bench.claude], text=NEW)
    assert (summary.scored, summary.unscored, summary.stopped) == (PAIRS - len(READ), 0, ())
    asked = {call.unit[:5] for call in bench.calls}
    assert asked == {unit[:5] for unit in study.rubric_units(PRESENT)} - set(READ)
    assert all("Caveats count." in call.system for call in bench.calls)
    ratings = study.ratings().set_index("rater_id")
    assert set(ratings.loc[tried_rater(bench.claude, NEW.hash), "rubric_hash"]) == {NEW.hash}
    assert set(ratings.loc[bench.claude, "rubric_hash"]) == {PRESENT.hash}
    assert len(ratings.loc[bench.claude]) == PAIRS
    bench.calls.clear()
    assert grade(study, [bench.claude], text=NEW).graders[0].already == PAIRS - len(READ)
    assert grade(study, [bench.claude]).graders[0].already == PAIRS
    assert not bench.calls
    after, _ = analyse_study(study, look=False)
    of_usage = ("grades_", "tokens_", "cost_", "models_")
    rest = [
        results[~results["statistic"].str.startswith(of_usage)].reset_index(drop=True)
        for results in (after.results, before.results)
    ]
    pd.testing.assert_frame_equal(*rest)
    assert (after.notes, study.edited_rubrics()) == (before.notes, [])
    for unit in study.rubric_units(PRESENT):
        sort_disagreement(study, "l", rubric=RUBRIC, unit_id=unit, grader="g", kind="people_wrong")
    with pytest.raises(InputError, match="no pair of the sample is left"):
        forecast(study, [bench.claude], GradingOptions(text=NEW))


def test_the_texts_are_compared_on_the_same_units(bench: Bench, study: Study) -> None:
    """The kappas and their difference are scikit-learn's, averaged over the two annotators."""
    grade(study, [bench.claude], text=NEW, batch=True)
    tried = tried_rater(bench.claude, NEW.hash)
    found = compare_texts(study, NEW, tried)
    wide = study.ratings().pivot_table("label", "unit_id", "rater_id", aggfunc="first").dropna()
    assert len(wide) == found.n_units == PAIRS - len(READ)
    old, new = (
        np.mean([metrics.cohen_kappa_score(wide[who], wide[rater]) for who in ("ann", "ben")])
        for rater in (bench.claude, tried)
    )
    assert found.old["estimate"] == pytest.approx(old)
    assert found.new["estimate"] == pytest.approx(new)
    estimate, low, high = found.gain
    assert estimate == pytest.approx(new - old)
    assert 0 < low < estimate < high
    (sentence,) = found.sentences
    assert sentence.startswith(f"The new text brings {bench.claude} closer to the annotators.")
    assert re.search(r"38 items in 38 held-out pairs", sentence)


def test_the_same_text_twice_is_no_better_and_too_few_units_are_said(bench, study) -> None:
    """A text that says the same: the difference is 0, and nobody can tell."""
    bench.script = lambda call: answer_by_text(
        Call(call.path, call.headers, call.body | {"system": [{"text": ""}]}, call.at, call.nth)
    )
    few = bench.study(pairs=5, rubrics=(RUBRIC,), name="few")
    for each, said in ((study, "Inconclusive: it is not shown"), (few, "cannot be compared")):
        grade(each, [bench.claude])
        grade(each, [bench.claude], text=NEW)
        found = compare_texts(each, NEW, tried_rater(bench.claude, NEW.hash))
        assert said in found.sentences[0]
        if each is study:
            estimate, low, high = found.gain
            assert estimate == 0
            assert low < 0 < high, "as far as so many pairs allow"


def test_the_verb_tries_a_file_and_says_which_text_is_better(bench, study, run):
    found = (study.folder / "rubrics" / f"{RUBRIC}.toml").read_text("utf-8")
    last = PRESENT.instructions.rstrip().splitlines()[-1]
    assert found.count(last) == 1
    file = study.folder / "new-text.toml"
    file.write_text(found.replace(last, f"{last}\nCaveats count."), "utf-8")
    words = ["grade", study.folder, "--grader", bench.claude, "--rubric-file", file]
    words += ["--orders", "ab"]
    assert "--batch does not go with --rubric-file" in run.refused(*words, "--batch")
    assert "Caveats count." in run.ok(*words, "--dry-run")
    said = run.ok(*words)
    assert "closer to the annotators" in said
    assert "Next:" not in said
