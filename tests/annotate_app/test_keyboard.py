"""Hands on the keyboard: confidence has a key of its own, the texts scroll, the focus stays."""

import random
import re
from importlib.resources import files
from itertools import pairwise

import pytest

from evenhand.rubrics.loading import dump_rubric, parse_rubric
from evenhand.study import open_study
from evenhand.study.creation import declare_rewording
from evenhand.study.store.logs.answers import remarks_table
from harness.annotator import READY, Annotator, press_keys, reload, response_text
from harness.served import Served, holds
from harness.studies import response_rubric

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def long_texts(serve):
    """Responses of about four screens (a) and eight (b), and a question about confidence."""

    def text(number: int, side: str) -> str:
        return response_text(number, side) + "\nOne more line." * (100 if side == "a" else 200)

    return serve(2, text, confidence=True)


@pytest.fixture
def reader(annotator, long_texts):
    return lambda rater: annotator(rater, long_texts)


def scrolled(person: Annotator) -> list[int]:
    """How far both responses are scrolled, in pixels, left first."""
    tops = person.page.locator(".response .text")
    return tops.evaluate_all("nodes => nodes.map(node => Math.round(node.scrollTop))")


def sure(person: Annotator) -> list[str]:
    chosen = person.page.locator(".confidence .option:has(:checked) .name")
    return chosen.all_text_contents()


def test_a_corrected_digit_is_the_answer_and_never_the_confidence(reader, long_texts):
    person = reader("corrects")
    page = person.page
    press_keys(page, "2", "3")
    assert person.chosen() == "C"
    assert sure(person) == []
    levels = []
    for _ in range(5):
        page.keyboard.press("0")
        levels += [sure(person)]
    assert levels == [["A guess"], ["Fairly sure"], ["Certain"], [], ["A guess"]]
    page.keyboard.press("1")
    page.get_by_role("radio", name="Fairly sure").check()  # by mouse the same
    page.keyboard.press("3")
    assert sure(person) == ["Fairly sure"]
    person.go_on("Enter")
    person.wait_for_chip("saved")
    assert list(person.stored().values()) == ["C"]
    with open_study(long_texts.folder) as study:
        said = remarks_table(study.store)
    assert said.loc[said["rater_id"] == "corrects", "confidence"].tolist() == [2]


@pytest.mark.thorough
def test_keys_scroll_both_texts_wherever_the_focus_is(reader):
    person = reader("scrolls")
    page = person.page
    page.keyboard.press("c")
    page.get_by_role("radio", name="Neither").focus()  # as Tab would lead there
    for down, up in (("PageDown", "PageUp"), ("Space", "Shift+Space"), ("End", "Home")):
        page.keyboard.press(down)
        left, right = scrolled(person)
        assert left > 100 and right > 100, down
        if down != "End":
            assert left == right
        page.keyboard.press(up)
        assert scrolled(person) == [0, 0]
    assert person.chosen() == "C"
    # One alone: by the focus.
    page.locator(".response .text").first.click()
    page.keyboard.press("PageDown")
    person.in_panel("panel.querySelector('.response .text').scrollTop > 100")
    assert scrolled(person)[1] == 0
    press_keys(page, "Escape", "Home", "End")
    assert min(scrolled(person)) > 1000
    press_keys(page, "?", "PageDown")  # the dialog's
    listed = page.locator(".sheet dl").text_content()
    assert all(key in listed for key in ("PageUp", "PageDown", "Space", "Home", "End", "0"))


@pytest.mark.thorough
def test_the_focus_returns_to_the_texts(reader):
    person = reader("focus")
    page = person.page
    assert person.focus() == "material"
    page.get_by_role("radio", name="Response A").check()
    person.in_panel("panel.getRootNode().activeElement.className === 'material'")
    page.get_by_text("Guidelines").click()
    person.in_panel("panel.getRootNode().activeElement.className === 'material'")
    page.locator(".skip").click()
    page.get_by_role("button", name="Cancel").click()
    person.in_panel("panel.getRootNode().activeElement.className === 'material'")
    page.get_by_role("button", name="Earlier answers").click()
    page.locator(".sheet[open]").wait_for()
    page.keyboard.press("Escape")
    person.in_panel("panel.getRootNode().activeElement.className === 'material'")
    person.go_on("Enter")  # submits, and opens nothing again
    assert not page.locator(".sheet").is_visible()
    assert person.focus() == "material"


