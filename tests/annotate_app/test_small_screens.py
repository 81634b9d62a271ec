"""On small screens, and at large zoom, which is the same: all is within reach, nothing is cut."""

import pytest
from playwright.sync_api import expect

from harness.annotator import READY, arrive, response_text

pytestmark = pytest.mark.browser

# CSS pixels: 200% of 1440x900 are 720x450.
LARGER = {
    "200% of 1440x900": (720, 450, False),
    "200% of 1920x1080": (960, 540, False),
    "400% of 1280x1024": (320, 256, False),
    "phone across": (844, 390, True),
}
SIZES = LARGER | {"phone upright": (390, 844, True)}
LINES_TO_JUDGE_BY = 5

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
    expect(shown).to_have_text(["The response on the right is shorter."])
    page.locator(".option").first.click()
    assert shown.all_text_contents() == ["The response on the left is shorter."]


def the_state_of_the_line_stays_in_view(page) -> None:
    chip = page.locator(".chip")
    for part in (".count", ".response .text >> nth=1", ".go", ".flag"):
        page.locator(part).evaluate("node => node.scrollIntoView({ block: 'end' })")
        (state,) = chip.evaluate_all(STAYING)
        assert state["inside"] and state["hit"], (part, state)


def jumps_lead_from_one_response_to_the_other(page) -> None:
    titles = page.locator(".response h2")
    for n in (1, 0, 1):
        page.locator(".jumps button").nth(n).click()
        assert titles.nth(n).bounding_box()["y"] < page.viewport_size["height"] / 2
        (title,) = titles.nth(n).evaluate_all(STAYING)
        assert title["inside"] and title["hit"], title


def a_notice_is_seen_where_it_is_given(page) -> None:
    page.locator(".response .text").first.evaluate("node => node.scrollIntoView()")
    page.keyboard.press("Enter")
    (notice,) = page.locator(".notice").evaluate_all(STAYING)
    assert notice["name"] == "Choose an answer first."
    assert notice["inside"] and notice["hit"], notice


def reached(page, selector: str) -> list[dict]:
    parts = page.locator(selector).locator("visible=true").evaluate_all(REACHED)
    assert parts, selector
    return parts


def test_the_bar_takes_a_second_row_before_it_hides_anything(serve, new_page):
    """All that it can have: a language, two drawn responses, a long code, in long words."""

    def drawn(number: int, side: str) -> str:
        return f"**{response_text(number, side)}**"

    served = serve(2, drawn, display="markdown", languages=["de", "es"])
    rater = "somebody-with-a-long-code"
    served.enter(rater)
    page = new_page(f"{served.url}?rater={rater}&lang=es")
    page.wait_for_selector(READY)
    for width in (1440, 1280, 1024, 768):
        page.set_viewport_size({"width": width, "height": 800})
        ways = reached(page, ".ways > *")
        assert len(ways) == 9
        assert all(one["inside"] and one["hit"] for one in ways), (width, ways)
