"""Texts as people know them: Markdown rendered, and nothing in them that cannot be seen."""

from itertools import pairwise

import pytest

from evenhand.study import open_study
from evenhand.study.store.logs.answers import answers_table
from harness.annotator import press_keys

pytestmark = pytest.mark.browser

MARKDOWN = """Response 1, side {side}.

## Wages

#### Employment

1. They *rise*
   - for **some**

| {wide} | Effect |
| --- | --: |
| `cell` | 1 |

```
{wide}
```

[words](https://example.org/a) ~~struck~~ <b>raw</b> ![chart](x.png)

"""
SEEN = {
    "h3": "Wages",
    "h4": "Employment",
    "ol > li > em": "rise",
    "ul > li > strong": "some",
    "td > code": "cell",
    "s": "struck",
    ".link": "words",
    ".address": "(https://example.org/a)",
    ".image": "[image: chart]",
}


@pytest.fixture(scope="module")
def in_markdown(serve):
    def text(number: int, side: str) -> str:
        wide = "a_word_that_is_long_" * 20
        return MARKDOWN.format(side=side, wide=wide) + "A line.\n\n" * 60

    return serve(2, text, display="markdown")


@pytest.mark.thorough
def test_markdown_is_drawn_and_a_key_shows_its_source(annotator, in_markdown):
    person = annotator("reader", in_markdown)
    page = person.page
    response = page.locator(".response .text").first
    for part, words in SEEN.items():
        assert response.locator(part).first.inner_text().strip() == words, part
    assert "<b>raw</b>" in response.inner_text()
    assert response.locator("a, img, b").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 1440
    page.keyboard.press("*")
    person.in_panel("!panel.querySelector('.text.rendered')")
    assert "#### Employment" in response.inner_text()
    page.get_by_role("button", name="Source", pressed=True).click()
    person.in_panel("panel.querySelectorAll('.text.rendered').length === 2")
    press_keys(page, "c", "Enter")
    page.locator(".count", has_text="1 of").wait_for()
    with open_study(in_markdown.folder) as study:
        answers = answers_table(study.store)
    assert answers.set_index("rater_id").loc["reader", "display"] == "markdown"
    assert answers.set_index("rater_id").loc["reader", "evidence"] == "[]"


@pytest.mark.thorough
def test_what_is_wide_scrolls_in_its_box_and_by_keyboard(annotator, in_markdown):
    person = annotator("wide", in_markdown)
    page = person.page
    boxes = page.locator(".response .wide[tabindex]")
    person.in_panel("panel.querySelectorAll('.wide[tabindex]').length === 4")
    for name in ("Table", "Code"):
        box = page.get_by_role("region", name=name).first
        box.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("box => box.scrollLeft > 0", arg=box.element_handle())
    assert boxes.count() == 4
    press_keys(page, "Escape", "PageDown")
    texts = page.locator(".response .text")
    left, right = texts.evaluate_all("nodes => nodes.map(node => Math.round(node.scrollTop))")
    assert left == right > 200
    page.keyboard.press("=")
    texts.first.evaluate("node => node.scrollTo(0, 0)")
    person.in_panel("[...panel.querySelectorAll('.response .text')].every(t => t.scrollTop === 0)")


@pytest.mark.thorough
@pytest.mark.parametrize(("mode", "width"), [("light", 1440), ("dark", 390)])
def test_axe_finds_nothing_serious_in_markdown(annotator, in_markdown, axe, mode, width):
    person = annotator(f"axe-{mode}", in_markdown, width=width, color_scheme=mode)
    axe(person.page, "markdown")
    levels = person.page.locator(".panel :is(h1, h2, h3, h4, h5, h6)").evaluate_all(
        "nodes => nodes.map(node => Number(node.tagName[1]))"
    )
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert person.page.evaluate("document.documentElement.scrollWidth") == width
    person.page.keyboard.press("*")
    axe(person.page, "source")


UNSEEN = {
    "\u200b": "zero-width space",
    "\u202e": "right-to-left override",
    "\u2066": "left-to-right isolate",
    "\ufeff": "zero-width no-break space",
    "\u200f": "right-to-left mark",
    "\x07": "control character U+0007",
    "\x85": "control character U+0085",
    "\U000e0068\U000e0069": "hidden text in tag characters: hi",
    "\u200b\u200b\u200b": "zero-width space, 3 times",
}
LEGITIMATE = (
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 "  # Persian with a non-joiner
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f9d1\U0001f3fd\u200d\U0001f680 "  # families
    "\u0915\u094d\u200d\u0937 "  # Devanagari
    "\u1780\u200b\u1781 "  # Khmer
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"  # England's flag
)


