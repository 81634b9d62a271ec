"""The words that decided, texts as people know them, and looking back: the list of all earlier
answers, one's own flags, the pause and the end of a day.
"""

import json

import pytest
from playwright.sync_api import expect

from evenhand.rubrics.loading import parse_rubric
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.disagreements import raised_flags, settle_flag
from evenhand.study.store.store import answers_table
from harness.annotator import READY, Annotator, look_back, press_keys, reload
from harness.served import Served, holds
from harness.studies import SHORTER, work_through
from tests.annotate_app.conftest import LIGHT_AND_DARK

pytestmark = pytest.mark.browser

# Beyond the BMP, line ends of two characters, a character that is not seen.
SENTENCES = ["It \U0001f600 is so.", "Is it?", "\u202eNo\u202c, it is not.", "**Last** words."]


def text(number: int, side: str) -> str:
    one, two, three, four = SENTENCES
    return f"Unit {number}{side}.  {one} {two}\r\n\r\n{three}\n{four}\n" + "More follows. " * 200


@pytest.fixture(scope="module")
def make_asking(make_study):
    rubric = parse_rubric('evidence = "required"\n' + SHORTER, "shorter.toml")
    return lambda pairs, **settings: make_study(pairs, text, [rubric], **settings)


@pytest.fixture(scope="module")
def asking(make_asking, serve_study):
    return serve_study(make_asking(2, display="text"))


def marked(person: Annotator) -> list[str]:
    """What is marked in the texts, top to bottom, left to right."""
    return person.page.locator(".material mark").all_text_contents()


def quoted(person: Annotator) -> list[str]:
    return person.page.locator(".marks q").all_text_contents()


def stored(server, rater: str) -> dict[str, list[list[str]]]:
    """The words that the stored ranges cut out of the study's own texts, by answer, by rubric."""
    found: dict[str, list[list[str]]] = {}
    with open_study(server.folder) as study:
        table = answers_table(study.store)
        for row in table[table["rater_id"] == rater].to_dict("records"):
            values = study.values(study.rubrics[row["rubric"]], row["unit_id"])
            marks = json.loads(row["evidence"])
            cut = [values[each["text"]][each["start"] : each["end"]] for each in marks]
            found.setdefault(row["rubric"], []).append(cut)
    return found


@pytest.mark.parametrize("display", [pytest.param("text", marks=pytest.mark.thorough), "markdown"])
def test_a_block_is_labelled_and_marked_by_keyboard_alone(
    annotator, make_asking, serve_study, display, axe
):
    scheme = "light" if display == "text" else "dark"
    server = serve_study(make_asking(2, display=display))
    person = annotator(f"keys-{display}", server, color_scheme=scheme)
    page = person.page
    for done in (1, 2):
        person.press("c", "Enter")
        assert page.locator(".notice").inner_text().startswith("Mark the words that decided first")
        person.press(",")
        rendered = page.locator(".material .rendered")
        assert rendered.count() == 0  # while words are marked, texts are as they were written
        person.press("ArrowDown", "Enter", "ArrowDown", " ", "ArrowRight", "Enter")
        assert marked(person) == SENTENCES[:3]
        person.press("ArrowUp", "Enter")  # this one was not meant
        assert quoted(person) == [SENTENCES[0], SENTENCES[2]]
        axe(page, f"marking, {scheme}")
        page.locator(".response .text").first.evaluate("node => node.scrollTo(0, 0)")
        person.press("Escape")
        axe(page, f"marked, {scheme}")
        assert rendered.count() == (2 if display == "markdown" else 0)
        person.press("PageDown")  # scrolls again
        person.in_panel("panel.querySelector('.response .text').scrollTop > 100")
        person.go_on("Enter") if done == 1 else person.press("Enter")
    page.get_by_text("All done").wait_for()
    cut = [SENTENCES[0], SENTENCES[2]]
    assert stored(server, f"keys-{display}") == {"shorter": [cut, cut]}


