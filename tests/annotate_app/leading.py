"""What people do on the lead's pages."""

import hashlib
from pathlib import Path

from playwright.sync_api import Page, TimeoutError, WebSocket, expect

from evenhand.study import open_study
from evenhand.study.access import make_invites
from evenhand.study.session.sessions import participants_table
from harness.annotator import READY
from harness.served import holds
from harness.studies import CODES

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


SET_UP = ("Texts", "Rubrics", "Training and checks", "Accounts", "Log")
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
    mouse may not reach it when the field stands at the page's end. A run that is under way closes
    the list: then once more."""
    for _ in range(4):
        field = settled(page).get_by_role("combobox", name=label, exact=True)
        field.click()
        field.fill(option)
        focused = page.locator("[role=option][data-focused=true]", has_text=option)
        if holds(focused.count, seconds=4):
            break
        page.keyboard.press("Escape")
    field.press("Enter")


def shown(page: Page, other_than: str = "") -> str:
    """The rubric and the first text of the unit on the page, once it is not the one before."""
    decision, text = page.locator(".st-key-decision h2"), page.locator(".evenhand-quote").first
    for _ in range(100):
        # While the page is drawn anew, the unit before and the next stand there side by side.
        unit = "" if decision.count() > 1 else f"{decision.inner_text()}: {text.inner_text()}"
        is_busy = page.locator(".decider[aria-busy=true]").count()  # with the unit before
        if unit not in ("", other_than) and not is_busy:
            return unit
        page.wait_for_timeout(50)
    raise TimeoutError(f"still {other_than}")


COMPLETE = "https://app.prolific.com/submissions/complete?cc="
# The right answer to each is told by its text, so that whoever reads can find it.
LONG, SHORT = "This one is by far the longer one. " * 4, "Brief."
KNOWN = f"""
[[unit]]
name = "short-b"
explanation = "One word is shorter than many."
expected = {{ shorter = "R" }}
[unit.values]
prompt_a = "Tell A."
response_a = "{LONG}"
prompt_b = "Tell B."
response_b = "{SHORT}"
"""
SESSION = f"""
[session]
entry = "invite"
content_warning = "Some texts are <b>harsh</b>."
instructions = "Read both responses.\\n\\nThen say which one is shorter."
[consent]
text = "You may stop at any time. Your answers are used for research."
[training]
file = "training.toml"
pass_mark = 1.0
[[comprehension]]
question = "What is compared? :rocket: :red[x] $x^2$ <b>y</b> `z` ~~0~~"
options = ["The length of *both* responses", "Who wrote them"]
answer = "The length of *both* responses"
explanation = "It is length alone that counts."
[background]
[attention]
file = "attention.toml"
every = 2

{CODES}"""


def link(folder: Path, rater: str = "", hours: float = 1, **ids: str) -> str:
    """The address's query by which this rater, or a participant, comes in."""
    with open_study(folder) as study:
        token = make_invites(study, [rater], hours)[0].token
    return "?invite=" + token + "".join(f"&{name}={value}" for name, value in ids.items())


def prolific_id(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:24]


def participant(folder: Path, name: str, submission: str = "") -> str:
    ids = {"PROLIFIC_PID": name, "STUDY_ID": "study1", "SESSION_ID": f"{name} {submission}"}
    return link(folder, **{key: prolific_id(value) for key, value in ids.items()})


def rater_of(folder: Path, name: str) -> str:
    with open_study(folder) as study:
        entries = participants_table(study)
    return str(entries.loc[entries["participant_id"] == prolific_id(name), "rater_id"].iloc[0])


def settled(page: Page) -> Page:
    """The page, once it is all drawn: what is typed into a part that is drawn anew is lost."""
    page.wait_for_selector("[data-test-script-state=notRunning]", timeout=90_000)
    return page


def heading(page: Page, text: str) -> None:
    page.get_by_role("heading", name=text, exact=True).wait_for()


def go_on(page: Page) -> None:
    page.get_by_role("button", name="Continue").click()


def answer_shorter(page: Page, wrong: bool = False) -> None:
    page.wait_for_selector(READY)
    texts = page.locator(".material .response .text").all_inner_texts()
    page.keyboard.press("l" if (len(texts[0]) < len(texts[1])) != wrong else "r")
    page.keyboard.press("Enter")


def check_comprehension(page: Page, option: str) -> None:
    page.get_by_role("radiogroup").get_by_text(option).click()
    page.get_by_role("button", name="Check my answers").dblclick()  # one attempt


def frames_of(page: Page, *events: str) -> list[bytes]:
    """What goes over the page's socket from now on, both ways or as `events` say, and what it sends
    and is sent in answers."""
    frames: list[bytes] = []

    def keep(frame: str | bytes) -> None:
        frames.append(frame.encode() if isinstance(frame, str) else frame)

    def listen(socket: WebSocket) -> None:
        for event in events or ("framereceived", "framesent"):
            socket.on(event, keep)

    page.on("websocket", listen)
    if not events:
        page.on("request", lambda asked: keep(asked.post_data_buffer or b""))
        page.on("response", lambda answer: "/answers" in answer.url and keep(answer.body()))
    return frames