@pytest.mark.thorough
def test_letters_digits_and_signs_are_no_keys_once_they_are_switched_off(reader):
    person = reader("single")
    page = person.page
    caps = page.locator(".option kbd, .skip kbd, .flag kbd, .help kbd")
    assert caps.first.is_visible()
    page.keyboard.press("?")
    person.in_panel("panel.getRootNode().activeElement.id === 'sheet-title'")
    page.get_by_role("checkbox", name="Letters, digits and signs are keys").uncheck()
    listed = page.locator(".sheet dt").all_text_contents()
    assert "Tab↑↓Space" in listed and "Enter" in listed
    assert not [keys for keys in listed if len(keys) == 1 and keys != "⌫"]
    page.keyboard.press("Escape")
    press_keys(page, "c", "3", "-", "+", "?", "0", "=")
    assert person.chosen() is None
    assert not page.locator(".sheet").is_visible()
    assert sure(person) == []
    assert page.get_by_role("button", name="Scroll together", pressed=True).count() == 0
    assert not any(caps.nth(n).is_visible() for n in range(caps.count()))
    assert page.locator(".panel [aria-keyshortcuts='C']").count() == 0
    assert page.locator(".back[aria-keyshortcuts=Backspace] kbd").is_visible()
    reload(page)  # it is kept
    page.keyboard.press("c")
    assert person.chosen() is None
    # By Tab, arrows and Space alone an answer is given, and the keys are had back.
    for _ in range(8):
        page.keyboard.press("Tab")
        if page.locator(".option input:focus").count():
            break
    page.keyboard.press("Space")
    assert person.chosen() == "L"
    press_keys(page, "ArrowDown", "ArrowDown")
    assert person.chosen() == "C"
    person.go_on("Enter")
    assert holds(lambda: list(person.stored().values()) == ["C"])  # it was left while on its way
    for _ in range(8):
        page.keyboard.press("Shift+Tab")
        if page.locator(".help:focus").count():
            break
    page.keyboard.press("Enter")
    page.get_by_role("checkbox", name="Letters, digits and signs are keys").focus()
    press_keys(page, "Space", "Escape")
    person.in_panel("panel.dataset.phase === 'choosing'")
    page.keyboard.press("2")
    assert person.chosen() == "R"


FAITHFUL = response_rubric(
    {"yes": "Yes", "no": "No"},
    title="Faithful",
    question="Is it faithful?",
    instructions="Read **all** of it.\n\n- what it says\n- what it leaves out\n\n"
    "See [the guide](https://example.org/guide).\n",
)

READ = 800
"""Milliseconds after which a click is not the second half of a double click."""

PROSE = (
    "The committee met on Thursday and talked about the new bridge, its price, and who is going to"
    " pay for it once the first year is over. "
)

# Letters in a line of prose, which fills all but its last.
LETTERS_A_LINE = """
(text) => {
  const range = document.createRange();
  range.selectNodeContents(text);
  const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
  return text.textContent.length / lines.size;
}
"""


@pytest.fixture(scope="module")
def faithful(make_items, serve_study) -> Served:
    rows = [["response"], *([f"Number {n}. " + PROSE * 8] for n in range(40))]
    return serve_study(make_items(rows, rubric=dump_rubric(FAITHFUL)))


@pytest.fixture
def entered(faithful, annotator):
    return lambda rater, **screen: annotator(rater, faithful, **screen).page


def answered(page, number: int) -> None:
    page.get_by_text(re.compile(rf"^{number} of \d+ answered")).wait_for()
    page.wait_for_selector(READY)


@pytest.mark.parametrize("width", [1280, 1440, 2560])
def test_a_line_has_no_more_letters_than_an_eye_follows(entered, width):
    page = entered(f"reader{width}", viewport={"width": width, "height": 900})
    assert 50 <= page.locator(".material .text").evaluate(LETTERS_A_LINE) <= 75


def test_letters_grow_by_a_key_and_the_browser_remembers_it(entered):
    page = entered("large")
    size = "node => parseFloat(getComputedStyle(node).fontSize)"
    text = page.locator(".material .text")
    before = text.evaluate(size)
    press_keys(page, ">", ">")
    assert text.evaluate(size) == pytest.approx(1.3 * before, rel=1e-3)
    assert text.evaluate(LETTERS_A_LINE) <= 75
    reload(page)
    assert text.evaluate(size) == pytest.approx(1.3 * before, rel=1e-3)
    page.get_by_role("button", name="Smaller letters").click()
    assert text.evaluate(size) == pytest.approx(1.15 * before, rel=1e-3)


def test_the_guidelines_are_drawn_and_open_by_a_key(entered):
    page = entered("reads")
    page.keyboard.press("#")
    sheet = page.get_by_role("dialog", name="Guidelines: Faithful")
    assert sheet.get_by_role("listitem").all_inner_texts() == ["what it says", "what it leaves out"]
    link = sheet.get_by_role("link", name="the guide")
    assert link.get_attribute("href") == "https://example.org/guide"
    assert link.get_attribute("target") == "_blank"
    assert link.get_attribute("rel") == "noopener noreferrer"
    page.keyboard.press("#")
    sheet.wait_for(state="hidden")
    page.keyboard.press("1")  # the keys are the unit's again
    assert page.get_by_role("radio", name="Yes").is_checked()