@pytest.mark.thorough
def test_the_mouse_marks_what_it_selects(annotator, asking):
    person = annotator("mouse", asking)
    page = person.page
    response = page.locator(".response .text").last
    page.get_by_role("button", name="Mark words").click()
    assert page.locator(".here").count() == 1
    ((left, height), _) = response.evaluate(EDGES, ["Last", "Last"])
    page.mouse.dblclick(left + 5, height)
    person.in_panel("panel.querySelectorAll('.marks li').length === 1")
    assert quoted(person) == ["Last"]
    start, end = response.evaluate(EDGES, ["is so", "Is it"])
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()
    person.in_panel("panel.querySelectorAll('.marks li').length === 2")
    assert quoted(person) == ["is so. Is it", "Last"]
    assert "".join(marked(person)) == "is so. Is itLast"
    page.get_by_role("button", name="Remove the mark: Last").click()
    assert quoted(person) == ["is so. Is it"]
    person.press("Escape", "c", "Enter")
    page.locator(".count", has_text="1 of").wait_for()
    assert stored(asking, "mouse") == {"shorter": [["is so. Is it"]]}


EDGES = """
(node, words) => {
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const found = {};
  for (let text = walk.nextNode(); text; text = walk.nextNode()) {
    for (const word of words) {
      const at = text.data.indexOf(word);
      if (at < 0 || found[word]) continue;
      const range = document.createRange();
      range.setStart(text, at);
      range.setEnd(text, at + word.length);
      found[word] = range.getBoundingClientRect();
    }
  }
  const [first, last] = words.map((word) => found[word]);
  const middle = (box) => (box.top + box.bottom) / 2;
  return [[first.left + 1, middle(first)], [last.right - 1, middle(last)]];
}
"""


@pytest.mark.thorough
def test_a_mark_outlives_a_reload_and_a_look_back(annotator, asking):
    person = annotator("back", asking)
    page = person.page
    person.press("c", ",", "Enter", "Escape")
    (first,) = quoted(person)
    reload(page)
    assert quoted(person) == marked(person) == [first]
    person.press("Enter")
    page.locator(".count", has_text="1 of").wait_for()
    assert quoted(person) == []
    look_back(page)
    assert quoted(person) == marked(person) == [first]
    person.press("l", ",", "ArrowDown", "Enter", "Escape", "Enter")
    page.locator(".editing").wait_for(state="hidden")
    page.wait_for_selector(READY)
    assert stored(asking, "back") == {"shorter": [[first, SENTENCES[0]]]}
    # What was selected before is marked at once; a skip needs no marks.
    page.locator(".response .text").first.get_by_text("Unit").dblclick()
    person.press(",")
    (quote,) = quoted(person)
    assert quote in text(1, "a") + text(2, "b")
    assert quote.strip() == quote
    person.press("Escape", "-", "1")
    page.get_by_role("button", name="Skip", exact=True).last.click()
    page.get_by_text("All done").wait_for()
    assert stored(asking, "back") == {"shorter": [[first, SENTENCES[0]], []]}


@pytest.mark.thorough
def test_each_of_several_questions_has_its_own_marks(serve, annotator, tmp_path):
    rubrics = []
    for name, keys in (("one", "LRC"), ("two", "XYZ")):
        said = f'evidence = "required"\n{SHORTER}'.replace('"shorter"', f'"{name}"')
        for old, new in zip("LRC", keys, strict=True):
            said = said.replace(f'"{old}"', f'"{new}"')
        said = said.replace('title = "Length"', f'title = "{name.title()}"')
        rubrics.append(parse_rubric(said, f"{name}.toml"))
    server = serve(1, text, rubrics, screen="all", display="text")
    person = annotator("several", server)
    page = person.page
    title = page.locator("#evidence-title")
    person.press("c", "z", "ArrowLeft", ",", "z")  # an answer to the other question
    expect(title).to_contain_text("Two")
    assert page.locator(".here").count() == 0
    person.press("ArrowLeft", ",", "Enter", "Escape")
    expect(title).to_contain_text("One")
    first = quoted(person)
    person.press("Enter")
    assert page.locator(".notice").inner_text().startswith("Mark the words")
    expect(title).to_contain_text("Two")
    assert marked(person) == []
    person.press(",", "ArrowDown", "Enter", "Escape", "Enter")
    page.get_by_text("All done").wait_for()
    assert stored(server, "several") == {"one": [first], "two": [[SENTENCES[0]]]}


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
        return MARKDOWN.format(side=side, wide="a_word_that_is_long_" * 20) + "A line.\n\n" * 60

    return serve(2, text, display="markdown")


