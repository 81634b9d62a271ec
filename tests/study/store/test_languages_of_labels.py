"""The language in which people were asked stays with their labels."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.cli.main import main
from evenhand.reporting.exporting import exported_ratings
from evenhand.study import Study, open_study
from evenhand.study.desk.answers import Answer
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.session.background import raters_to_split_by
from evenhand.study.settings.session import BackgroundQuestion
from evenhand.study.store.schema import labels
from evenhand.study.tables.formats import read_table
from evenhand.study.tables.ratings import RATINGS_COLUMNS


def label(study: Study, rater: str, language: str, submit: str = "") -> None:
    desk = AnnotationDesk(study)
    task = desk.next_task(rater)
    assert task is not None
    answer = Answer(
        submit_id=submit or rater, task_id=task.task_id, option_key="1", language=language
    )
    assert desk.submit_all(rater, [answer])[0].status == "stored"


@pytest.fixture
def study(make_study) -> Study:
    return make_study(rubrics=["refusal"])


def test_a_label_keeps_the_language_and_the_text_shown(study: Study) -> None:
    rubric = study.rubrics["refusal"]
    for rater, language in (("r-en", "en"), ("r-de", "de"), ("r-fr", "fr"), ("r-old", "")):
        label(study, rater, language)
    with study.store.read() as connection:
        rows = connection.execute(sa.select(labels)).all()
    found = {row.rater_id: (row.page_language, row.shown_hash, row.rubric_hash) for row in rows}
    assert found == {
        "r-en": ("en", rubric.hash, rubric.hash),
        "r-de": ("de", rubric.in_language("de").hash, rubric.hash),
        "r-fr": ("fr", rubric.hash, rubric.hash),  # not translated: the original was shown
        "r-old": ("", "", rubric.hash),
    }


@pytest.mark.slow
def test_the_export_has_the_language_where_it_is_not_english_alone(
    study: Study, tmp_path: Path
) -> None:
    label(study, "r-en", "en")
    assert list(exported_ratings(study)) == list(RATINGS_COLUMNS)
    label(study, "r-de", "de")
    folder, out = study.folder, tmp_path / "ratings.csv"
    german = study.rubrics["refusal"].in_language("de").hash
    study.close()
    assert main(["export", str(folder), "--out", str(out)]) == 0
    table = read_table(out)
    assert list(table) == [*RATINGS_COLUMNS, "page_language", "shown_hash"]
    rows = table.set_index("rater_id")
    assert rows.loc["r-de", ["page_language", "shown_hash"]].tolist() == ["de", german]
    assert rows.loc["r-en", "page_language"] == "en"
    with open_study(folder) as again:
        assert len(table) == len(again.ratings())


def test_raters_can_be_split_by_their_language(study: Study) -> None:
    assert "page_language" not in raters_to_split_by(study)
    label(study, "r-de", "de")
    label(study, "r-both", "de", "first")
    label(study, "r-both", "es", "second")
    table = raters_to_split_by(study)
    languages = dict(zip(table["rater_id"], table["page_language"], strict=True))
    assert languages == {"r-both": "", "r-de": "de"}  # whoever changed belongs to neither


def test_no_background_question_can_take_the_languages_name() -> None:
    with pytest.raises(ValueError, match="cannot have the key 'page_language'"):
        BackgroundQuestion(key="page_language", question="Which?", options=("a", "b"))
