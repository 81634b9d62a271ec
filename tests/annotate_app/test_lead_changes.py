"""A lead changes a study that runs, in the browser: in force at once, in every server process."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin

import pytest
import sqlalchemy as sa
from playwright.sync_api import Page, expect

from evenhand.annotate_app.logins import place_of
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk, Flag
from evenhand.study.settings.study_toml import change_config, read_config
from evenhand.study.store.logs.decisions import acts
from evenhand.study.store.schema import flag_events
from harness.annotator import READY
from harness.served import Served, holds
from harness.studies import send, task_of
from tests.annotate_app.leading import fill, settled, turn_to

pytestmark = pytest.mark.browser

COMMENT = "# three, as agreed\n"


@pytest.fixture
def folder(make_study) -> Path:
    folder = make_study(8, raters_per_unit=3)
    settings = folder / "study.toml"
    text = settings.read_text("utf-8").replace("raters_per_unit", f"{COMMENT}raters_per_unit")
    settings.write_text(text, "utf-8")
    return folder


@pytest.fixture
def served(folder, serve_study) -> Served:
    return serve_study(folder)


@pytest.fixture
def changing(lead, served) -> Callable[..., Page]:
    """changing(title, **settings) -> the lead at a page that changes the study."""
    return lambda title, **settings: open_page(lead(served, **settings), title)


def open_page(page: Page, title: str) -> Page:
    size = page.viewport_size
    if size and size["width"] < 800:  # the list of pages is folded away
        page.goto(urljoin(page.url, place_of(title)))
    else:
        turn_to(page, title)
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    return page


def look(page: Page, sentence: str) -> None:
    page.keyboard.press("Tab")  # out of the field
    expect(page.locator(".st-key-offer")).to_contain_text(sentence)


def save(page: Page, does: str = "") -> None:
    """Save a change, where `does` is given after a look at what it does."""
    if does:
        look(page, does)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved, with immediate effect")).to_be_visible()


def test_a_setting_is_in_force_at_once_in_every_process(folder, changing, annotator, serve_study):
    person = annotator("eve", serve_study(folder))  # in another process
    person.answer("L")
    page = changing("Settings")
    fill(page, "Annotators per item", "4")
    page.get_by_text("Ask annotators how sure they are", exact=True).click()
    look(page, "Every item is assigned until it has 4 annotators")
    assert read_config(folder).annotation.raters_per_unit == 3  # nothing is written before
    save(page)
    assert f"{COMMENT}raters_per_unit = 4\n" in (folder / "study.toml").read_text("utf-8")
    expect(page.get_by_label("Annotators per item")).to_have_value("4")
    # In the other process, for somebody in the middle of their work who does not reload.
    expect(person.page.get_by_text("How sure are you?")).to_have_count(0)
    for _ in range(2):  # the first of them shows a unit that was on the page already
        person.answer("L")
    expect(person.page.get_by_text("How sure are you?")).to_be_visible()
    assert person.all_stored()
    with open_study(folder) as study:
        (act,) = acts(study.store)[lambda found: found["kind"] == "settings"].to_dict("records")
    changes = "annotation.raters_per_unit: 3 -> 4; annotation.confidence: false -> true"
    assert changes in act["detail"]
    assert act["done_by"] == "lead"
    turn_to(page, "Log")
    expect(page.get_by_role("cell", name="annotation.confidence: false -> true")).to_be_visible()


def test_a_changed_consent_is_asked_for_before_the_next_unit(folder, changing, annotator, served):
    person = annotator("ann", served)
    page = changing("Texts")
    fill(page, "Consent", "# Why\n\nRead *this*, at [us](https://e.org).")
    look(page, "Every annotator is asked for consent again before their next item")
    preview = page.locator(".st-key-preview")
    expect(preview.locator("em")).to_have_text("this")
    expect(preview.get_by_role("link", name="us")).to_have_attribute("target", "_blank")
    save(page)
    person.give("L")  # the answer at hand is stored, and then they are asked
    expect(person.page.get_by_role("heading", name="Your consent")).to_be_visible()
    expect(person.page.locator("em")).to_have_text("this")
    assert person.all_stored()
    change_config(folder, {"consent": {"text": "We sell all of it."}})
    yes = person.page.get_by_role("button", name="I agree")
    yes.click()  # which is no yes to another text
    expect(person.page.get_by_text("We sell all of it.")).to_be_visible()
    expect(yes).to_have_count(1)  # that of the earlier text leaves the page a moment later
    yes.click()
    person.page.wait_for_selector(READY)


@pytest.mark.journey
def test_a_rubrics_new_text_parts_the_labels_and_needs_no_reload(
    folder, changing, annotator, served
):
    person = annotator("ann", served)
    person.answer("L")
    with open_study(folder) as study:
        before = study.rubrics["shorter"].hash
    page = changing("Rubrics")
    page.get_by_label("Question", exact=True).fill("Which one is the shorter?")
    save(page, "Labels given under the present text of Length (1) are kept apart")
    # The unit in view is finished as it is shown; one that was sent ahead is not asked any more.
    person.give("R")
    person.page.wait_for_selector(".notice:has-text('Item 3:'):has-text('the study has changed')")
    asked = person.page.get_by_role("heading", name="Which one is the shorter?")
    expect(asked).to_have_count(0)
    person.page.wait_for_timeout(800)  # a notice cannot be waved away before it was read
    person.submit()
    person.page.wait_for_selector(READY)
    expect(asked).to_be_visible()
    person.answer("L")
    with open_study(folder) as study:
        new = study.rubrics["shorter"].hash
        assert new != before
        assert set(study.ratings()["rubric_hash"]) == {before, new}


def test_a_file_that_is_broken_by_hand_changes_nothing_until_it_is_mended(
    folder, annotator, served
):
    person = annotator("ann", served)
    settings = folder / "study.toml"
    text = settings.read_text("utf-8")
    settings.write_text(f"{text}\nconfidence = ", "utf-8")
    person.answer("L")
    page = person.page.context.new_page()
    page.goto(f"{served.url}?rater=ann")
    page.wait_for_selector(READY)
    page.close()
    settings.write_text(text.replace("confidence = false", "confidence = true"), "utf-8")
    for _ in range(2):  # the first of them shows a unit that was on the page already
        person.answer("L")
    expect(person.page.get_by_text("How sure are you?")).to_be_visible()
    assert person.all_stored()
    with open_study(folder) as study:  # nobody says who it was
        assert holds(lambda: "settings" in set(acts(study.store)["kind"]))
        assert list(acts(study.store)["done_by"]) == [""]


@pytest.mark.parametrize(
    ("width", "colours"), [(1280, "light"), pytest.param(390, "dark", marks=pytest.mark.thorough)]
)
def test_the_pages_are_accessible_and_fit(changing, axe, width, colours):
    page = changing("Settings", viewport={"width": width, "height": 900}, color_scheme=colours)
    fill(page, "Annotators per item", "4")
    look(page, "until it has 4 annotators")
    axe(page, "a setting")
    for title in ("Texts", "Rubrics", "Training and checks"):
        open_page(page, title)
        expect(page.get_by_text("As annotators")).to_be_visible()
        axe(page, title)
        assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0, title


REASONS = ("harmful", "personal_data", "broken_text", "unclear_rubric", "other")
SLOW = """
    CREATE TABLE slow (n);
    WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1500)
    INSERT INTO slow SELECT n FROM c;
    CREATE TRIGGER slowly BEFORE INSERT ON flag_events
    BEGIN SELECT count(*) FROM slow a, slow b WHERE a.n + b.n < 0; END;