@pytest.mark.thorough
def test_markdown_is_drawn_and_a_key_shows_its_source(annotator, in_markdown, axe):
    person = annotator("reader", in_markdown)
    page = person.page
    response = page.locator(".response .text").first
    for part, words in SEEN.items():
        assert response.locator(part).first.inner_text().strip() == words, part
    assert "<b>raw</b>" in response.inner_text()
    assert response.locator("a, img, b").count() == 0
    for width, scheme in ((390, "dark"), (1440, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        axe(page, f"Markdown, {scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.keyboard.press("*")
    person.in_panel("!panel.querySelector('.text.rendered')")
    assert "#### Employment" in response.inner_text()
    page.get_by_role("button", name="Source", pressed=True).click()
    person.in_panel("panel.querySelectorAll('.text.rendered').length === 2")
    press_keys(page, "c", "Enter")
    page.locator(".count", has_text="1 of").wait_for()
    with open_study(in_markdown.folder) as study:
        answer = answers_table(study.store).set_index("rater_id").loc["reader"]
    assert (answer["display"], answer["evidence"]) == ("markdown", "[]")


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


@pytest.mark.parametrize("display", [pytest.param("text", marks=pytest.mark.thorough), "markdown"])
def test_what_cannot_be_seen_is_marked_and_how_scripts_are_written_is_left_alone(
    serve, annotator, display
):
    page = annotator("sees", serve(2, with_unseen, display=display)).page
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
        # Elsewhere they can be left out, and a line is broken all the same.
        page = annotator("plain", serve(2, with_unseen, show_controls=False)).page
        if page.locator(".empty").count():
            press_keys(page, "c", "Enter")
        plain = page.locator(".response .text", has_text="Response 2, side b")
        plain.wait_for()
        assert plain.text_content().endswith(LEGITIMATE)
        assert plain.evaluate("node => node.childElementCount") == 0
        return
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


ANSWERS = 70
ITEMS = ".past-list li"


@pytest.fixture(scope="module")
def long_ago(make_study, serve_study) -> Served:
    """A study in which `old` has given 70 answers; the others have given none."""
    folder = make_study(80)
    with open_study(folder) as study:
        work_through(AnnotationDesk(study), "old", ANSWERS, seconds=2.0, options=3)
    return serve_study(folder)


def listed(person: Annotator, count: int, found: str) -> None:
    """Wait until the list has so many lines, and says how many were found."""
    person.in_panel(f"panel.querySelectorAll('{ITEMS}').length === {count}")
    assert found in person.page.text_content(".past-found")


def test_all_answers_by_keyboard_from_the_key_to_the_change(annotator, long_ago, axe):
    person = annotator("old", long_ago)
    page, keys = person.page, person.page.keyboard
    present = page.text_content(".material")
    given = person.stored()
    keys.press("!")
    listed(person, 30, "70 answers")
    row = page.locator(ITEMS).first
    assert row.locator("time").get_attribute("datetime").startswith("20")
    assert row.locator(".past-answer").text_content() in ("Response A", "Response B", "Neither")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        axe(page, f"earlier answers, {scheme}")
    for count in (60, 70):  # they load as one scrolls
        page.locator(ITEMS).last.scroll_into_view_if_needed()
        listed(person, count, "70 answers")
    texts = page.locator(".past-number").all_text_contents()
    assert texts == [f"No. {n}" for n in range(70, 0, -1)]
    page.locator(".past-list").focus()
    person.press("ArrowDown", "ArrowDown", "ArrowUp", "ArrowDown")
    person.in_panel("panel.getRootNode().activeElement.textContent.includes('No. 69')")
    keys.press("Enter")
    person.in_panel("!panel.querySelector('.editing').hidden")
    unit, _ = person.unit()
    assert unit in given
    person.choose("C")
    person.go_on("Enter")
    person.in_panel("panel.querySelector('.editing').hidden")
    assert page.text_content(".material") == present
    assert holds(lambda: person.stored() == given | {unit: "C"})


def test_a_leads_answer_to_a_flag_reaches_whoever_raised_it_once(annotator, long_ago, axe):
    person = annotator("asked", long_ago, width=390, color_scheme="dark")
    keys, page = person.page.keyboard, person.page
    keys.press("+")
    page.get_by_role("radio", name="The question does not fit").check()
    page.get_by_label("Note").fill("two <b>questions</b> in one")
    page.get_by_role("button", name="Send the flag").click()
    person.page.locator(".flags .state[data-state=flag_stored]").wait_for()
    axe(page, "flagged")
    with open_study(long_ago.folder) as study:
        flag = next(each for each in raised_flags(study) if each.rater_id == "asked")
        settle_flag(study, flag.number, "for leads only", "lead", "Take the first of the two.")
    reload(page)
    told = page.locator(".told")
    assert "two <b>questions</b> in one”: Take the first of the two." in told.inner_text()
    assert "for leads only" not in page.content()
    told.get_by_role("button", name="OK").click()
    told.wait_for(state="hidden")
    reload(page)
    assert told.is_hidden()


RESTING = ".panel[data-phase=resting]"
MINUTES = 60_000


@pytest.fixture(scope="module")
def steady(make_session, serve_study) -> Served:
    """A study of small blocks that offers a pause after twenty minutes."""
    return serve_study(make_session(40, "[session]\npause_minutes = 20\n", pairs_per_block=8))


@pytest.fixture
def timed(annotator, new_context, steady):
    """timed(rater) -> a person in a browser whose clock is ours."""

    def come(rater: str) -> Annotator:
        context = new_context()
        context.clock.install()
        return annotator(rater, steady, context)

    return come


@pytest.fixture(scope="module")
def short_day(make_session, serve_study) -> Served:
    return serve_study(make_session(3, "[session]\nanswers_per_day = 2\n"))


@pytest.mark.thorough
def test_a_pause_is_offered_between_units_and_its_time_counts_for_none(timed, steady, axe):
    person = timed("rests")
    page = person.page
    for done in range(5):  # a unit every four minutes: at work all the time
        assert not page.locator(RESTING).count(), done
        page.clock.fast_forward(4 * MINUTES)
        page.keyboard.press("PageDown")
        person.choose("L")
        press_keys(page, "Enter", "c", "Enter", "c", "Enter")  # typed ahead: it answers nothing
        page.wait_for_function(OTHER, arg=len(person.given))
        person.wait_for_chip("saved")  # or the next minutes are those of a line that is down
    page.wait_for_selector(RESTING)
    assert "about 20 minutes" in page.text_content(".message")
    assert page.locator(".rail").is_hidden()
    press_keys(page, "c", "Enter", "1", "Enter", "Backspace", "+", "-", "Enter")
    assert page.locator(RESTING).count()  # what is typed ahead does not wave the offer away
    assert not page.locator(".sheet[open]").count()
    axe(page, "pause")
    page.reload()
    page.wait_for_selector(RESTING)  # it is offered still, and the unit behind it is not shown
    page.clock.fast_forward(30 * MINUTES)
    page.keyboard.press("Enter")
    page.wait_for_selector(READY)
    assert person.chosen() is None
    assert page.text_content(".pace").startswith("about ")
    page.clock.fast_forward(1_000)
    person.answer("R")  # and it is not offered again at once
    assert not page.locator(RESTING).count()
    rows = steady.labels("rests").sort_values("created_at")["seconds"]
    assert rows.iloc[-1] < 60
    assert rows.max() < 5 * 60
    assert person.all_stored()


@pytest.mark.thorough
@pytest.mark.parametrize(("mode", "width"), LIGHT_AND_DARK)
def test_a_day_ends_with_the_labels_safe_and_says_when_it_goes_on(
    annotator, new_context, short_day, axe, mode, width
):
    zone = {"timezone_id": "Europe/Berlin"}
    person = annotator(f"day-{mode}", short_day, width=width, color_scheme=mode, **zone)
    for _ in range(2):
        person.give("L")
        person.page.wait_for_function(OTHER, arg=len(person.given))
    said = person.page.locator(".message")
    said.get_by_text("Enough for today").wait_for()
    text = said.text_content()
    assert "stored" in text
    assert ("1:00" in text or "2:00" in text) and "{" not in text  # midnight in UTC, told in Berlin
    assert person.all_stored()
    axe(person.page, f"day's end, {mode}")
    person.page.reload()
    said.get_by_text("Enough for today").wait_for()


OTHER = """
(answered) => {
  const root = document.querySelector("[data-testid=stBidiComponentIsolated]")?.shadowRoot;
  const panel = root?.querySelector(".panel");
  return root?.querySelector(".count")?.textContent.startsWith(`${answered} of`)
    && ["choosing", "resting"].includes(panel.dataset.phase);
}
"""
