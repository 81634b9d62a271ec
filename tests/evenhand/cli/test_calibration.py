"""`calibrate`: what it says, and that study.toml changes only when it is told to."""

import numpy as np
import pytest

from evenhand.study import Study, open_study
from harness.studies import with_labels
from tests.commands import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def study(make_study) -> Study:
    """A grader whose probabilities say yes from .1 up, two annotators and a grader with hard
    labels.
    """
    made = make_study(pairs=40)
    rubric = made.rubrics["refusal"]
    rng, count = np.random.default_rng(4), len(made.rubric_units(rubric))
    truth = rng.random(count) < 0.4
    stated = np.where(truth, rng.uniform(0.1, 1.0, count), rng.uniform(0.0, 0.1, count))
    said = {who: truth != (rng.random(count) < 0.05) for who in ("ann", "ben", "hard")}
    keys = (rubric.affirmative[0], rubric.categories[0])
    given = {who: np.where(yes, *keys).tolist() for who, yes in said.items()}
    with_labels(made, given, graders=["hard"])
    given = {"prob": np.where(stated > 0.5, *keys).tolist()}
    about = {"p_positive": stated.tolist(), "prob_method": "verbalised"}
    with_labels(made, given, graders=["prob"], **about)
    with (made.folder / "study.toml").open("a") as file:
        file.write("\n# a remark of its owner\n")
    return made


def test_it_says_what_to_use_and_only_what_is_recommended_or_named_is_written(study, run) -> None:
    settings, calibrate = study.folder / "study.toml", ("calibrate", study.folder)

    def thresholds() -> dict[str, dict[str, float]]:
        with open_study(study.folder) as again:
            return {name: dict(each) for name, each in again.config.thresholds.items()}

    before = settings.read_bytes()
    gain = "instead of 0.5; on held-out items it gains +0."
    said = run.ok(*calibrate)
    assert "prob, to match annotators by kappa: use 0.1" in said
    assert gain in said
    assert settings.read_bytes() == before
    said = run.ok(*calibrate, "--reference", "ann", "--objective", "f1")
    assert "prob, to match ann by F1: use 0.1" in said
    said = run.ok(*calibrate, "--reference", "hard", "--write")
    assert "prob, to match hard by kappa: use 0.1" in said
    written = thresholds()
    assert 0.1 <= written["refusal"]["prob"] < 0.2
    assert "# a remark of its owner" in settings.read_text("utf-8")
    # It is in force now, and no default: the advice stays the same.
    said = run.ok(*calibrate, "--reference", "hard", "--write")
    assert "prob, to match hard by kappa: use 0.1" in said
    assert gain in said
    assert "threshold: {:.3g}, tuned on 40 pairs".format(written["refusal"]["prob"]) in said
    assert thresholds() == written
    whose = ["--rubric", "refusal", "--grader", "prob"]
    run.ok(*calibrate, *whose, "--write", "--threshold", "0.3")
    assert thresholds() == {"refusal": {"prob": 0.3}}


def test_a_rubric_that_nobody_labelled_stops_no_other(study: Study, run: Run) -> None:
    """The grader has probabilities on even-handedness too, which comes first and has no labels."""
    with_labels(
        study, {"prob": "A" * 80}, "even-handedness",
        graders=["prob"], p_positive=0.2, prob_method="verbalised",
    )  # fmt: skip
    said = run.ok("calibrate", study.folder)
    assert "prob, to match annotators by kappa: use 0.1" in said
    assert "Left out, because annotators labelled nothing: even-handedness." in said
    alone = run.refused("calibrate", study.folder, "--rubric", "even-handedness")
    assert "no annotator has labelled 'even-handedness'" in alone
