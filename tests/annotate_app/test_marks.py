"""The words that decided: marked by keyboard and by mouse, sent, kept, and asked for."""

import json
from typing import Any

import pytest

from evenhand.rubrics import load_rubric
from evenhand.study import open_study
from evenhand.study.store.logs.answers import answers_table
from harness.annotator import READY, Annotator, reload
from harness.studies import SHORTER
from tests.annotate_app.conftest import LIGHT_AND_DARK

pytestmark = pytest.mark.browser

# Beyond the BMP, line ends of two characters, a character that is not seen.
SENTENCES = ["It \U0001f600 is so.", "Is it?", "\u202eNo\u202c, it is not.", "**Last** words."]


def text(number: int, side: str) -> str:
    one, two, three, four = SENTENCES
    return f"Unit {number}{side}.  {one} {two}\r\n\r\n{three}\n{four}\n" + "More follows. " * 200


@pytest.fixture(scope="module")
def make_asking(make_study, tmp_path_factory):
    def make(pairs: int, how: str = "required", **settings: Any):
        file = tmp_path_factory.mktemp("rubric") / "shorter.toml"
        file.write_text(f'evidence = "{how}"\n' + SHORTER, "utf-8")
        return make_study(pairs, text, [load_rubric(file)], **{"display": "text"} | settings)

    return make


@pytest.fixture(scope="module")
def asking(make_asking, serve_study):
    return serve_study(make_asking(2))


@pytest.fixture(scope="module")
def asking_in_markdown(make_asking, serve_study):
    return serve_study(make_asking(2, display="markdown"))


def marked(person: Annotator) -> list[str]:
    """What is marked in the texts, top to bottom, left to right."""
    return person.page.locator(".material mark").all_text_contents()


def quoted(person: Annotator) -> list[str]:
    return person.page.locator(".marks q").all_text_contents()


def stored(server, rater: str) -> list[tuple[str, list[str]]]:
    """(unit, the words that the stored ranges cut out of the study's own texts) per answer."""
    found = []
    with open_study(server.folder) as study:
        table = answers_table(study.store)
        for row in table[table["rater_id"] == rater].to_dict("records"):
            values = study.values(study.rubrics["shorter"], row["unit_id"])
            marks = json.loads(row["evidence"])
            cut = [values[each["text"]][each["start"] : each["end"]] for each in marks]
            found.append((row["unit_id"], cut))
    return found


@pytest.mark.parametrize("display", [pytest.param("text", marks=pytest.mark.thorough), "markdown"])
def test_a_block_is_labelled_and_marked_by_keyboard_alone(annotator, request, display):
    server = request.getfixturevalue("asking" if display == "text" else "asking_in_markdown")
    person = annotator(f"keys-{display}", server)
    page = person.page
    for done in (1, 2):
        person.press("c", "Enter")
        notice = page.locator(".notice")
        assert notice.inner_text().startswith("Mark the words that decided first")
        person.press(",")
        rendered = page.locator(".material .rendered")
        assert rendered.count() == 0  # while words are marked, texts are as they were written
        person.press("ArrowDown", "Enter", "ArrowDown", " ", "ArrowRight", "Enter")
        assert marked(person) == SENTENCES[:3]
        person.press("ArrowUp", "Enter")  # this one was not meant
        assert quoted(person) == [SENTENCES[0], SENTENCES[2]]
        page.locator(".response .text").first.evaluate("node => node.scrollTo(0, 0)")
        person.press("Escape")
        assert rendered.count() == (2 if display == "markdown" else 0)
        person.press("PageDown")  # scrolls again
        person.in_panel("panel.querySelector('.response .text').scrollTop > 100")
        person.go_on("Enter") if done == 1 else person.press("Enter")
    page.get_by_text("All done").wait_for()
    answers = stored(server, f"keys-{display}")
    assert [cut for _, cut in answers] == [[SENTENCES[0], SENTENCES[2]]] * 2


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
    assert [cut for _, cut in stored(asking, "mouse")] == [["is so. Is it"]]


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
    person.press("Backspace")
    page.locator(".editing").wait_for()
    page.wait_for_selector(READY)
    assert quoted(person) == marked(person) == [first]
    person.press("l", ",", "ArrowDown", "Enter", "Escape", "Enter")
    page.locator(".editing").wait_for(state="hidden")
    page.wait_for_selector(READY)
    ((_, cut),) = stored(asking, "back")
    assert cut == [first, SENTENCES[0]]
    # What was selected before is marked at once; a skip needs no marks.
    page.locator(".response .text").first.get_by_text("Unit").dblclick()
    person.press(",")
    (quote,) = quoted(person)
    assert quote in text(1, "a") + text(2, "b")
    assert quote.strip() == quote
    person.press("Escape", "-", "1")
    page.get_by_role("button", name="Skip", exact=True).last.click()
    page.get_by_text("All done").wait_for()
    assert [cut for _, cut in stored(asking, "back")][1:] == [[]]


