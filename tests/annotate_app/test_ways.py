"""Ways of reading and working: size of letters, length of lines, guidelines, answers at once."""

import random
import re
from importlib.resources import files

import pytest

from evenhand.rubrics.loading import dump_rubric
from harness.annotator import READY, press_keys, reload
from harness.served import Served, holds
from harness.studies import response_rubric

pytestmark = pytest.mark.browser

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


def test_arrows_among_the_options_send_nothing(faithful, entered):
    page = entered("arrows")
    page.get_by_role("checkbox", name="Submit as soon as I choose").check()
    page.get_by_role("radio", name="Yes").focus()
    page.keyboard.press("ArrowDown")
    assert page.get_by_role("radio", name="No").is_checked()
    page.wait_for_timeout(300)
    assert faithful.comes_to_hold("arrows", [])
    page.keyboard.press("Enter")
    answered(page, 1)
    assert faithful.comes_to_hold("arrows", ["no"])


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
