"""What an annotator sees, and what nobody must: the page around the work, in a real browser."""

import re
from urllib.parse import urlsplit

import numpy as np
import pytest
import sqlalchemy as sa

from evenhand.annotate_app.languages import ENGLISH
from evenhand.rubrics import load_rubric
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.store.schema import claims, session_events
from harness.annotator import READY, arrive, press_keys
from harness.served import Served, holds
from harness.studies import SHORTER, submit, task_of
from tests.annotate_app.conftest import LIGHT_AND_DARK
from tests.annotate_app.participants import frames_of

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>window.pwned = 1</script><style>.panel { display: none }</style>",
    '<img src="http://192.0.2.1/x.png" onerror="window.pwned = 2"> <b>bold</b> <a href="/">a</a>',
    "![beacon](http://192.0.2.1/beacon.png) [link](javascript:alert(1)) **bold** ~~struck~~",
    "It costs $5 to $10, $x^2$, $$\\int_0^1 x$$, \\(y\\)",
    ":red[x] :rocket: :material/rule: :violet-badge[b] # heading\n# heading\n\n- a list\n    code",
    "\u202eright to left override \u2066isolate, no end, \u05e2\u05d1\u05e8\u05d9\u05ea, \u200f.",
    "</div></section></script>{{ braces }} {title} &lt;escaped&gt; &amp;   three spaces",
    "one\n\n\n\nfour lines down\ttab",
    "",
    "zero\u200bwidth\u200d\ufeff, soft\u00ad, \u061c\u200e\u200f, \u202a\u202b\u202c\u202d\u2069",
    "> " * 3000 + "deep" + "\n\n" + "|a" * 900 + "|\n" + "|-" * 900 + "|\n",
    '```js"onmouseover="alert(1)\n<img src=x onerror=alert(2)>\n```\n[x](http://192.0.2.1/y "t")'
    "\n\n| <b>a</b> | ![i](http://192.0.2.1/z.png) |\n|-|-|\n| <http://192.0.2.1> | `<i>` |\n"
    "\n3. <svg onload=alert(3)>\n\n[ref]: javascript:alert(4)\n[ref] <javascript:alert(5)>",
    "x" * 200_000,
    "word " * 40_000 + "\n<style>* { color: red }</style>",
]


def hostile(number: int, side: str) -> str:
    place = 2 * (number - 1) + (side == "b")
    return f"Unit {number}{side}\n" + HOSTILE[place]


# What may stand in a text, and with which attributes.
DRAWN = {
    "SPAN", "P", "H3", "H4", "H5", "H6", "UL", "OL", "LI", "BLOCKQUOTE", "TABLE", "THEAD", "TBODY",
    "TR", "TH", "TD", "EM", "STRONG", "S", "PRE", "CODE", "HR", "BR", "DIV",
}  # fmt: skip
ATTRIBUTES = {
    "class", "dir", "start", "title", "role", "tabindex", "aria-label", "data-mark", "data-name",
}  # fmt: skip
PARTS = """
nodes => nodes.flatMap(node => [...node.querySelectorAll(":not(math, math *)")].map(part =>
  [part.tagName, [...part.attributes].map(attribute => attribute.name)]))
"""


