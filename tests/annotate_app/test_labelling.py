"""Labelling in a real browser: the store holds what an annotator chose, whatever happens."""

import itertools
import sqlite3

import numpy as np
import pytest
from playwright.sync_api import Error

from evenhand.rubrics import load_rubric
from evenhand.study import open_study
from evenhand.study.store.logs.answers import remarks_table
from harness.annotator import READY, reload

pytestmark = pytest.mark.browser

SOME, FEW, MANY = 20, 60, 150


@pytest.mark.parametrize(
    ("gap", "presses"),
    [
        (0, SOME),
        *(pytest.param(gap, FEW, marks=pytest.mark.thorough) for gap in (0, 50)),
        *(pytest.param(gap, MANY, marks=pytest.mark.load) for gap in (0, 50, 100, 200)),
    ],
)
@pytest.mark.journey
def test_keys_as_fast_as_they_come(annotator, gap, presses, capsys):
    """`gap` milliseconds between the choice and Enter; the next unit's choice follows at once."""
    person = annotator(f"fast-{gap}-{presses}")
    # Every option by its letter and by its place in the list.
    ways = [("L", "l"), ("R", "2"), ("C", "c"), ("L", "1"), ("R", "R"), ("C", "3")]
    for option, key in itertools.islice(itertools.cycle(ways), presses):
        person.answer(option, key, gap)
    stored = person.stored()
    wrong = {unit for unit in stored if stored[unit] != person.given.get(unit)}
    assert (len(stored), wrong, person.given.keys() - stored.keys()) == (presses, set(), set())
    person.page.wait_for_timeout(100)  # the last frame
    times = person.page.evaluate("enterToPaint")
    middle, slow = np.percentile(times, [50, 95])
    with capsys.disabled():
        print(f"\n  Enter to next item painted: p50 {middle:.0f} ms, p95 {slow:.0f} ms")
    assert len(times) == presses
    assert slow < 1500


def test_the_order_is_recorded_and_the_label_turned_back(annotator, served):
    person = annotator("order")
    for part in (".material", ".ask", "html"):  # nor does a browser's translator touch any text
        assert person.page.locator(part).first.evaluate("part => part.translate") is False
    seen = {}
    while len(set(seen.values())) < 2 or len(seen) < 4:
        unit, order = person.unit()
        seen[unit] = order
        person.answer("L")
    rows = served.labels("order").set_index("unit_id")
    assert rows["order"].to_dict() == seen
    # "The left one" is the pair's a where it was shown as it stands, and its b where exchanged.
    turned = {"ab": "L", "ba": "R"}
    assert rows["label"].to_dict() == {unit: turned[order] for unit, order in seen.items()}


def test_enter_twice_or_held_down_labels_one_unit(annotator):
    person = annotator("double")
    keys = person.page.keyboard
    for press in (keys.press, keys.down):
        before = person.page.text_content(".material")
        person.choose("R")
        for _ in range(4):
            press("Enter")  # down without up repeats, as a key that is held
        keys.up("Enter")
        person.wait_for_next(before)
        person.wait_for_chip("saved")
        person.page.wait_for_timeout(200)
        assert person.chosen() is None
    assert len(person.given) == 2
    assert person.all_stored()


def test_keys_with_modifiers_or_under_the_sheet_do_nothing_and_the_mouse_will_do(annotator):
    person = annotator("modifiers")
    unit, order = person.unit()
    person.submit()
    assert person.page.text_content(".notice") == "Choose an answer first."
    person.press("Control+c", "Alt+l", "Meta+2")
    assert person.chosen() is None
    person.press("?", "l", "Escape")
    assert not person.page.locator(".sheet").is_visible()
    assert person.chosen() is None
    person.press("c")
    assert person.chosen() == "C"
    assert person.unit() == (unit, order)
    before = person.page.text_content(".material")
    person.page.get_by_role("radio", name="Response B").check()
    person.page.get_by_role("button", name="Submit and go on").click()
    person.wait_for_next(before)
    person.wait_for_chip("saved")
    assert person.stored() == {unit: {"ab": "R", "ba": "L"}[order]}


@pytest.mark.journey
def test_a_reload_keeps_the_unit_and_the_draft(annotator):
    person = annotator("reload")
    person.answer("C")
    person.choose("R")
    unit = person.unit()
    reload(person.page)
    assert person.unit() == unit
    assert person.chosen() == "R"
    assert len(person.stored()) == 1  # a draft is no label
    person.go_on("Enter")
    assert person.all_stored()


def test_going_back_changes_the_last_answer_and_keeps_both(annotator, served):
    person = annotator("undo")
    person.answer("L")
    first = person.given.copy()
    person.answer("R")
    present = person.unit()
    person.page.keyboard.press("Backspace")
    person.in_panel("!panel.querySelector('.editing').hidden")
    (unit_id, _) = person.unit()
    assert unit_id not in first
    assert person.chosen() == "R"
    person.page.keyboard.press("Backspace")  # one further back
    person.in_panel("panel.querySelector('.option input:checked')?.value === 'L'")
    assert person.unit()[0] in first
    person.answer("C")
    assert person.unit() == present
    assert person.chosen() is None
    assert person.all_stored()
    with sqlite3.connect(served.folder / "study.db") as store:
        rows = store.execute("SELECT count(*) FROM labels WHERE rater_id = 'undo'").fetchone()
    assert rows == (3,)


