"""What the study's lead wrote, in the reader's language where there is a file of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.session.sessions import Sessions

SESSION = """
[session]
instructions = "Read both."
content_warning = "Harsh."

[consent]
text = "We keep your answers."

[training]
walk_through = true
"""


@pytest.fixture
def folder(make_study) -> Path:
    made: Study = make_study(rubrics=["refusal"])
    made.close()
    settings = made.folder / "study.toml"
    text = settings.read_text("utf-8").replace("languages = []", 'languages = ["de", "es"]')
    settings.write_text(text + SESSION, "utf-8")
    (made.folder / "consent.de.md").write_text("Wir bewahren Ihre Antworten auf.\n", "utf-8")
    return made.folder


def test_a_file_beside_study_toml_is_shown_to_its_readers(folder: Path) -> None:
    with open_study(folder) as study:
        texts = Sessions(study).texts
        german, spanish = (texts.shown("consent", code) for code in ("de", "es"))
        unwritten = texts.shown("instructions", "de")
    assert (german.text, german.language) == ("Wir bewahren Ihre Antworten auf.", "de")
    assert (spanish.text, spanish.language) == ("We keep your answers.", "en")
    assert (unwritten.text, unwritten.language) == ("Read both.", "en")


def test_whoever_agreed_in_one_language_is_not_asked_in_another(folder: Path) -> None:
    with open_study(folder) as study:
        sessions = Sessions(study)
        for rater, language in (("ada", "de"), ("bo", "en")):
            sessions.read_welcome(rater, language)
            sessions.decide_consent(rater, agreed=True, language=language)
            step = sessions.next_step(rater)
            assert step.name == "rubric"
            sessions.read_rubric(rater, step.rubric, language)
            assert sessions.next_step(rater).name == "labelling"
    (folder / "consent.de.md").write_text("Wir geben Ihre Antworten weiter.", "utf-8")
    with open_study(folder) as study:
        again = Sessions(study)
        # Only whoever agreed to the text that is gone is asked again.
        assert again.next_step("ada").name == "consent"
        assert again.next_step("bo").name == "labelling"


def test_a_file_that_is_no_text_is_one_sentence(folder: Path) -> None:
    (folder / "consent.es.md").write_bytes(b"\xff\xfe\xff")
    with (
        open_study(folder) as study,
        pytest.raises(InputError, match=r"consent\.es\.md is not UTF-8"),
    ):
        Sessions(study)
