"""Hands on the keyboard, the ways of reading, small screens, and questions that ask for a number or
of which several options may apply.
"""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from evenhand.rubrics.loading import dump_rubric, parse_rubric
from evenhand.study import open_study
from evenhand.study.access import set_account
from evenhand.study.creation import declare_rewording
from evenhand.study.desk.desk import AnnotationDesk
from harness.annotator import READY, Annotator, arrive, look_back, press_keys, reload
from harness.served import Served, holds
from harness.studies import response_rubric, response_text, submit, task_of
from tests.annotate_app.leading import PASSWORD, log_in

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
    tops = person.page.locator(".response .text")
    return tops.evaluate_all("nodes => nodes.map(node => Math.round(node.scrollTop))")


def sure(person: Annotator) -> list[str]:
    return person.page.locator(".confidence .option:has(:checked) .name").all_text_contents()


def test_a_corrected_digit_is_the_answer_and_never_the_confidence(reader, long_texts):
    person = reader("corrects")
    page = person.page
    press_keys(page, "2", "3")
    assert (person.chosen(), sure(person)) == ("C", [])
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
    assert long_texts.remarks("corrects")["confidence"].tolist() == [2]


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
        assert left == right or down == "End"
        page.keyboard.press(up)
        assert scrolled(person) == [0, 0]
    assert person.chosen() == "C"
    # One alone: by the focus.
    page.locator(".response .text").first.click()
    page.keyboard.press("PageDown")
    person.in_panel("panel.querySelector('.response .text').scrollTop > 100")
    assert scrolled(person)[1] == 0
    press_keys(page, "Escape", "=")  # tied to each other: the same share of each
    page.locator(".response .text").first.evaluate("node => node.scrollTo(0, 1e6)")
    person.in_panel("panel.querySelectorAll('.response .text')[1].scrollTop > 1000")
    press_keys(page, "?", "PageDown")  # the dialog's
    listed = "".join(page.locator(".sheet dt").all_text_contents())
    assert all(key in listed for key in ("PageUp", "PageDown", "Space", "Home", "End", "0"))


@pytest.mark.thorough
def test_the_focus_returns_to_the_texts(reader):
    person = reader("focus")
    page = person.page
    assert person.focus() == "material"

    def press(name: str) -> None:
        page.get_by_role("button", name=name).click()

    for leave in (
        page.get_by_role("radio", name="Response A").check,
        page.get_by_text("Guidelines").click,
        lambda: (page.locator(".skip").click(), press("Cancel")),
        lambda: (press("Earlier answers"), page.keyboard.press("Escape")),
    ):
        leave()
        person.in_panel("panel.getRootNode().activeElement.className === 'material'")
    person.go_on("Enter")  # submits, and opens nothing again
    assert not page.locator(".sheet").is_visible()
    assert person.focus() == "material"


@pytest.mark.thorough
def test_letters_digits_and_signs_are_no_keys_once_they_are_switched_off(reader):
    person = reader("single")
    page = person.page
    switch = page.get_by_role("checkbox", name="Use single-key shortcuts")

    def tab_to(part: str, key: str = "Tab") -> None:
        for _ in range(8):
            page.keyboard.press(key)
            if page.locator(f"{part}:focus").count():
                return

    caps = page.locator(".option kbd, .skip kbd, .flag kbd, .help kbd")
    assert caps.first.is_visible()
    page.keyboard.press("?")
    person.in_panel("panel.getRootNode().activeElement.id === 'sheet-title'")
    switch.uncheck()
    listed = page.locator(".sheet dt").all_text_contents()
    assert {"Tab↑↓Space", "Enter"} <= set(listed)
    assert not [keys for keys in listed if len(keys) == 1 and keys != "⌫"]
    press_keys(page, "Escape", "c", "3", "-", "+", "?", "0", "=")
    assert person.chosen() is None
    assert not page.locator(".sheet").is_visible()
    assert sure(person) == []
    assert not any(caps.nth(n).is_visible() for n in range(caps.count()))
    assert page.locator(".panel [aria-keyshortcuts='C']").count() == 0
    assert page.locator(".back[aria-keyshortcuts=Backspace] kbd").is_visible()
    reload(page)  # it is kept
    page.keyboard.press("c")
    assert person.chosen() is None
    # By Tab, arrows and Space alone an answer is given, and the keys are had back.
    tab_to(".option input")
    press_keys(page, "Space", "ArrowDown", "ArrowDown")
    assert person.chosen() == "C"
    person.go_on("Enter")
    assert holds(lambda: list(person.stored().values()) == ["C"])  # it was left while on its way
    tab_to(".help", "Shift+Tab")
    page.keyboard.press("Enter")
    switch.focus()
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
    return lambda rater: annotator(rater, faithful).page