@pytest.mark.thorough
def test_what_is_typed_ahead_marks_or_is_forgotten_and_never_submits(
    annotator, make_asking, serve_study
):
    server = serve_study(make_asking(2, "optional"))
    person = annotator("ahead", server)
    page = person.page
    assert page.get_by_text("Which words decided? (optional)").is_visible()
    person.press("c", "Enter")
    page.locator(".count", has_text="1 of").wait_for()
    person.press("Backspace", ",", "Enter")
    page.locator(".here").wait_for()
    assert page.locator(".editing").is_visible()
    person.press("Escape", "Escape")
    page.locator(".editing").wait_for(state="hidden")
    assert [cut for _, cut in stored(server, "ahead")] == [[]]


@pytest.mark.thorough
def test_each_of_several_questions_has_its_own_marks(serve, annotator, tmp_path):
    rubrics = []
    for name, keys in (("one", "LRC"), ("two", "XYZ")):
        said = f'evidence = "required"\n{SHORTER}'.replace('"shorter"', f'"{name}"')
        for old, new in zip("LRC", keys, strict=True):
            said = said.replace(f'"{old}"', f'"{new}"')
        file = tmp_path / f"{name}.toml"
        file.write_text(said.replace('title = "Length"', f'title = "{name.title()}"'), "utf-8")
        rubrics.append(load_rubric(file))
    server = serve(1, text, rubrics, screen="all", display="text")
    person = annotator("several", server)
    page = person.page
    person.press("c", "z", "ArrowLeft", ",", "z")  # an answer to the other question
    assert page.locator("#evidence-title").inner_text().startswith("Two")
    assert page.locator(".here").count() == 0
    person.press("ArrowLeft", ",", "Enter", "Escape")
    assert page.locator("#evidence-title").inner_text().startswith("One")
    first = quoted(person)
    person.press("Enter")
    assert page.locator(".notice").inner_text().startswith("Mark the words")
    assert page.locator("#evidence-title").inner_text().startswith("Two")
    assert marked(person) == []
    person.press(",", "ArrowDown", "Enter", "Escape", "Enter")
    page.get_by_text("All done").wait_for()
    with open_study(server.folder) as study:
        table = answers_table(study.store).set_index("rubric")
        values = study.values(study.rubrics["one"], table.loc["one", "unit_id"])
    cut = {
        rubric: [values[m["text"]][m["start"] : m["end"]] for m in json.loads(cell)]
        for rubric, cell in table["evidence"].items()
    }
    assert cut == {"one": first, "two": [SENTENCES[0]]}


@pytest.mark.thorough
@pytest.mark.parametrize(("mode", "width"), LIGHT_AND_DARK)
def test_axe_finds_nothing_serious_while_words_are_marked(
    annotator, asking_in_markdown, axe, mode, width
):
    person = annotator(f"axe-{mode}", asking_in_markdown, width=width, color_scheme=mode)
    person.press("c", ",", "Enter", "ArrowDown")
    assert len(marked(person)) == 1
    axe(person.page, "marking")
    person.press("Escape")
    axe(person.page, "marked")
    assert person.page.evaluate("document.documentElement.scrollWidth") == width