@pytest.mark.parametrize("display", [pytest.param("text", marks=pytest.mark.thorough), "markdown"])
def test_responses_are_shown_as_text_and_nothing_leaves(serve, annotator, new_context, display):
    server = serve(len(HOSTILE) // 2, response=hostile, display=display)
    context = new_context()
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    context.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    person = annotator("hostile", server, context)
    shown = []
    kinds: set[str] = set()
    page = person.page
    for _ in range(len(HOSTILE) // 2):
        texts = page.locator(".material .text")
        parts = texts.evaluate_all(PARTS)
        kinds.update(tag for tag, _ in parts)
        assert {name for _, names in parts for name in names} <= ATTRIBUTES
        if display == "markdown":
            page.keyboard.press("*")  # its source
            if page.locator(".text.rendered").count():
                person.in_panel("!panel.querySelector('.text.rendered')")
        _, left, _, right = person.texts()
        shown += [left, right]
        # As their source the texts hold nothing but marks for what cannot be seen.
        assert {tag for tag, _ in texts.evaluate_all(PARTS)} <= {"SPAN"}
        assert page.locator(".panel").is_visible()
        # However long or odd the texts are, the question stays where it is and in its colours.
        assert page.evaluate("document.documentElement.scrollWidth") == 1440
        rail = page.locator(".rail").bounding_box()
        assert rail is not None
        assert rail["x"] + rail["width"] == 1440
        assert rail["y"] + rail["height"] == 900
        assert _contrast(page, "#question-0") >= 4.5
        person.go_on("c", "Enter")
    expected = [hostile(n, side) for n in range(1, len(HOSTILE) // 2 + 1) for side in "ab"]
    assert sorted(shown) == sorted(expected)
    assert kinds <= (DRAWN if display == "markdown" else {"SPAN"})
    assert ("TABLE" in kinds) == (display == "markdown")
    assert person.page.evaluate("window.pwned") is None
    assert len(asked) > 10
    hosts = {urlsplit(url).hostname for url in asked if not url.startswith(("data:", "blob:"))}
    assert hosts == {"127.0.0.1"}


MARKUP = "<img src='http://192.0.2.1/x.png' onerror='window.pwned = 3'><u>under</u>"


@pytest.mark.thorough
def test_texts_of_the_rubric_are_shown_as_text_wherever_they_stand(
    serve, annotator, new_context, tmp_path
):
    texts = re.findall(r'"([A-Z][^"]+ [^"]+)"', SHORTER)  # of a person's words, not keys
    assert len(texts) == 7
    text = SHORTER
    for n, known in enumerate(texts):
        text = text.replace(f'"{known}"', f'"{MARKUP} {n}"')
    file = tmp_path / "hostile.toml"
    file.write_text(text, "utf-8")
    server = serve(2, rubrics=[load_rubric(file)], rationale=True)
    context = new_context()
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = annotator("markup", server, context).page
    page.locator("#rationale").fill(MARKUP)
    page.locator(".option").first.click()
    page.locator(".go").click()
    page.locator(".count", has_text="1 of").wait_for()
    page.get_by_role("button", name="Earlier answers").click()
    page.locator(".past").first.wait_for()
    shown = page.locator(".panel").text_content()
    assert all(f"{MARKUP} {n}" in shown for n in range(len(texts)))
    assert page.locator(".past", has_text=MARKUP).count() == 1
    assert page.locator(".panel img, .panel u").count() == 0
    press_keys(page, "Escape", "Backspace")
    page.locator(".editing").wait_for()
    assert page.locator("#rationale").input_value() == MARKUP
    assert page.locator(".panel img, .panel u").count() == 0
    assert page.evaluate("window.pwned") is None
    assert not [url for url in asked if "192.0.2.1" in url]


GRADE = "secretgrade"
OTHER = "secret-rater"


@pytest.fixture(scope="module")
def rated(make_study, serve_study):
    """A study with hidden repeats that a grader and another person have rated already."""
    folder = make_study(12, repeat_share=0.5, repeat_gap=3, rationale=True, confidence=True)
    with open_study(folder) as study:
        units = study.rubric_units(study.rubrics["shorter"])
        study.store.add_grades(
            GradeAttempt(
                rater_id="secret-grader", rubric="shorter", unit_id=unit, rubric_hash="h",
                label="L", p_positive=0.123456, raw=GRADE,
            )
            for unit in units
        )  # fmt: skip
        desk = AnnotationDesk(study)
        submit(desk, OTHER, task_of(desk, OTHER), "L", rationale=GRADE)
    return serve_study(folder)


def test_nothing_tells_subject_unit_order_repeat_grade_or_others(new_context, rated):
    context = new_context()
    page = context.new_page()
    frames, urls = frames_of(page), []
    page.on("request", lambda request: urls.append(request.url))
    arrive(page, rated, "blind")
    seen: list[str] = []
    for done in range(1, 9):
        panel = page.locator(".panel").evaluate("node => node.outerHTML")
        kept = page.evaluate("JSON.stringify(localStorage)")
        seen += [page.content(), panel, kept, page.url]
        page.wait_for_selector(READY)
        press_keys(page, "l", "Enter")
        page.locator(".count", has_text=f"{done} of").wait_for()
    page.keyboard.press("Backspace")
    page.locator(".editing").wait_for()
    page.get_by_role("button", name="Earlier answers").click()
    page.locator(".past").first.wait_for()
    seen.append(page.locator(".panel").evaluate("node => node.outerHTML"))
    rows = rated.labels("blind")
    assert set(rows["draw"]) == {0, 1}  # a repeat was among them
    everything = b"".join(frames).decode("utf-8", "replace") + "".join(seen) + "".join(urls)
    assert re.search(r"Response \d+, side ", everything)  # the listening works
    assert everything.count('"looked"') > 8
    secrets = (
        "secret", r"p\d{4}\b", r"\border\b\W{1,3}(ab|ba)", "unit_id", r"\bdraws?\b", "repeat_share",
        r"0\.123456", "agreement", "subject", r"\bgrade",
    )  # fmt: skip
    # The rubric's own words and the page's style sheet may say some of it: they say none here.
    for secret in secrets:
        found = re.search(secret, everything)
        assert not found, everything[max(found.start() - 80, 0) : found.end() + 80]
    assert str(rated.folder) not in everything


def begun(server: Served) -> int:
    """How many events and claims the study holds."""
    with open_study(server.folder) as study, study.store.read() as connection:
        tables = (session_events, claims)
        return sum(len(connection.execute(sa.select(table)).all()) for table in tables)


@pytest.mark.journey
def test_from_the_rater_code_to_the_end(new_page, mortal):
    before = begun(mortal)
    page = new_page(f"{mortal.url}?rater=no%20such%20code!")
    complaint = page.get_by_role("alert")
    complaint.wait_for()
    page.goto(mortal.url)
    code = page.get_by_label("Annotator code")
    page.get_by_role("button", name="Start").click()
    complaint.filter(has_text=ENGLISH.say("entry.empty")).wait_for()
    code.fill("<b>x</b>")
    code.press("Enter")
    complaint.filter(has_text="annotator code is 1 to 64 letters").wait_for()
    code.fill("anna")
    page.get_by_role("button", name="Start").click()
    unknown = page.get_by_text("Nothing has been answered under this code yet")
    unknown.wait_for()
    assert begun(mortal) == before  # nothing is stored before the question is answered
    page.reload()
    unknown.wait_for()
    page.get_by_role("button", name="Change the code").click()
    code.wait_for()
    assert code.input_value() == "anna"  # to be mended, not typed anew
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Go on with this code").click()
    page.wait_for_selector(READY)
    assert page.url.endswith("?rater=anna")
    page.reload()
    for done in ("1 of 2", "2 of 2"):
        page.wait_for_selector(READY)
        assert not unknown.is_visible()
        press_keys(page, "1", "Enter")
        page.get_by_text(f"{done} answered").wait_for()
    page.get_by_text("All done").wait_for()
    assert holds(lambda: len(mortal.labels("anna")) == 2)
    page.reload()
    page.get_by_text("All done").wait_for()


@pytest.mark.parametrize(("mode", "width"), LIGHT_AND_DARK)
@pytest.mark.journey
def test_axe_finds_nothing_serious(new_context, rated, axe, mode, width):
    context = new_context(width=width, color_scheme=mode)
    page = context.new_page()
    page.goto(rated.url)
    page.get_by_label("Annotator code").wait_for()
    axe(page, "entry")
    page.goto(f"{rated.url}?rater=axe-{mode}-{width}")
    page.get_by_text("Nothing has been answered under this code yet").wait_for()
    axe(page, "new code")
    page.get_by_role("button", name="Go on with this code").click()
    page.wait_for_selector(READY)
    axe(page, "start")
    page.keyboard.press("l")
    axe(page, "chosen")
    page.keyboard.press("Enter")
    page.locator(".count", has_text="1 of").wait_for()
    page.keyboard.press("Backspace")
    page.locator(".editing").wait_for()
    axe(page, "changing")
    for key in ("-", "?"):
        page.keyboard.press(key)
        page.locator(".sheet[open]").wait_for()
        axe(page, f"dialog {key}")
        page.keyboard.press("Escape")


@pytest.mark.parametrize(
    ("width", "mode"),
    [
        (0, "light"),
        *(
            pytest.param(*each, marks=pytest.mark.thorough)
            for each in ((0, "dark"), (390, "light"))
        ),
        (390, "dark"),
    ],
)
def test_everything_needed_is_in_view(new_context, served, mode, width):
    page = new_context(width=width, color_scheme=mode).new_page()
    arrive(page, served, "look")
    width, height = page.viewport_size["width"], page.viewport_size["height"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for part in (".count", ".chip", "#question-0", ".options", ".go", ".response .text >> nth=0"):
        box = page.locator(part).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert 0 <= box["y"] < height - 20
    left, right = (page.locator(".side").nth(n).bounding_box() for n in (0, 1))
    side_by_side = left["y"] == right["y"]
    assert side_by_side == (width > 700)
    for chrome in ("stToolbar", "stAppDeployButton", "stHeader"):
        assert not page.get_by_test_id(chrome).first.is_visible()
    texts = (".response .text", ".name", ".description", ".count", ".chip", "#question-0", ".go")
    for part in texts:
        assert _contrast(page, part) >= 4.5, part
    page.keyboard.press("c")
    for part in (".option:has(:checked) .description", ".go[aria-disabled=false]"):
        assert _contrast(page, part) >= 4.5, part


# WCAG 2.2, contrast of a text with the first opaque background behind it.
_COLOURS = """
(node) => {
  const paint = (colour) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const pen = canvas.getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  let behind = node;
  while (paint(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
  return [getComputedStyle(node).color, getComputedStyle(behind).backgroundColor].map(paint);
}
"""


def _contrast(page, selector: str) -> float:
    colours = page.locator(selector).first.evaluate(_COLOURS)
    channels = np.array([colour[:3] for colour in colours]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    dark, light = sorted(linear @ (0.2126, 0.7152, 0.0722))
    return (light + 0.05) / (dark + 0.05)