def answered(page, number: int) -> None:
    page.get_by_text(re.compile(rf"^{number} of \d+ answered")).wait_for()
    page.wait_for_selector(READY)


def test_no_line_is_too_long_and_letters_grow_by_a_key_and_the_browser_remembers_it(entered):
    page = entered("large")
    size = "node => parseFloat(getComputedStyle(node).fontSize)"
    text = page.locator(".material .text")
    for width in (1280, 2560, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert 50 <= text.evaluate(LETTERS_A_LINE) <= 75, width
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
    for is_open in (True, False):  # where they stand
        page.keyboard.press("#")
        assert page.locator(".guides details").evaluate("node => node.open") is is_open
    page.set_viewport_size({"width": 1000, "height": 800})  # over the texts
    page.keyboard.press("#")
    sheet = page.get_by_role("dialog", name="Guidelines: Faithful")
    assert sheet.get_by_role("listitem").all_inner_texts() == ["what it says", "what it leaves out"]
    link = sheet.get_by_role("link", name="the guide").evaluate("a => [a.href, a.target, a.rel]")
    assert link == ["https://example.org/guide", "_blank", "noopener noreferrer"]
    page.keyboard.press("#")
    sheet.wait_for(state="hidden")
    page.keyboard.press("1")  # the keys are the unit's again
    assert page.get_by_role("radio", name="Yes").is_checked()


def test_an_answer_goes_as_soon_as_it_is_chosen_where_a_rater_wants_it_so(faithful, entered):
    page = entered("quick")
    at_once = page.get_by_role("checkbox", name="Submit as soon as I choose")
    changing = page.get_by_text("You are changing your answer to item")
    at_once.check()
    page.keyboard.press("1")
    answered(page, 1)
    page.wait_for_timeout(READ)
    page.locator(".option", has_text="No").click()
    answered(page, 2)
    page.wait_for_timeout(READ)
    page.keyboard.press("Backspace")  # the last one was a slip
    changing.wait_for()
    page.wait_for_selector(READY)
    page.keyboard.press("1")
    changing.wait_for(state="hidden")
    answered(page, 2)
    assert holds(lambda: sorted(faithful.labels("quick")["label"]) == ["yes", "yes"])
    reload(page)
    assert at_once.is_checked()
    page.get_by_role("radio", name="Yes").focus()
    page.keyboard.press("ArrowDown")  # arrows among the options send nothing
    assert page.get_by_role("radio", name="No").is_checked()
    page.wait_for_timeout(300)
    page.keyboard.press("Enter")
    answered(page, 3)
    assert holds(lambda: sorted(faithful.labels("quick")["label"]) == ["no", "yes", "yes"])


def test_what_only_one_of_two_responses_says_is_marked_on_request(serve, annotator):
    texts = {"a": "The cat sat on the mat.", "b": "The dog sat on a mat, then."}
    page = annotator("compares", serve(3, lambda number, side: texts[side])).page
    marked = """() => [...(CSS.highlights.get("differs") ?? [])].map(String).sort()"""
    assert page.evaluate(marked) == []
    text = page.locator(".response .text").first
    unmarked = text.screenshot()
    page.keyboard.press("%")
    assert page.evaluate(marked) == [", then", "a", "a", "b", "cat", "dog", "the"]  # b: a prompt
    assert holds(lambda: text.screenshot() != unmarked)  # it is seen, not only known
    page.keyboard.press("%")
    assert page.evaluate(marked) == []


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
    if guides.get_attribute("open") is not None:
        guides.get_by_text("Guidelines").click()
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


# CSS pixels: 200% of 1440x900 are 720x450.
LARGER = {
    "200% of 1440x900": (720, 450, False),
    "200% of 1920x1080": (960, 540, False),
    "400% of 1280x1024": (320, 256, False),
    "phone across": (844, 390, True),
}
SIZES = LARGER | {"phone upright": (390, 844, True)}
LINES_TO_JUDGE_BY = 5
TOPS = "(nodes) => nodes.map((node) => node.getBoundingClientRect().top)"

# Of every part: its box after it was scrolled to, and whether it, not something over it, is there.
REACHED = """
(nodes) => nodes.map((node) => {
  node.scrollIntoView({ block: "center", behavior: "instant" });
  const { x, y, width, height } = node.getBoundingClientRect();
  const over = node.getRootNode().elementFromPoint(x + width / 2, y + height / 2);
  const inside = x >= 0 && x + width <= innerWidth && y >= 0 && y + height <= innerHeight;
  return { name: node.textContent.trim(), width, height, inside, hit: node.contains(over) };
})
"""
STAYING = REACHED.replace('node.scrollIntoView({ block: "center", behavior: "instant" });', "")
# Pixels of the text that are seen at once when it is scrolled to; its last line, when that is.
SEEN = """
(node) => {
  const above = [];
  for (let up = node.parentElement; up; up = up.parentElement) above.push(up);
  const scrollers = above.filter((up) => getComputedStyle(up).overflowY === "auto");
  if (getComputedStyle(node).overflowY === "auto") scrollers.unshift(node);
  const boxes = scrollers.map((one) => one.getBoundingClientRect());
  const top = Math.max(0, ...boxes.map((box) => box.top));
  const bottom = Math.min(innerHeight, ...boxes.map((box) => box.bottom));
  node.scrollIntoView({ block: "start", behavior: "instant" });
  const box = node.getBoundingClientRect();
  const height = Math.min(box.bottom, bottom) - Math.max(box.top, top);
  const last = document.createRange();
  last.setStart(node.lastChild, node.lastChild.length - 3);
  last.setEnd(node.lastChild, node.lastChild.length);
  for (const one of scrollers) {
    one.scrollTop += last.getBoundingClientRect().bottom - (top + bottom) / 2;
  }
  const { x, y, width, height: line } = last.getBoundingClientRect();
  const over = node.getRootNode().elementFromPoint(x + width / 2, y + line / 2);
  return { height, ended: node.contains(over) };
}
"""


@pytest.fixture(scope="module")
def wordy(serve):
    """Long responses, a question about confidence and a field for reasons."""

    def text(number: int, side: str) -> str:
        return response_text(number, side) + "\nOne more line of this response." * 60

    return serve(2, text, confidence=True, rationale=True)


@pytest.mark.parametrize(
    "size", ["phone upright", *(pytest.param(s, marks=pytest.mark.thorough) for s in LARGER)]
)
def test_all_is_within_reach(new_context, wordy, size):
    width, height, touch = SIZES[size]
    screen = {"viewport": {"width": width, "height": height}, "device_scale_factor": 2}
    page = new_context(**screen, has_touch=touch, is_mobile=touch).new_page()
    arrive(page, wordy, f"small-{width}")
    if (width, touch) == (390, True):
        texts_have_half_of_the_height(page)
    a_notice_is_seen_where_it_is_given(page)
    nothing_is_cut(page, 44 if touch else 24)
    what_an_answer_means_can_be_had(page)
    the_state_of_the_line_stays_in_view(page)
    if width > 900:
        tops = [page.locator(".side").nth(n).bounding_box()["y"] for n in (0, 1)]
        assert tops[0] == tops[1]
        assert not page.locator(".jumps").is_visible()
    else:
        jumps_lead_from_one_response_to_the_other(page)


def texts_have_half_of_the_height(page) -> None:
    texts, jumps = (page.locator(part).bounding_box() for part in (".material", ".jumps"))
    seen = texts["y"] + texts["height"] - jumps["y"] - jumps["height"]
    assert seen >= page.viewport_size["height"] / 2
    for part in page.locator(".ask:first-child .option, .go").evaluate_all(STAYING):
        assert part["inside"] and part["hit"], part
    tools = page.get_by_role("button", name="Tools")
    assert not page.locator(".ways").is_visible()
    tools.click()
    page.get_by_role("button", name="Larger letters").click()
    assert all(one["inside"] and one["hit"] for one in reached(page, ".ways > *, .who a"))
    tools.click()
    assert page.locator("kbd").locator("visible=true").count() == 0
    page.keyboard.press("?")  # who has keys after all
    assert page.locator(".sheet kbd").locator("visible=true").count() > 9
    page.keyboard.press("Escape")


def nothing_is_cut(page, least: int) -> None:
    width = page.viewport_size["width"]
    sizes = "[document.documentElement, document.body].map((node) => node.scrollWidth)"
    assert page.evaluate(sizes) == [width, width]
    assert page.locator(".panel").evaluate("node => node.scrollWidth - node.clientWidth") == 0
    assert len(reached(page, ".ask:first-child .option")) == 3
    parts = ("#question-0", ".option", ".go", ".tools button", "summary", ".count", ".meanings")
    for part in parts:
        for one in reached(page, part):
            assert one["inside"] and one["hit"], one
    for text in page.locator(".response .text").all():
        seen = text.evaluate(SEEN)
        assert seen["height"] >= LINES_TO_JUDGE_BY * 26 and seen["ended"], seen
    for one in reached(page, ".panel :is(button, a, summary, .option)"):
        assert min(one["width"], one["height"]) >= least, one


def what_an_answer_means_can_be_had(page) -> None:
    described = page.locator(".ask:first-child .description")
    shown = described.locator("visible=true")
    assert (described.count(), shown.count()) == (3, 0)
    means = page.get_by_role("button", name="Option definitions")
    for count in (3, 0):
        means.click()
        assert shown.count() == count
    page.evaluate("() => new Promise((done) => setTimeout(done))")  # the click gives the focus back
    page.locator(".option input").first.focus()
    page.keyboard.press("ArrowDown")
    expect(shown).to_have_text(["Response B has fewer words."])
    places = page.locator(".option").evaluate_all(TOPS)
    page.locator(".option").first.click()
    assert shown.all_text_contents() == ["Response A has fewer words."]
    assert page.locator(".option").evaluate_all(TOPS) == places  # what is chosen moves none


def the_state_of_the_line_stays_in_view(page) -> None:
    for part in (".count", ".response .text >> nth=1", ".go", ".flag"):
        page.locator(part).evaluate("node => node.scrollIntoView({ block: 'end' })")
        (state,) = page.locator(".chip").evaluate_all(STAYING)
        assert state["inside"] and state["hit"], (part, state)


def jumps_lead_from_one_response_to_the_other(page) -> None:
    titles = page.locator(".response h2")
    for n in (1, 0, 1):
        page.locator(".jumps button").nth(n).click()
        assert titles.nth(n).bounding_box()["y"] < page.viewport_size["height"] / 2
        (title,) = titles.nth(n).evaluate_all(STAYING)
        assert title["inside"] and title["hit"], title
    differences = page.locator(".jumps").get_by_role("button", name="Differences")
    differences.click()
    assert differences.get_attribute("aria-pressed") == "true"


def a_notice_is_seen_where_it_is_given(page) -> None:
    page.locator(".response .text").first.evaluate("node => node.scrollIntoView()")
    page.keyboard.press("Enter")
    (notice,) = page.locator(".notice").evaluate_all(STAYING)
    assert notice["name"] == "Choose an answer first."
    assert page.locator(".go span").inner_text() == "Choose an answer first"
    assert notice["inside"] and notice["hit"], notice


def reached(page, selector: str) -> list[dict]:
    parts = page.locator(selector).locator("visible=true").evaluate_all(REACHED)
    assert parts, selector
    return parts


TOPICS = response_rubric(
    {"billing": "Billing", "bug": "A bug", "praise": "Praise"}, title="Topics", several=True
)


@pytest.fixture(scope="module")
def asked(make_items, serve_study) -> Served:
    head = ["response", "system", "judge"]
    rows = [head, *([f"Answer {n}", f"m{n % 2}", 10 * n] for n in range(6))]
    ask = ["--question", "How good is it?", "--scale", "0-100", "--judge", "judge"]
    return serve_study(make_items(rows, *ask))


@pytest.fixture(scope="module")
def topics(make_items, serve_study) -> Served:
    rows = [["response"], *([f"Message {n}"] for n in range(6))]
    return serve_study(make_items(rows, rubric=dump_rubric(TOPICS)))


def ticked(page) -> list[str]:
    return page.locator(".option:has(:checked) .name").all_inner_texts()


def test_digits_from_anywhere_and_enter(annotator, asked, axe):
    person = annotator("typist", asked)
    page = person.page
    field = page.get_by_role("textbox", name="How good is it?")
    hint = "A whole number from 0 to 100. Type it, or click the line."
    assert page.locator(".bounds").inner_text() == hint
    assert person.focus() == "material"  # the texts scroll by keyboard until a digit is typed
    axe(page, "a number")
    page.keyboard.press("Enter")
    notice = page.locator(".notice")
    assert notice.inner_text() == "Type a whole number from 0 to 100 first."
    page.keyboard.press("Escape")
    page.keyboard.type("73")
    page.get_by_role("button", name="Submit and go on").wait_for()
    reload(page)
    assert field.input_value() == "73"
    page.keyboard.press("Enter")
    answered(page, 1)
    assert field.input_value() == ""
    # Zero is a digit here; out of bounds, between steps and words are no answers.
    for wrong in ("101", "7.5", "-1", "ten", "1e2"):
        field.fill(wrong)
        assert field.get_attribute("aria-invalid") == "true"
        field.press("Enter")
        assert "from 0 to 100" in notice.inner_text()
    # A track for who points says nothing until a number is given.
    field.fill("")
    track = page.locator(".track")
    assert track.evaluate("node => node.className") == "track unset"
    track.click()
    assert field.input_value() == "50"
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    answered(page, 2)
    field.fill("100,0")
    field.press("Enter")
    page.get_by_text("3 of 6 answered").wait_for()
    assert asked.comes_to_hold("typist", ["73", "0", "100"])
    # Back: the number stands in the field, and a new one replaces it.
    page.wait_for_selector(READY)
    look_back(page)
    assert field.input_value() == "100"
    page.keyboard.type("99")
    assert field.input_value() == "99"
    page.keyboard.press("Enter")
    page.locator(".editing").wait_for(state="hidden")
    assert asked.comes_to_hold("typist", ["73", "0", "99"])


def test_keys_tick_and_untick_and_enter_submits(annotator, topics, axe):
    person = annotator("keys", topics)
    page = person.page
    assert page.locator(".option .name").all_inner_texts() == [
        "Billing", "A bug", "Praise", "None of these",
    ]  # fmt: skip
    axe(page, "several options")
    page.keyboard.press("Enter")
    assert page.locator(".notice").inner_text() == "Choose an answer first."
    person.press("3", "1")
    reload(page)
    assert ticked(page) == ["Billing", "Praise"]
    page.keyboard.press("4")  # none of these: alone
    assert ticked(page) == ["None of these"]
    page.keyboard.press("2")
    assert ticked(page) == ["A bug"]
    page.keyboard.press("2")  # nothing is ticked: no answer
    assert ticked(page) == []
    page.keyboard.press("Enter")
    assert topics.comes_to_hold("keys", [])
    person.press("3", "1", "Enter")
    answered(page, 1)
    assert ticked(page) == []
    person.press("4", "Enter")
    answered(page, 2)
    page.get_by_role("checkbox", name="A bug").check()
    page.get_by_role("checkbox", name="Praise").check()
    page.get_by_role("button", name="Submit and go on").click()
    answered(page, 3)
    assert topics.comes_to_hold("keys", ["billing;praise", "none", "bug;praise"])
    # Back to it: what was ticked is ticked, and may be changed.
    look_back(page)
    assert ticked(page) == ["A bug", "Praise"]
    person.press("1", "Enter")
    page.locator(".editing").wait_for(state="hidden")
    assert topics.comes_to_hold("keys", ["billing;praise", "none", "billing;bug;praise"])


ASKED = {
    "number": (["--scale", "0-100"], ["10", "90"]),
    "several": (["--options", "billing,bug,praise", "--several"], ["bug", "billing;praise"]),
}


@pytest.fixture
def decider(new_page, make_items, serve_study):
    """decider(kind) -> an expert's page, and what was decided in the study of one message on which
    two annotators disagree."""

    def opened(kind):
        ask, labels = ASKED[kind]
        folder = make_items([["response"], ["It crashed"]], "--question", "What is it?", *ask)
        with open_study(folder) as study:
            set_account(study.store, "chair", PASSWORD, "expert")
            desk = AnnotationDesk(study)
            for rater, label in zip(("ann", "ben"), labels, strict=True):
                assert submit(desk, rater, task_of(desk, rater), label) == "stored"
        server = serve_study(folder)
        page = new_page(f"{server.url}?lead=in")
        log_in(page, "chair")
        expect(page.get_by_text("1 to adjudicate.")).to_be_visible()
        return page, lambda: server.labels("adjudicator:chair")["label"].tolist()

    return opened


@pytest.mark.journey
def test_a_number_is_typed(decider):
    page, decided = decider("number")
    expect(page.get_by_text("Annotators chose: 10 (1); 90 (1)")).to_be_visible()
    page.get_by_role("button", name="Save decision").click()
    expect(page.get_by_role("alert")).to_have_text("Type a number.")
    field = page.get_by_label("A whole number from 0 to 100")
    field.fill("101")
    page.get_by_label("Your reason").fill("Half of it.")
    page.get_by_role("button", name="Save decision").click()
    expect(page.get_by_role("alert")).to_contain_text("not a whole number from 0 to 100")
    field.fill("50.0")
    field.press("Enter")
    expect(page.get_by_text("No. 1")).to_have_count(0)
    expect(page.get_by_text("1 to adjudicate.")).to_have_count(0)
    assert decided() == ["50"]


@pytest.mark.journey
def test_several_options_are_ticked(decider):
    page, decided = decider("several")
    expect(page.get_by_role("checkbox", name="billing chosen by 1")).to_be_visible()
    page.get_by_role("checkbox", name="praise chosen by 1").check()
    page.get_by_role("checkbox", name="bug chosen by 1").check()
    page.get_by_label("Your reason").fill("Both.")
    page.get_by_role("button", name="Save decision").click()
    expect(page.get_by_text("1 to adjudicate.")).to_have_count(0)
    assert decided() == ["bug;praise"]
