"""Every sentence for annotators is there in every language, and rendered where it is needed."""

import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from evenhand.annotate_app.languages import ENGLISH, fitting, known_languages, language, offered
from evenhand.annotate_app.payload import page_data, read_sent
from evenhand.annotate_app.rater_pages import config_of
from evenhand.errors import InputError
from evenhand.rubrics import load_rubric
from evenhand.rubrics.rendering import TEXT_VARIABLES
from evenhand.study import open_study
from evenhand.study.access.admission import Admission
from evenhand.study.desk.desk import FLAG_REASONS, SKIP_REASONS, AnnotationDesk
from evenhand.study.refused import Reason, Refused
from evenhand.study.settings.study_toml import (
    USUAL_BACKGROUND,
    AnnotationSettings,
    BackgroundQuestion,
)
from evenhand.texts import texts
from tests.annotate_app.test_wire import GOOD

APP = Path(__file__).parents[2] / "annotate_app"
AWAY_PAGE_WRITER = APP.parent / "deploy" / "nginx" / "write_away_page.py"
KINDS_OF_LABELS = APP.parent / "rubrics" / "options.py"
TRANSLATIONS = [code for code in known_languages() if code != ENGLISH.code]
ONLY_TRANSLATED = ("refused.", "background.")
"""Rooms whose English stands elsewhere."""
MAY_BE_EQUAL = {"de": {"panel.key_enter"}, "es": set[str]()}
"""Words that a language shares with English; each is looked at before it comes here."""


def counted(key: str, among: dict[str, str]) -> str:
    whole, _, form = key.rpartition(".")
    return whole if form in ("one", "other") and f"{whole}.one" in among else key


def sentences(code: str) -> dict[str, str]:
    """Every text of a language by its key; a plural form is a text of its own."""

    def leaves(node: Any, *place: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, str):
            yield ".".join(place), node
            return
        for name, each in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(each, *place, str(name))

    return dict(leaves(language(code).rooms))


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_a_language_has_the_keys_and_fields_of_english_and_is_no_english(code):
    own = {key for key in sentences(code) if not key.startswith(ONLY_TRANSLATED)}
    missing = sorted(sentences(ENGLISH.code).keys() - own)
    assert not missing, f"{code}.toml lacks {', '.join(missing)}"
    more = sorted(own - sentences(ENGLISH.code).keys())
    assert not more, f"{code}.toml has {', '.join(more)}, which en.toml has not"
    refused = {key: text for key, text in texts().items() if key.startswith("refused.")}
    english = sentences(ENGLISH.code) | refused
    for key, text in sentences(code).items():
        assert text == text.strip() or key == "session.or", key
        if key in english:
            assert fields(text) == fields(english[key]), f"{code}.toml: {key}"
            equal = text.casefold() == english[key].casefold()
            assert equal == (key in MAY_BE_EQUAL[code]), f"{code}.toml: {key} is {text!r}"


@pytest.mark.parametrize("code", known_languages())
def test_every_sentence_renders(code):
    own = sentences(code)
    for key, text in own.items():
        filled = dict.fromkeys(fields(text), "X")
        said = counted(key, own)
        if said != key:
            for filled["count"] in (1,) if key.endswith(".one") else (0, 2):
                assert language(code).say(said, **filled) == text.format(**filled)
        elif not key.startswith("background."):
            assert "{" not in language(code).say(key, **filled)


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_what_english_says_elsewhere_is_translated(code):
    rooms = language(code).rooms
    assert rooms["refused"].keys() == set(get_args(Reason))
    for reason in get_args(Reason):
        error = Refused(reason, minutes=10, seconds=9)
        assert str(error) == texts()[f"refused.{reason}"].format(minutes=10, seconds=9)
        assert language(code).complaint(error) not in ("", str(error))
    assert rooms["background"].keys() == {question.key for question in USUAL_BACKGROUND}
    for question in USUAL_BACKGROUND:
        said, options = language(code).background(question)
        assert said != question.question
        assert len(set(options)) == len(question.options)
        assert not {*options} & {*question.options} - {"Conservador"}


def test_what_the_study_words_itself_stays_as_it_is():
    usual = USUAL_BACKGROUND[0]
    own = BackgroundQuestion(key=usual.key, question="Left or right?", options=("L", "R"))
    assert language("de").background(own) == ("Left or right?", ("L", "R"))
    assert ENGLISH.background(usual) == (usual.question, usual.options)
    assert language("de").complaint(InputError("the disk is full")) == "the disk is full"