def test_an_answer_goes_as_soon_as_it_is_chosen_where_a_rater_wants_it_so(faithful, entered):
    page = entered("quick")
    page.get_by_role("checkbox", name="Submit as soon as I choose").check()
    page.keyboard.press("1")
    answered(page, 1)
    page.wait_for_timeout(READ)
    page.locator(".option", has_text="No").click()
    answered(page, 2)
    page.wait_for_timeout(READ)
    page.keyboard.press("1")
    answered(page, 3)
    page.wait_for_timeout(READ)
    page.keyboard.press("Backspace")  # the last one was a slip
    page.get_by_text("You are changing an earlier answer").wait_for()
    page.wait_for_selector(READY)
    page.keyboard.press("2")
    page.get_by_text("You are changing an earlier answer").wait_for(state="hidden")
    answered(page, 3)
    assert holds(lambda: sorted(faithful.labels("quick")["label"]) == ["no", "no", "yes"])
    reload(page)
    assert page.get_by_role("checkbox", name="Submit as soon as I choose").is_checked()


def test_what_only_one_of_two_responses_says_is_marked_on_request(serve, annotator):
    texts = {"a": "The cat sat on the mat.", "b": "The dog sat on a mat, then."}
    served = serve(3, lambda number, side: texts[side])
    page = annotator("compares", served).page
    marked = """() => [...(CSS.highlights.get("differs") ?? [])].map(String).sort()"""
    assert page.evaluate(marked) == []
    text = page.locator(".response .text").first
    unmarked = text.screenshot()
    page.keyboard.press("%")
    assert page.evaluate(marked) == [", then", "a", "cat", "dog", "the"]
    assert holds(lambda: text.screenshot() != unmarked)  # it is seen, not only known
    page.keyboard.press("%")
    assert page.evaluate(marked) == []


PAIRS = """
(texts) => {
  const common = (one, other) => {
    const rows = Array.from({ length: one.length + 1 }, () => new Array(other.length + 1).fill(0));
    for (let at = one.length - 1; at >= 0; at--)
      for (let to = other.length - 1; to >= 0; to--)
        rows[at][to] = one[at] === other[to]
          ? rows[at + 1][to + 1] + 1
          : Math.max(rows[at + 1][to], rows[at][to + 1]);
    return rows[0][0];
  };
  return texts.map(([one, other]) => [commonPairs(one, other), common(one, other)]);
}
"""


def test_no_more_is_marked_than_must_be(new_context):
    """Against the longest common part by the plain table of all prefixes, on random texts."""
    drawn = random.Random(1)
    texts = [
        ["".join(drawn.choices("abc", k=drawn.randint(0, 12))) for _ in range(2)]
        for _ in range(500)
    ]
    page = new_context().new_page()
    page.add_script_tag(path=files("evenhand.annotate_app") / "panel" / "differing.js")
    for (one, other), (pairs, longest) in zip(texts, page.evaluate(PAIRS, texts), strict=True):
        assert len(pairs) == longest
        assert all(one[at] == other[to] for at, to in pairs)
        assert pairs == sorted(pairs)


def test_a_double_click_answers_one_unit(faithful, entered):
    page = entered("twice")
    page.get_by_role("checkbox", name="Submit as soon as I choose").check()
    page.locator(".option", has_text="No").dblclick(delay=20)
    page.wait_for_timeout(300)
    page.locator(".option", has_text="No").click()  # within the same press, as slow hands do it
    answered(page, 1)
    page.wait_for_timeout(READ)
    assert faithful.comes_to_hold("twice", ["no"])
    page.keyboard.press("Enter")  # what was chosen then waits to be sent
    answered(page, 2)


OLD, NEW = "Compare the two responses by their length alone.", "Count the words of both."


@pytest.fixture(scope="module")
def served(make_study, serve_study) -> Served:
    folder = make_study(8, raters_per_unit=3)
    with open_study(folder) as study:
        file = folder / "rubrics" / "shorter.toml"
        text = file.read_text("utf-8").replace('"shorter"', '"shorter-2"', 1).replace(OLD, NEW)
        text = f'variant_of = "shorter"\n{text}'
        assert declare_rewording(study, parse_rubric(text, "shorter-2.toml"), text, 8) == 0
    return serve_study(folder)


def test_guidelines_that_were_closed_open_where_the_wording_changes(annotator, served):
    person = annotator("ann", served)
    guides = person.page.locator(".guides .guidelines")
    guides.get_by_text("Guidelines").click() if guides.get_attribute("open") is not None else None
    person.in_panel("!panel.querySelector('.guides .guidelines').open")
    seen = []
    for _ in range(8):
        words = guides.locator(".instructions").text_content().strip()
        changed = bool(seen) and seen[-1] != words
        assert (guides.get_attribute("open") is not None) == changed
        if changed:
            guides.locator("summary").click()
        seen.append(words)
        person.answer("R")
    assert sorted(seen) == sorted([OLD] * 4 + [NEW] * 4)
    assert sum(one != other for one, other in pairwise(seen)) == 1
