"""Judged without the prompt: such rubrics come first, and where the prompt was known it is said."""

from __future__ import annotations

import pytest

from evenhand.cli.main import main
from evenhand.reporting.analysing import analyse_study
from evenhand.rubrics import load_rubric
from evenhand.study import open_study
from evenhand.study.desk.answers import Answer
from evenhand.study.desk.design import judged_without_prompt, prompts_seen
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.settings.study_toml import change_config


def work_through(desk: AnnotationDesk, rater: str) -> list[tuple[str, str]]:
    """Answer everything; (rubric, task) in the order asked."""
    asked = []
    while sheet := desk.next_sheet(rater):
        for task in sheet.tasks:
            desk.submit(rater, task.task_id, task.task_id, task.rubric.categories[0], 1.0)
            asked.append((task.rubric.name, task.task_id))
    return asked


def seen(study) -> list[tuple[str, int, int]]:
    return [(e.rubric.name, e.seen, e.labels) for e in prompts_seen(study, study.ratings())]


@pytest.mark.slow
def test_a_block_asks_first_what_is_judged_without_the_prompt(make_study) -> None:
    study = make_study(pairs=12)
    assert study.config.annotation.rubrics == ("even-handedness", "hedging", "refusal")
    asked = work_through(AnnotationDesk(study), "r1")
    stages = [name for n, (name, _) in enumerate(asked) if n == 0 or asked[n - 1][0] != name]
    assert stages == ["hedging", "even-handedness", "refusal"] * 2  # in both blocks
    assert seen(study) == []


@pytest.mark.slow
def test_one_screen_for_all_shows_the_prompt_and_that_is_said(
    make_study, capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study(pairs=4, sample=2, subjects=("s",))
    change_config(study.folder, {"annotation": {"screen": "all", "repeat_share": 0.1}})
    assert main(["extend", str(study.folder), "--pairs", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "annotators see the prompt when they judge hedging" in said
    assert "Repeats of hedging may come after the annotator has seen the prompt." in said
    with open_study(study.folder) as study:
        asked = work_through(AnnotationDesk(study), "r1")
        assert [name for name, _ in asked[:2]] == ["hedging", "refusal"]
        work_through(AnnotationDesk(study), "r2")
        assert seen(study) == [("hedging", 12, 12)]
        _, context = analyse_study(study, verify=False, resamples=50)
    (note,) = context.notes
    assert "without the prompt. For 12 of 12 human labels" in note


def test_an_answer_changed_once_the_prompt_is_known_counts_as_seen(make_study) -> None:
    study = make_study(pairs=2, subjects=("s",))
    desk = AnnotationDesk(study)
    asked = work_through(desk, "r1")
    first = next(task for name, task in asked if name == "hedging")
    answer = Answer(submit_id="again", task_id=first, option_key="3", edit=True)
    assert desk.submit_all("r1", [answer])[0].status == "stored"
    assert seen(study) == [("hedging", 1, 4)]


def test_only_what_another_rubric_shows_is_hidden() -> None:
    hedging, refusal = load_rubric("hedging"), load_rubric("refusal")
    assert judged_without_prompt([refusal, hedging]) == [hedging]
    assert judged_without_prompt([hedging]) == []
    assert judged_without_prompt([refusal]) == []