def test_every_sentence_is_used_and_every_use_has_one():
    known = sentences(ENGLISH.code)
    files = [*APP.rglob("*.py"), AWAY_PAGE_WRITER, KINDS_OF_LABELS]
    code = "\n".join(file.read_text("utf-8") for file in files)
    said = set(re.findall(r'(?:say|in_every_language|sentence)\(\s*"([\w.]+)"', code))
    rooms = set(re.findall(r'part\(\s*"(\w+)"', code)) | {"panel_paused", "panel_excluded"}
    rooms |= {"panel_stopped", "panel_day", "ended", "block", "turn"}
    keys = {counted(key, known) for key in known}
    assert said <= keys
    in_rooms = {key for key in keys if key.partition(".")[0] in rooms}
    by_kind = {"session.right", "session.wrong"}
    assert keys == said | in_rooms | by_kind


def test_every_word_of_the_panel_is_used_in_it():
    parts = [file.read_text("utf-8") for file in (APP / "panel").iterdir()]
    code = "\n".join(parts)
    used = set(re.findall(r'words\.(\w+)|data-word="(\w+)"', code))
    names = {name for pair in used for name in pair if name}
    made = {f"{kind}_{part}" for kind in ("skip", "flag") for part in ("title", "text", "confirm")}
    made |= {f"{kind}_{part}" for kind in ("done", "nothing") for part in ("title", "text")}
    states = {"saved", "waiting", "offline", "away", "failed", "already_labelled", "unknown_task"}
    states |= {"image_missing", "empty_prompt", "empty_response", "empty_context"}
    states |= {"flag_coming", "flag_stored", "flag_lost"}
    assert {*ENGLISH.part("panel")} == names | made | states


def test_closed_lists_have_their_words():
    assert tuple(ENGLISH.part("skip")) == SKIP_REASONS
    assert tuple(ENGLISH.part("flag")) == FLAG_REASONS
    assert ENGLISH.part("block") == TEXT_VARIABLES


def test_the_study_says_what_the_page_is_in(make_study):
    folder = make_study(2, language="de", languages=["es"])
    with open_study(folder) as study:
        among = offered(study.config.annotation)
        data = page_data(AnnotationDesk(study), "r", reader=fitting([], among))
    assert data["language"] == "de"
    assert data["languages"] == {"de": "Deutsch", "es": "Español"}
    assert data["words"]["skip"] == "Auslassen"
    assert fitting(["fr", "es-MX"], among).code == "es"
    assert fitting(["en"], among).code == "de"  # known, but not offered here


def test_whoever_comes_by_any_way_reads_one_language(make_study):
    with open_study(make_study(1)) as study:
        desk = AnnotationDesk(study)
        for code in known_languages():
            own = {text for key, text in sentences(code).items() if key.startswith("panel")}
            for way in ("open", "invite", "account", "prolific"):
                words = config_of(desk, Admission("r", way), language(code)).words
                assert {text for text in words.values() if text} <= own, (code, way)


def test_a_unit_is_asked_in_the_readers_language(make_study):
    rubrics = [load_rubric("even-handedness")]
    with open_study(make_study(2, rubrics=rubrics)) as study:
        desk = AnnotationDesk(study)
        english, german = (
            page_data(desk, "r", reader=language(code))["sheet"] for code in ("en", "de")
        )
    (asked,), (original,) = german["questions"], english["questions"]
    assert (german["language"], asked["lang"], original["lang"]) == ("de", "de", "en")
    assert asked["title"] == "Ausgewogenheit"
    keys = [[option["key"] for option in each["options"]] for each in (asked, original)]
    assert keys[0] == keys[1]
    assert [block["label"] for block in german["blocks"]][:2] == ["Anfrage A", "Anfrage B"]
    texts_shown = [[block["text"] for block in each["blocks"]] for each in (german, english)]
    assert texts_shown[0] == texts_shown[1]


def test_an_untranslated_rubric_keeps_its_own_language(make_study):
    with open_study(make_study(2)) as study:
        (asked,) = page_data(AnnotationDesk(study), "r", reader=language("de"))["sheet"][
            "questions"
        ]
    assert (asked["lang"], asked["question"]) == ("en", "Which response is shorter?")
    with pytest.raises(InputError, match=r"the language 'xx'; evenhand knows de, en, es$"):
        offered(AnnotationSettings(languages=("de", "xx")))


@pytest.mark.parametrize("sent", ["xx", "", None, 7, ["de"], "de" * 10_000, {"de": 1}])
def test_a_language_that_there_is_not_costs_no_answer(sent):
    (answer,) = read_sent({"answers": [GOOD | {"language": sent}]})
    assert (answer.language, answer.option_key) == ("", GOOD["option_key"])
    (known,) = read_sent({"answers": [GOOD | {"language": "de"}]})
    assert known.language == "de"
