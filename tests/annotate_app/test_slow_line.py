"""Typing ahead over a slow line: every key counts for the unit it was meant for, or for none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from harness.annotator import READY, SWAPPED, Annotator, arrive
from harness.slow_line import SlowLine

pytestmark = pytest.mark.browser

DELAYS = (0, 75, 250)
"""Milliseconds each way."""
GAPS = (0, 30, 50, 80, 100, 150, 200, 250)
"""Milliseconds between two keys."""
WAYS = [
    pytest.param(0, [0], 1, id="0", marks=pytest.mark.thorough),
    pytest.param(75, [0, 100], 1, id="75"),
    pytest.param(250, [30], 1, id="250", marks=pytest.mark.thorough),
    *(pytest.param(each_way, GAPS, 8, id=f"{each_way}-all", marks=pytest.mark.load)
      for each_way in DELAYS),
]  # fmt: skip
"""(milliseconds each way, milliseconds between keys, trials)"""


Far = Callable[..., Annotator]


@pytest.fixture(scope="module")
def far(browser, served) -> Iterator[Far]:
    """far(milliseconds, name) -> a person so far away each way, at work already. One page serves
    all tests of one delay and name: to open it takes longer than they do."""
    here: dict[str, Annotator] = {}
    with ExitStack() as lines:

        def come(each_way: int, name: str = "") -> Annotator:
            rater = f"far-{each_way}{name}"
            if rater not in here:
                line = lines.enter_context(SlowLine(served.port))
                page = browser.new_page()
                here[rater] = arrive(page, served, rater, line.url)
                line.milliseconds = each_way
            person = here[rater]
            person.page.wait_for_selector(READY)
            person.given = person.stored()
            return person

        yield come
        for person in here.values():
            person.page.close()


def type_in(person: Annotator, keys: tuple[str, ...], gap: float) -> None:
    for number, key in enumerate(keys):
        if gap and number:
            person.page.wait_for_timeout(gap)
        person.page.keyboard.press(key)


def label(option: str, order: str) -> str:
    return option if order == "ab" else SWAPPED[option]


@pytest.mark.thorough
@pytest.mark.parametrize(("each_way", "gaps", "trials"), WAYS)
def test_an_answer_typed_after_backspace_changes_the_last_one_only(far, each_way, gaps, trials):
    person = far(each_way, "-undo" if trials > 1 else "")
    for gap in gaps * trials:
        unit, order = person.unit()
        person.answer("L")
        present, _ = person.unit()
        type_in(person, ("Backspace", "c", "Enter"), gap)
        person.given[unit] = label("C", order)
        assert person.all_stored()
        person.page.locator(READY, has_text=f"Response {int(present[1:5])}, side").wait_for()
        assert person.chosen() is None


@pytest.mark.parametrize(("each_way", "gaps", "trials"), WAYS)
def test_an_answer_typed_after_escape_leaves_the_earlier_one(far, each_way, gaps, trials):
    person = far(each_way, "-leave" if trials > 1 else "")
    if not person.given:
        person.answer("L")
    for gap in gaps * trials:
        present, order = person.unit()
        text = person.page.text_content(".material")
        person.page.keyboard.press("Backspace")
        person.in_panel("!panel.querySelector('.editing').hidden")
        type_in(person, ("Escape", "r", "Enter"), gap)
        person.given[present] = label("R", order)
        assert person.all_stored()
        person.wait_for_next(text)


@pytest.mark.parametrize(("each_way", "gaps", "trials"), WAYS)
def test_an_answer_undone_before_its_successor_is_here(far, each_way, gaps, trials):
    person = far(each_way, "-at-once" if trials > 1 else "")
    for gap in gaps * trials:
        unit, order = person.unit()
        text = person.page.text_content(".material")
        type_in(person, ("l", "Enter", "Backspace", "r", "Enter"), gap)
        person.given[unit] = label("R", order)
        assert person.all_stored()
        person.wait_for_next(text)
        assert person.chosen() is None


PRESS_EARLY = """
(milliseconds) => new Promise((done) => {
  const root = document.querySelector("[data-testid=stBidiComponentIsolated]").shadowRoot;
  const material = root.querySelector(".material");
  const press = (key) => material.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, composed: true }));
  let pressed = 0;
  const again = (painted) => {
    if (performance.now() - painted > milliseconds) return done(pressed);
    pressed += 1;
    press("c");
    requestAnimationFrame(() => again(painted));
  };
  new MutationObserver((_, observer) => {
    observer.disconnect();
    press("c"); // drawn, and not painted yet
    requestAnimationFrame(() => {
      press("c");
      requestAnimationFrame(() => again(performance.now()));
    });
  }).observe(material, { childList: true });
  press("l");
  press("Enter");
})
"""


@pytest.mark.journey
def test_an_option_counts_only_once_its_unit_has_been_seen(far):
    person = far(0)
    for _ in range(3):
        unit, order = person.unit()
        person.given[unit] = label("L", order)
        assert person.page.evaluate(PRESS_EARLY, 140) > 1  # in each frame of 140 ms
        assert person.unit()[0] != unit
        assert person.chosen() is None
        assert "Not taken" in person.page.text_content(".notice")
        person.page.wait_for_selector(READY)
        person.answer("R")
        assert person.page.text_content(".notice") == ""
    assert person.all_stored()
    click = PRESS_EARLY.replace('press("c")', 'root.querySelector(".options input")?.click()')
    person.page.evaluate(click, 100)
    assert person.chosen() is None
    assert "Not taken" in person.page.text_content(".notice")


WATCH = """
window.alarms = 0;
const look = () => {
  const said = document.querySelector(".evenhand-offline");
  if (said?.checkVisibility({ visibilityProperty: true })) window.alarms += 1;
  requestAnimationFrame(look);
};
look();
"""


def test_nothing_alarms_who_opens_the_page_over_a_slow_line(browser, served):
    page = browser.new_page()
    page.add_init_script(WATCH)
    with SlowLine(served.port) as line:
        line.milliseconds = 75
        arrive(page, served, "opens", line.url)
        assert page.evaluate("window.alarms") == 0
    page.close()


def test_an_answer_that_waits_for_another_is_sent_as_the_window_closes(far):
    person = far(1_000, "-leaving")
    page = person.page
    person.choose("L")
    with page.expect_request("**/evenhand/answers"):
        person.submit()
    page.wait_for_selector(READY)  # the unit that was sent ahead, while the first answer travels
    person.give("R")
    page.close(run_before_unload=True)
    assert person.all_stored()