LINES = """
node => [node.previousSibling, node.nextSibling].map((text) => {
  const range = document.createRange();
  range.selectNodeContents(text);
  return range.getBoundingClientRect().top;
})
"""


def with_unseen(number: int, side: str) -> str:
    if side == "b":
        return "" if number == 1 else f"Response {number}, side b.\n{LEGITIMATE}"
    return "Response 1, side a.\rNext\r\nlast\n" + "".join(f"x{each}y" for each in UNSEEN)


@pytest.mark.thorough
def test_how_scripts_and_emoji_are_written_is_left_alone_and_marks_can_be_left_out(
    annotator, serve
):
    person = annotator("writes", serve(2, with_unseen))
    if person.page.locator(".empty").count():
        person.go_on("c", "Enter")
    plain = person.page.locator(".response .text", has_text="Response 2, side b")
    assert plain.text_content().endswith(LEGITIMATE)
    assert plain.evaluate("node => node.childElementCount") == 0
    server = serve(1, with_unseen, show_controls=False)
    odd = annotator("plain", server).page.locator(".response .text", has_text="side a")
    assert odd.locator(".control").count() == 0
    assert odd.locator(".return").count() == 1  # a line is broken all the same


@pytest.mark.parametrize("display", [pytest.param("text", marks=pytest.mark.thorough), "markdown"])
def test_what_cannot_be_seen_is_marked(serve, annotator, display):
    server = serve(2, with_unseen, display=display)
    page = annotator("sees", server).page
    if page.locator(".empty").count() == 0:  # this item or the next
        press_keys(page, "c", "Enter")
    page.get_by_text("(empty response)").wait_for()
    odd = page.locator(".response .text", has_text="Response 1, side a")
    marks = odd.locator(".control")
    assert marks.evaluate_all("nodes => nodes.map(node => node.title)") == list(UNSEEN.values())
    assert odd.get_by_role("img", name="right-to-left override").is_visible()
    assert marks.first.bounding_box()["width"] > 10
    if display == "text":
        assert odd.text_content() == with_unseen(1, "a")  # counting finds all where it was
        above, below = odd.locator(".return").evaluate(LINES)
        assert below > above + 10
    else:
        assert odd.locator("br").count() == 3
        page.keyboard.press("*")
        assert odd.text_content() == with_unseen(1, "a")


def test_a_text_that_runs_from_the_right_has_one_edge_and_formulas_are_typeset(serve, annotator):
    def text(number: int, side: str) -> str:
        words = "وهو يحتوي على عدة فقرات " * 9
        parts = ("# قانون", words, f"- {words}\n- so", "| أ | b |\n| - | - |\n| 1 | c |")
        return "\n\n".join((*parts, r"$\frac{1}{2}$ \(\href{javascript:x}{y}\)"))

    page = annotator("from-the-right", serve(1, text, display="markdown")).page
    drawn = page.locator(".response .text").first
    edge = "node => Math.round(node.getBoundingClientRect().right)"
    edges = {drawn.locator(f"> {part}").first.evaluate(edge) for part in ("h3", "p", "ul", ".wide")}
    assert edges == {drawn.locator("table").evaluate(edge)}
    drawn.locator("mfrac").wait_for()
    assert drawn.locator("a, [href]").count() == 0
    assert "href{javascript" in drawn.text_content()  # what cannot be typeset is shown as written
    page.keyboard.press("*")
    assert drawn.text_content() == text(1, "a")


def test_code_in_markdown_is_coloured_and_can_be_read(serve, annotator, new_context, axe):
    def code(number: int, side: str) -> str:
        return "```python\ndef f():\n    return 'a' + 1.5  # of it\n```"

    server = serve(1, code, display="markdown")
    for scheme in ("dark", "light"):
        page = annotator(f"code-{scheme}", server, new_context(color_scheme=scheme)).page
        assert page.locator(".is-keyword").first.text_content() == "def"
        axe(page, scheme)
