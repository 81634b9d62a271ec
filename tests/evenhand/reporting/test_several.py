"""A study whose labels are sets of options: from the file to a verdict on each option, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.load import from_file, load
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study import open_study
from evenhand.study.desk.answers import Answer
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.adjudication import adjudication_queue, decide
from harness.studies import TOPICS_HEAD

KEYS = ("billing", "bug", "praise")
TOPICS = TOPICS_HEAD + "".join(
    f'[[options]]\nkey = "{key}"\nname = "About {key}"\n' for key in KEYS
)


def said(true: np.ndarray, rng: np.random.Generator) -> str:
    return ";".join(np.array(KEYS)[true ^ (rng.random(3) < 0.05)]) or "none"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty messages with a judge's labels, labelled by three people."""
    folder, rng = tmp_path_factory.mktemp("topics"), np.random.default_rng(5)
    true = rng.random((60, 3)) < 0.45
    items = pd.DataFrame({"response": [f"Message {n}" for n in range(60)]})
    names = {key: f"About {key}" for key in KEYS}
    judged = [said(each, rng).split(";") for each in true]
    items["judge"] = [";".join(names.get(key, key) for key in reversed(keys)) for keys in judged]
    items.to_csv(folder / "items.csv", index=False)
    (folder / "topics.toml").write_text(TOPICS)
    words = ["new", str(folder / "study"), "--items", str(folder / "items.csv")]
    assert main([*words, "--rubric", str(folder / "topics.toml"), "--judge", "judge"]) == 0
    with open_study(folder / "study") as opened:
        desk = AnnotationDesk(opened)
        for rater in ("ann", "ben", "cat"):
            for turn in range(60):
                sheet = desk.next_sheet(rater)
                assert sheet is not None
                (task,) = sheet.tasks
                at = int(task.values["response"].split()[1])
                label = said(true[at], rng)
                sent = Answer(submit_id=f"{rater}-{turn}", task_id=task.task_id, option_key=label)
                assert [each.status for each in desk.submit_all(rater, [sent])] == ["stored"]
    return folder / "study"


@pytest.mark.slow
def test_every_option_has_a_verdict_and_the_whole_has_none(study: Path) -> None:
    assert main(["report", str(study)]) == 0
    results = pd.read_csv(study / "report" / "results.csv")
    parts = [f"topics/{key}" for key in KEYS]
    assert set(results["rubric"]) == {"topics", *parts}
    deciding = results[results["statistic"] == "non_inferiority"]
    assert set(deciding["rubric"]) == set(parts)
    whole = results[results["rubric"] == "topics"]
    assert "krippendorff_alpha_masi" in set(whole["statistic"])
    report = (study / "report" / "report.md").read_text("utf-8")
    assert "Topics: About bug" in report
    assert "The whole set has agreement by MASI and Jaccard distance, and no verdict." in report
    page = (study / "report" / "disagreements.html").read_text("utf-8")
    assert "Message" in page


@pytest.mark.slow
def test_what_is_exported_gives_the_same(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "ratings.csv"
    assert main(["export", str(study), "--out", str(out)]) == 0
    table = pd.read_csv(out)
    assert table["label"].str.contains(";").any()  # sets, as they were given
    assert "several = true" in (tmp_path / "ratings.scales.toml").read_text()
    again, own = load(out), load(study)
    assert list(again.scales) == list(own.scales) == [f"topics/{key}" for key in KEYS]
    assert again.titles["topics/bug"] == "Topics: About bug"
    frames = []
    for dataset in (again, own):
        found = dataset.changed(resamples=50).analyse()
        frames.append(found.results.drop(columns="note"))
    pd.testing.assert_frame_equal(*frames)


@pytest.mark.slow
def test_the_rubric_reads_a_file_that_names_none(study: Path, tmp_path: Path) -> None:
    rubric = study.parent / "topics.toml"
    file = tmp_path / "labels.csv"
    file.write_text('unit_id,ann,ben\na,"bug;billing",bug\nb,none,praise\n')
    options = ScaleOptions(rubric=str(rubric), kinds={"ann": "human", "ben": "human"})
    dataset = from_file(file, options)
    assert list(dataset.scales) == [f"topics/{key}" for key in KEYS]
    billing = dataset.ratings[dataset.ratings["rubric"] == "topics/billing"]
    assert sorted(billing["label"]) == ["no", "no", "no", "yes"]
    file.write_text("unit_id,ann,ben\na,bug,spam\n")
    with pytest.raises(InputError, match=r"row 2, column 'ben': .* names 'spam', none of billing"):
        from_file(file, options)


@pytest.mark.slow
def test_decisions_gates_and_what_does_not_apply(
    study: Path, capsys: pytest.CaptureFixture
) -> None:
    with open_study(study) as opened:
        queue = adjudication_queue(opened, "any")
        decide(opened, "lead", queue[0].unit_id, "topics", "praise; billing", "both are named")
        with pytest.raises(InputError, match="not keys with ; between them, or none"):
            decide(opened, "lead", queue[1].unit_id, "topics", "spam", "no")
        labels = opened.ratings().query("rater_kind == 'adjudicator'")["label"]
    assert labels.tolist() == ["billing;praise"]
    assert main(["gate", str(study), "--grader", "judge"]) == 2
    assert "--rubric: topics/billing, topics/bug, topics/praise" in capsys.readouterr().err
    assert main(["gate", str(study), "--grader", "judge", "--rubric", "topics/bug"]) in (0, 3)
    assert main(["calibrate", str(study)]) == 2
    assert main(["quality", str(study)]) == 0
    assert main(["rubric", "suggest", str(study)]) == 0
    assert main(["audit", "injection", str(study), "--grader", "baseline:lexical"]) == 2
    assert "attacks ask for one" in capsys.readouterr().err