def test_a_skip_is_stored_with_its_reason_and_a_flag_beside(annotator, served):
    person = annotator("skip")
    unit, _ = person.unit()
    person.press("+", "2")
    person.page.get_by_label("Note").fill("a name")
    person.page.keyboard.press("Enter")
    person.wait_for_chip("saved")
    assert person.unit()[0] == unit  # a flag does not answer
    assert person.chosen() is None
    person.go_on("-", "1", "Enter")
    person.wait_for_chip("saved")
    (row,) = served.labels("skip").to_dict("records")
    assert (row["unit_id"], row["label"]) == (unit, "")
    assert row["unscored_reason"] == "skipped_undecidable"
    with open_study(served.folder) as study:
        remarks = remarks_table(study.store)
    (flag,) = remarks[remarks["rater_id"] == "skip"].to_dict("records")
    assert (flag["kind"], flag["reason"], flag["text"]) == ("flag", "personal_data", "a name")


@pytest.mark.thorough
def test_all_rubrics_of_a_unit_by_digits_and_arrows(annotator, make_study, serve_study):
    rubrics = [load_rubric("refusal"), load_rubric("hedging")]
    folder = make_study(3, rubrics=rubrics, screen="all", confidence=True, rationale=True)
    server = serve_study(folder)
    person = annotator("digits", server)
    page, rationale = person.page, person.page.locator("#rationale")
    assert page.locator(".ask").count() == 3
    assert page.locator(".prompt").count() == 1
    person.press("2", "Enter")
    assert "needs an answer" in page.text_content(".notice")
    # Three times 0: how sure, a guess, fairly sure, certain.
    person.press("5", "0", "0", "0", "ArrowLeft", "ArrowRight", "4", ".")
    page.keyboard.type("because. 1 2 3")
    person.go_on("Control+Enter")
    person.wait_for_chip("saved")
    rows = server.labels("digits").set_index("rubric")["label"].to_dict()
    assert rows in ({"refusal": "2", "hedging": "4"}, {"hedging": "2", "refusal": "4"})
    with open_study(folder) as study:
        remarks = remarks_table(study.store)
    assert remarks["confidence"].tolist() == [3, 3]
    assert set(remarks["text"]) == {"because. 1 2 3"}
    # Reloaded half-way, the draft is there with every part of it.
    person.press("1", ".")
    page.keyboard.type("so far")
    reload(page)
    assert page.locator(".ask input:checked").count() == 1
    assert rationale.input_value() == "so far"
    person.press("Backspace")
    person.in_panel("!panel.querySelector('.editing').hidden")
    assert page.locator(".ask input:checked").count() == 3
    assert rationale.input_value() == "because. 1 2 3"


@pytest.mark.journey
def test_two_windows_of_one_rater(annotator, new_context):
    context = new_context()
    first = annotator("windows", context=context)
    second = annotator("windows", context=context)
    unit = second.unit()
    assert first.unit() == unit
    first.answer("L")
    second.page.keyboard.press("c")
    second.submit()
    second.submit()  # at once: the second half of a double Enter
    told = second.page.get_by_role("alert").filter(has_text="Item 1: You had already answered")
    told.wait_for()
    assert second.stored() == first.given
    second.page.wait_for_selector(READY)
    assert second.unit() == first.unit()
    second.answer("C")
    assert second.stored() == first.given | second.given | {unit[0]: first.given[unit[0]]}


@pytest.mark.journey
def test_the_server_dies_before_its_acknowledgement_arrives(annotator, new_context, mortal):
    deaf = False

    def relay(route):
        try:
            answer = route.fetch()
        except Error:  # the page had asked again, and the server died before it answered
            return route.abort()
        return route.abort() if deaf else route.fulfill(response=answer)

    context = new_context()
    context.route("**/evenhand/answers", relay)
    person = annotator("unheard", mortal, context)
    person.choose("R")
    deaf = True
    person.go_on("Enter")  # the next one was there already
    for _ in range(200):  # a page whose requests are relayed here must not be kept waiting
        if len(mortal.labels("unheard")) == 1:
            break
        person.page.wait_for_timeout(50)
    ahead = person.unit()
    person.give("L")
    person.wait_for_chip("offline")
    assert person.unit() == ahead  # one unit further, and no more
    mortal.kill()
    deaf = False
    mortal.start()
    person.wait_for_chip("saved")
    assert len(mortal.labels("unheard")) == 2
    assert person.all_stored()


def test_a_store_that_cannot_be_written_is_said_and_outlived(annotator, mortal):
    person = annotator("full", mortal)
    with sqlite3.connect(mortal.folder / "study.db") as other:
        other.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON labels "
            "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
    person.choose("C")
    person.go_on("Enter")
    person.wait_for_chip("failed")
    assert person.stored() == {}
    with sqlite3.connect(mortal.folder / "study.db") as other:
        other.execute("DROP TRIGGER refuse")
    person.wait_for_chip("saved")
    assert person.all_stored()
