"""What an annotator sees, in any language, and what nobody must: the page around the work."""

import re
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from playwright.sync_api import expect

import evenhand
from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.payload import panel_path
from evenhand.reporting.exporting import exported_ratings
from evenhand.rubrics import load_rubric
from evenhand.rubrics.loading import parse_rubric
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.store.schema import claims, session_events
from harness.annotator import READY, arrive, go_on, look_back, press_keys
from harness.served import Served, holds
from harness.studies import SHORTER, submit, task_of
from tests.annotate_app.conftest import LIGHT_AND_DARK
from tests.annotate_app.leading import frames_of
from tests.annotate_app.test_drawing import TAGS

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
    return f"Unit {number}{side}\n" + HOSTILE[2 * (number - 1) + (side == "b")]


# What may stand in a text, and with which attributes.
DRAWN = {tag.upper() for tag in TAGS}
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
    shown, kinds = list[str](), set[str]()
    page = person.page
    question = page.locator("#question-0")
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
        left, right = (page.locator(".side").nth(n).bounding_box() for n in (0, 1))
        assert left["y"] == right["y"]
        rail = page.locator(".rail").bounding_box()
        assert (rail["x"] + rail["width"], rail["y"] + rail["height"]) == (1440, 900)
        colour = question.evaluate("node => getComputedStyle(node).color")
        assert colour == page.locator(".panel").evaluate("node => getComputedStyle(node).color")
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
def test_texts_of_the_rubric_are_shown_as_text_wherever_they_stand(serve, annotator, new_context):
    texts = re.findall(r'"([A-Z][^"]+ [^"]+)"', SHORTER)  # of a person's words, not keys
    assert len(texts) == 7
    text = SHORTER
    for n, known in enumerate(texts):
        text = text.replace(f'"{known}"', f'"{MARKUP} {n}"')
    server = serve(2, rubrics=[parse_rubric(text, "hostile.toml")], rationale=True)
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
    folder = make_study(12, repeat_share=0.5, repeat_gap=3, rationale=True, confidence=True)
    with open_study(folder) as study:
        study.store.add_grades(
            GradeAttempt(
                rater_id="secret-grader", rubric="shorter", unit_id=unit, rubric_hash="h",
                label="L", p_positive=0.123456, raw=GRADE,
            )
            for unit in study.rubric_units(study.rubrics["shorter"])
        )  # fmt: skip
        desk = AnnotationDesk(study)
        submit(desk, OTHER, task_of(desk, OTHER), "L", rationale=GRADE)
    return serve_study(folder)


def test_nothing_tells_subject_unit_order_repeat_grade_or_others(new_context, rated):
    page = new_context().new_page()
    frames, urls = frames_of(page), []
    page.on("request", lambda request: urls.append(request.url))
    arrive(page, rated, "blind")
    seen: list[str] = []
    for done in range(1, 9):
        panel = page.locator(".panel").evaluate("node => node.outerHTML")
        seen += [page.content(), panel, page.evaluate("JSON.stringify(localStorage)"), page.url]
        page.wait_for_selector(READY)
        press_keys(page, "l", "Enter")
        page.locator(".count", has_text=f"{done} of").wait_for()
    look_back(page)
    page.get_by_role("button", name="Earlier answers").click()
    page.locator(".past").first.wait_for()
    seen.append(page.locator(".panel").evaluate("node => node.outerHTML"))
    assert set(rated.labels("blind")["draw"]) == {0, 1}  # a repeat was among them
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
    page = new_context(width=width, color_scheme=mode).new_page()
    page.goto(rated.url)
    page.get_by_label("Annotator code").wait_for()
    assert page.locator(".evenhand-titles").inner_text() == "Length"
    axe(page, "entry")
    page.goto(f"{rated.url}?rater=axe-{mode}-{width}")
    page.get_by_text("Nothing has been answered under this code yet").wait_for()
    axe(page, "new code")
    page.get_by_role("button", name="Go on with this code").click()
    page.wait_for_selector(READY)
    axe(page, "start")
    for chrome in ("stToolbar", "stAppDeployButton", "stHeader"):
        assert not page.get_by_test_id(chrome).first.is_visible()
    page.keyboard.press("l")
    axe(page, "chosen")
    page.keyboard.press("Enter")
    page.locator(".count", has_text="1 of").wait_for()
    look_back(page)
    axe(page, "changing")
    for key in ("-", "?"):
        page.keyboard.press(key)
        page.locator(".sheet[open]").wait_for()
        axe(page, f"dialog {key}")
        page.keyboard.press("Escape")


@pytest.mark.thorough
def test_nothing_tells_of_the_study_or_of_errors(new_context, served):
    page = new_context().new_page()
    frames = frames_of(page)
    urls: set[str] = set()
    page.on("request", lambda request: urls.add(request.url))
    arrive(page, served, "nosy")
    go_on(page, "1", "Enter")
    page.goto(f"{served.url}?lead=x")
    page.get_by_role("textbox", name="Password").wait_for()
    heard = b"".join(frames)
    assert b"Response " in heard  # the listening works
    # Not Streamlit's own scripts, which carry the version that they were built as.
    ours = {url for url in urls if re.match(rf"{served.url}(?!static/)", url)}
    for url in [*ours, served.url + "nowhere"]:
        answer = page.request.get(url)
        heard += str(answer.headers).encode() + answer.body()
    assert any(panel_path() in url for url in ours)
    # Streamlit's messages name its script, its version and Python's: see docs/security.md.
    for secret in (str(served.folder), str(served.home), evenhand.__version__):
        at = heard.find(secret.encode())
        assert at < 0, heard[max(at - 80, 0) : at + 80]


