"""Hands on the keyboard: confidence has a key of its own, the texts scroll, the focus stays."""

import pytest

from evenhand.study import open_study
from evenhand.study.store.logs.answers import remarks_table
from harness.annotator import Annotator, press_keys, reload, response_text
from harness.served import holds

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
    """How far both responses are scrolled, in pixels, left first."""
    tops = person.page.locator(".response .text")
    return tops.evaluate_all("nodes => nodes.map(node => Math.round(node.scrollTop))")


def sure(person: Annotator) -> list[str]:
    chosen = person.page.locator(".confidence .option:has(:checked) .name")
    return chosen.all_text_contents()


def test_a_corrected_digit_is_the_answer_and_never_the_confidence(reader, long_texts):
    person = reader("corrects")
    page = person.page
    press_keys(page, "2", "3")
    assert person.chosen() == "C"
    assert sure(person) == []
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
    with open_study(long_texts.folder) as study:
        said = remarks_table(study.store)
    assert said.loc[said["rater_id"] == "corrects", "confidence"].tolist() == [2]


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
        if down != "End":
            assert left == right
        page.keyboard.press(up)
        assert scrolled(person) == [0, 0]
    assert person.chosen() == "C"
    # One alone: by the focus.
    page.locator(".response .text").first.click()
    page.keyboard.press("PageDown")
    person.in_panel("panel.querySelector('.response .text').scrollTop > 100")
    assert scrolled(person)[1] == 0
    press_keys(page, "Escape", "Home", "End")
    assert min(scrolled(person)) > 1000
    press_keys(page, "?", "PageDown")  # the dialog's
    listed = page.locator(".sheet dl").text_content()
    assert all(key in listed for key in ("PageUp", "PageDown", "Space", "Home", "End", "0"))


@pytest.mark.thorough
def test_two_texts_scroll_together_where_that_is_asked_for(reader):
    person = reader("ties")
    texts = person.page.locator(".response .text")
    person.page.keyboard.press("=")
    assert person.page.get_by_role("button", name="Scroll together", pressed=True).is_visible()
    texts.first.evaluate("node => node.scrollTop = (node.scrollHeight - node.clientHeight) / 2")
    half = "panel.querySelectorAll('.response .text')[1]"
    person.in_panel(f"{half}.scrollTop * 2 > {half}.scrollHeight - {half}.clientHeight - 4")
    left, right = scrolled(person)
    assert left != right  # of texts of unlike length the same share
    person.page.keyboard.press("=")
    texts.first.evaluate("node => node.scrollTop = 0")
    person.page.wait_for_timeout(100)
    assert scrolled(person) == [0, right]


@pytest.mark.thorough
def test_the_focus_returns_to_the_texts(reader):
    person = reader("focus")
    page = person.page
    assert person.focus() == "material"
    page.get_by_role("radio", name="Response A").check()
    person.in_panel("panel.getRootNode().activeElement.className === 'material'")
    page.get_by_text("Guidelines").click()
    person.in_panel("panel.getRootNode().activeElement.className === 'material'")
    page.locator(".skip").click()
    page.get_by_role("button", name="Cancel").click()
    person.in_panel("panel.getRootNode().activeElement.className === 'material'")
    page.get_by_role("button", name="Earlier answers").click()
    page.locator(".sheet[open]").wait_for()
    page.keyboard.press("Escape")
    person.in_panel("panel.getRootNode().activeElement.className === 'material'")
    person.go_on("Enter")  # submits, and opens nothing again
    assert not page.locator(".sheet").is_visible()
    assert person.focus() == "material"


@pytest.mark.thorough
def test_letters_digits_and_signs_are_no_keys_once_they_are_switched_off(reader):
    person = reader("single")
    page = person.page
    caps = page.locator(".option kbd, .skip kbd, .flag kbd, .help kbd")
    assert caps.first.is_visible()
    page.keyboard.press("?")
    person.in_panel("panel.getRootNode().activeElement.id === 'sheet-title'")
    page.get_by_role("checkbox", name="Letters, digits and signs are keys").uncheck()
    listed = page.locator(".sheet dt").all_text_contents()
    assert "Tab↑↓Space" in listed and "Enter" in listed
    assert not [keys for keys in listed if len(keys) == 1 and keys != "⌫"]
    page.keyboard.press("Escape")
    press_keys(page, "c", "3", "-", "+", "?", "0", "=")
    assert person.chosen() is None
    assert not page.locator(".sheet").is_visible()
    assert sure(person) == []
    assert page.get_by_role("button", name="Scroll together", pressed=True).count() == 0
    assert not any(caps.nth(n).is_visible() for n in range(caps.count()))
    assert page.locator(".panel [aria-keyshortcuts='C']").count() == 0
    assert page.locator(".back[aria-keyshortcuts=Backspace] kbd").is_visible()
    reload(page)  # it is kept
    page.keyboard.press("c")
    assert person.chosen() is None
    # By Tab, arrows and Space alone an answer is given, and the keys are had back.
    for _ in range(8):
        page.keyboard.press("Tab")
        if page.locator(".option input:focus").count():
            break
    page.keyboard.press("Space")
    assert person.chosen() == "L"
    press_keys(page, "ArrowDown", "ArrowDown")
    assert person.chosen() == "C"
    person.go_on("Enter")
    assert holds(lambda: list(person.stored().values()) == ["C"])  # it was left while on its way
    for _ in range(8):
        page.keyboard.press("Shift+Tab")
        if page.locator(".help:focus").count():
            break
    page.keyboard.press("Enter")
    page.get_by_role("checkbox", name="Letters, digits and signs are keys").focus()
    press_keys(page, "Space", "Escape")
    person.in_panel("panel.dataset.phase === 'choosing'")
    page.keyboard.press("2")
    assert person.chosen() == "R"
