"""What people do on the lead's pages."""

from playwright.sync_api import Page, TimeoutError, expect

from tests.annotate_app.participants import settled

PASSWORD = "a long enough one"
HOSTILE = '<img src="http://example.invalid/x.png" onerror="document.title=1">**bold**'
LOGIN_IS_KEPT = "Object.keys(sessionStorage).some(k => k.startsWith('evenhand-login'))"


def inside(page: Page) -> None:
    """Wait until the pages are there, and the browser has put the login by."""
    expect(page.get_by_text("Leading the study")).to_be_visible()
    page.wait_for_function(LOGIN_IS_KEPT)


def shut_out(page: Page) -> None:
    expect(page.get_by_role("heading", name="Leading a study")).to_be_visible()
    for text in ("Log out", "Ask for a verdict now"):
        expect(page.get_by_text(text)).to_have_count(0)
    expect(page.get_by_test_id("stSidebarNavLink")).to_have_count(0)


def log_in(page: Page, name: str, password: str = PASSWORD) -> None:
    settled(page).get_by_label("Name").fill(name)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Log in").click()


SET_UP = ("Texts", "Rubrics", "Training and checks", "Accounts", "Log", "New study")
"""Pages that the page Settings leads to."""


def turn_to(page: Page, title: str) -> None:
    if title in SET_UP:
        page.get_by_test_id("stSidebarNav").get_by_role("link", name="Settings").click()
    page.get_by_role("link", name=title, exact=True).first.click()


def complaint(page: Page, text: str, **patience: float) -> None:
    expect(page.locator(".evenhand-complaint")).to_contain_text(text, **patience)


def fill(page: Page, label: str, text: str) -> None:
    settled(page).get_by_label(label).fill(text)


def press(page: Page, button: str) -> None:
    settled(page).get_by_role("button", name=button, exact=True).click()


def upload(page: Page, file, at: int = 0) -> None:
    settled(page).locator("input[type=file]").nth(at).set_input_files(file)


def choose(page: Page, label: str, option: str) -> None:
    """Typed and taken with Enter: the list holds only the options in view, and hangs where a
    mouse may not reach it when the field stands at the page's end."""
    field = settled(page).get_by_role("combobox", name=label, exact=True)
    field.click()
    field.fill(option)
    expect(page.locator("[role=option][data-focused=true]")).to_contain_text(option)
    field.press("Enter")


def shown(page: Page, other_than: str = "") -> str:
    """The rubric and the first text of the unit on the page, once it is not the one before."""
    decision, text = page.locator(".st-key-decision h2"), page.locator(".evenhand-quote").first
    for _ in range(100):
        # While the page is drawn anew, the unit before and the next stand there side by side.
        unit = "" if decision.count() > 1 else f"{decision.inner_text()}: {text.inner_text()}"
        if unit not in ("", other_than):
            return unit
        page.wait_for_timeout(50)
    raise TimeoutError(f"still {other_than}")