LANG = "document.documentElement.lang"
SESSION = """
[session]
instructions = "Read both responses."

[consent]
text = "You may stop at any time."

[background]
"""


@pytest.fixture(scope="module")
def polyglot(make_study, serve_study):
    """A study in English that offers German and Spanish, with a session before it."""
    rubrics = [load_rubric("even-handedness")]
    folder = make_study(4, rubrics=rubrics, languages=["de", "es"], confidence=True)
    (folder / "consent.de.md").write_text("Sie können jederzeit aufhören.", "utf-8")
    with (folder / "study.toml").open("a", encoding="utf-8") as file:
        file.write(SESSION)
    return serve_study(folder)


def press_until(page, key: str, selector: str) -> None:
    for _ in range(20):
        page.keyboard.press(key)
        inside = "(s) => { const host = document.activeElement; "
        inside += "return Boolean((host.shadowRoot?.activeElement ?? host).matches?.(s)); }"
        if page.evaluate(inside, selector):
            return
    pytest.fail(f"{selector} cannot be reached by {key}")


@pytest.mark.thorough
def test_a_whole_session_by_keyboard_in_german(new_context, polyglot, axe):
    page = new_context(locale="de-DE").new_page()  # the browser says so; nobody chose
    page.goto(polyglot.url)
    page.get_by_role("heading", name="Texte annotieren").wait_for()
    page.wait_for_function(f"{LANG} === 'de'")
    expect(page).to_have_title("Annotation von Texten")
    page.get_by_label("Ihr Code").focus()
    page.keyboard.type("zoe")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Ist das Ihr Code?").wait_for()
    axe(page, "new code")
    page.get_by_role("button", name="Mit diesem Code beginnen").press("Enter")
    page.get_by_role("heading", name="Bevor es losgeht").wait_for()
    assert page.locator("[lang=en]", has_text="Read both responses.").count() == 1
    press_until(page, "Tab", "button")
    page.keyboard.press("Enter")
    page.get_by_text("Sie können jederzeit aufhören.").wait_for()
    page.get_by_role("button", name="Ich willige ein und möchte teilnehmen").press("Enter")
    page.get_by_text("Wie alt sind Sie?").wait_for()
    axe(page, "background")
    page.get_by_role("button", name="Diese Fragen überspringen").press("Enter")
    page.locator(READY).wait_for()
    assert page.locator(".ask h2").first.inner_text().startswith("Hat der Assistent")
    assert page.locator(".chip").inner_text() == "Gespeichert"
    axe(page, "unit")
    for state, key in (("keys", "?"), ("skip", "-"), ("flag", "+")):
        page.keyboard.press(key)
        page.locator("dialog[open]").wait_for()
        axe(page, state)
        page.keyboard.press("Escape")
        page.locator("dialog[open]").wait_for(state="detached")
    for _ in range(2):
        go_on(page, "c", "0", "Enter")
    # Another language in the middle of a unit: what was chosen stays, and is not lost by a reload.
    page.keyboard.press("a")
    press_until(page, "Shift+Tab", ".language")
    page.keyboard.press("ArrowDown")
    page.get_by_role("heading", name="¿Trató el asistente").wait_for()
    page.wait_for_function(f"{LANG} === 'es'")
    assert page.locator(".option input:checked").get_attribute("value") == "A"
    assert page.locator(".chip").inner_text() == "Guardado"
    go_on(page, "Enter")
    page.reload()
    page.get_by_role("heading", name="¿Trató el asistente").wait_for()
    page.locator(READY).wait_for()
    press_keys(page, "b", "Enter")
    page.get_by_text("Todo terminado").wait_for()
    axe(page, "end")
    with open_study(polyglot.folder) as study:
        rubric = study.rubrics["even-handedness"]
        rows = exported_ratings(study)
    rows = rows[rows["rater_id"] == "zoe"]
    languages = ["de", "de", "es", "es"]
    assert rows["page_language"].tolist() == languages
    assert rows["shown_hash"].tolist() == [rubric.in_language(code).hash for code in languages]
    assert set(rows["rubric_hash"]) == {rubric.hash}


@pytest.mark.thorough
def test_a_link_and_the_page_choose_and_the_browser_remembers(new_context, polyglot):
    context = new_context(locale="fr-FR")
    page = context.new_page()
    page.goto(polyglot.url)
    page.get_by_role("heading", name="Annotation").wait_for()  # neither offered: the study's own
    page.wait_for_function(f"{LANG} === 'en'")
    page.goto(f"{polyglot.url}?lang=de")
    page.get_by_role("heading", name="Texte annotieren").wait_for()
    page.wait_for_url(polyglot.url)
    page = context.new_page()
    page.goto(polyglot.url)
    page.get_by_role("heading", name="Texte annotieren").wait_for()
    page.get_by_label("Sprache").select_option("es")
    page.get_by_label("Su código").wait_for()
    page.get_by_label("Su código").fill("a b")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="Un código tiene de 1 a 64 letras").wait_for()
    page.goto(f"{polyglot.url}?lang=xx")
    page.get_by_label("Su código").wait_for()
    page.goto(f"{polyglot.url}?lead=in")
    page.get_by_role("heading", name="Leading a study").wait_for()
    assert page.evaluate(LANG) == "en"
