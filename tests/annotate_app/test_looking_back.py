"""Looking back in a real browser: the list of all earlier answers, and one's own flags."""

import pytest

from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.disagreements import raised_flags, settle_flag
from harness.annotator import READY, Annotator, press_keys, reload
from harness.served import Served, holds
from harness.studies import work_through
from tests.annotate_app.conftest import LIGHT_AND_DARK

pytestmark = pytest.mark.browser

ANSWERS = 70
ITEMS = ".past-list li"


@pytest.fixture(scope="module")
def long_ago(make_study, serve_study) -> Served:
    """A study in which `old` has given 70 answers; the others have given none."""
    folder = make_study(80)
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        work_through(desk, "old", ANSWERS, seconds=2.0, options=3)
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
    keys.press("/")
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
    told.get_by_role("button", name="I have read this").click()
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
    """A study whose days have two answers."""
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