"""
"""Makes the store take some .3 s to write what is done about a flag."""

QUICK_CLICKS = """
async (buttons) => {
  for (const button of buttons) {
    button.click();
    await new Promise((done) => setTimeout(done, 60));
  }
}
"""


@pytest.fixture
def slow_store(make_study, serve_study) -> Served:
    folder = make_study(2)
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        task = task_of(desk, "ann").task_id
        send(desk, "ann", *[Flag(submit_id=each, task_id=task, reason=each) for each in REASONS])
        with study.store.write() as connection:
            connection.connection.executescript(SLOW)
    return serve_study(folder)


@pytest.mark.journey
def test_five_quick_clicks_are_five_acts_while_the_store_is_slow(lead, slow_store):
    page = lead(slow_store, "Flags")
    answers = page.get_by_label("What was done about it")
    expect(answers).to_have_count(len(REASONS), timeout=120_000)
    for number in range(len(REASONS)):
        answers.nth(number).fill(f"did {number}")
    buttons = page.get_by_role("button", name="Mark as resolved")
    expect(buttons).to_have_count(len(REASONS), timeout=120_000)
    settled(page)
    buttons.evaluate_all(QUICK_CLICKS)
    expect(answers).to_have_count(0, timeout=120_000)
    with open_study(slow_store.folder) as study:
        said = study.store.values(sa.select(flag_events.c.text))
    assert sorted(said) == [f"did {number}" for number in range(len(REASONS))]
