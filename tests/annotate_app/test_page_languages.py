"""The page in the reader's language: chosen, remembered, and recorded with every label."""

import pytest
from playwright.sync_api import expect

from evenhand.reporting.exporting import exported_ratings
from evenhand.rubrics import load_rubric
from evenhand.study import open_study
from harness.annotator import READY, go_on, press_keys

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

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
    """Reach a part of the panel by this key alone."""
    for _ in range(20):
        page.keyboard.press(key)
        inside = "(s) => { const host = document.activeElement; "
        inside += "return Boolean((host.shadowRoot?.activeElement ?? host).matches?.(s)); }"
        if page.evaluate(inside, selector):
            return
    pytest.fail(f"{selector} cannot be reached by {key}")


def test_a_whole_session_by_keyboard_in_german(new_context, polyglot, axe):
    page = new_context(locale="de-DE").new_page()  # the browser says so; nobody chose
    page.goto(polyglot.url)
    page.get_by_role("heading", name="Texte annotieren").wait_for()
    page.wait_for_function(f"{LANG} === 'de'")
    expect(page).to_have_title("Annotation von Texten")
    axe(page, "entry")
    page.get_by_label("Ihr Code").focus()
    page.keyboard.type("zoe")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Ist das Ihr Code?").wait_for()
    axe(page, "new code")
    page.get_by_role("button", name="Mit diesem Code beginnen").press("Enter")
    page.get_by_role("heading", name="Bevor es losgeht").wait_for()
    assert page.locator("[lang=en]", has_text="Read both responses.").count() == 1
    axe(page, "welcome")
    press_until(page, "Tab", "button")
    page.keyboard.press("Enter")
    page.get_by_text("Sie können jederzeit aufhören.").wait_for()
    axe(page, "consent")
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
    assert rows["page_language"].tolist() == ["de", "de", "es", "es"]
    hashes = [rubric.in_language(code).hash for code in ("de", "de", "es", "es")]
    assert rows["shown_hash"].tolist() == hashes
    assert set(rows["rubric_hash"]) == {rubric.hash}


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
