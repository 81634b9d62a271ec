"""What the browser has already is named, not sent; what it says that it has may be anything."""

from __future__ import annotations

import copy

import pytest

from evenhand.annotate_app.payload import lightened, read_known

TEXTS = {"title": "Evenness", "question": "Which?", "instructions": "Read.", "options": [1, 2]}
DATA = {
    "words": {"submit": "Submit"},
    "asks": {"skip": {}},
    "controls": {"200b": "zero-width space"},
    "sheet": {
        "blocks": ["a text"],
        "questions": [{"task": "t1", "given": None, **TEXTS}, {"task": "t2", "given": 1, **TEXTS}],
    },
    "ahead": {"blocks": ["another"], "questions": [{"task": "t3", "given": None, **TEXTS}]},
}


def test_each_part_is_sent_once_under_its_name_and_nothing_is_lost():
    before = copy.deepcopy(DATA)
    light = lightened(DATA, frozenset())
    assert before == DATA  # of which others may hold parts
    kept = light["kept"]
    assert len(kept) == 6  # all questions are of one rubric
    assert all(kept[light[key]] == DATA[key] for key in ("words", "asks", "controls"))
    whole = [
        {"task": question["task"], "given": question["given"], **kept[question["rubric"]]}
        for question in light["sheet"]["questions"]
    ]
    assert whole == DATA["sheet"]["questions"]
    assert [kept[name] for name in light["sheet"]["blocks"]] == ["a text"]
    assert [kept[name] for name in light["ahead"]["blocks"]] == ["another"]


def test_the_texts_of_a_unit_that_was_sent_ahead_are_not_sent_again():
    first = lightened(DATA, frozenset())
    then = lightened({**DATA, "sheet": DATA["ahead"], "ahead": None}, frozenset(first["kept"]))
    assert then["kept"] == {}
    assert then["sheet"] == first["ahead"]


def test_what_the_browser_has_is_named_and_what_has_changed_is_sent():
    first = lightened(DATA, frozenset())
    again = lightened(DATA, frozenset(first["kept"]))
    assert again == first | {"kept": {}}
    changed = lightened(DATA | {"words": {"submit": "Senden"}}, frozenset(first["kept"]))
    assert list(changed["kept"].values()) == [{"submit": "Senden"}]
    assert lightened(DATA | {"sheet": None}, frozenset(first["kept"]))["sheet"] is None


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        (None, set()),
        ({"answers": []}, set()),
        ({"has": "a" * 16}, set()),
        ({"has": ["a" * 16, 7, None, "short", "b" * 17, ["c" * 16]]}, {"a" * 16}),
        ({"has": [f"{n:016}" for n in range(1000)]}, {f"{n:016}" for n in range(64)}),
    ],
)
def test_what_a_browser_says_that_it_has_is_bounded(sent, known):
    assert read_known(sent) == known
