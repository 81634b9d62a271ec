"""An annotator at the panel in a real browser, and the texts that the panel shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.served import holds

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from harness.served import Served

SUBJECT = "secret-subject"
SWAPPED = {"L": "R", "R": "L", "C": "C"}


def prompt_text(number: int, side: str) -> str:
    return f"Prompt {number}, side {side}."


def response_text(number: int, side: str) -> str:
    words = " ".join(["word"] * (20 + 7 * number % 40))
    return f"Response {number}, side {side}. {words}"


# Times from Enter to the frame after the one in which the next unit is drawn.
CLOCK = """
window.enterToPaint = [];
let entered = null;
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.repeat) entered ??= performance.now();
}, true);
function watch() {
  const root = document.querySelector("[data-testid=stBidiComponentIsolated]")?.shadowRoot;
  const material = root?.querySelector(".material");
  if (!material) return setTimeout(watch, 20);
  new MutationObserver(() => {
    const from = entered;
    entered = null;
    if (from === null) return;
    const painted = () => window.enterToPaint.push(performance.now() - from);
    requestAnimationFrame(() => requestAnimationFrame(painted));
  }).observe(material, { childList: true });
}
watch();
"""

# The time of the frame after the one in which the first unit is drawn.
FIRST_PAINTED = """
(function look() {
  const root = document.querySelector("[data-testid=stBidiComponentIsolated]")?.shadowRoot;
  if (!root?.querySelector(".panel[data-phase] .material > *")) return requestAnimationFrame(look);
  const painted = () => (document.documentElement.dataset.painted = performance.now());
  requestAnimationFrame(() => requestAnimationFrame(painted));
})();
"""

READY = ".panel[data-phase=choosing]"
"""The panel once its unit has been seen: from then on an answer counts."""

SAVED = ".chip[data-state=saved]"
"""The mark that says that all answers of this window are stored."""

IS_NEXT = """
(before) => {
  const root = document.querySelector("[data-testid=stBidiComponentIsolated]")?.shadowRoot;
  const now = root?.querySelector(".panel[data-phase=choosing] .material")?.textContent;
  return Boolean(now) && now !== before;
}
"""


@dataclass
class Annotator:
    """An annotator at the panel. `given` are the labels chosen, as they must be stored."""

    rater: str
    server: Served
    page: Page
    given: dict[str, str] = field(default_factory=dict)

    def texts(self) -> list[str]:
        """Return the texts on the page in document order."""
        read = "nodes => nodes.map(node => node.textContent)"
        texts: list[str] = self.page.locator(".material .text").evaluate_all(read)
        return texts

    def unit(self) -> tuple[str, str]:
        """Return (unit id, order) of the unit on the page, recognised by its texts."""
        prompt_left, left, prompt_right, right = self.texts()
        number = int(left.split()[1].rstrip(","))
        sides = "".join(text.split(".")[0][-1] for text in (left, right))
        assert [prompt_left, prompt_right] == [prompt_text(number, side) for side in sides]
        assert [left, right] == [response_text(number, side) for side in sides]
        return f"p{number:04d}|{SUBJECT}", sides

    def choose(self, option: str, key: str | None = None) -> None:
        """Press the key of an option, and remember what label that must become."""
        unit_id, order = self.unit()
        self.given[unit_id] = option if order == "ab" else SWAPPED[option]
        self.page.keyboard.press(key or option.lower())

    def submit(self) -> None:
        self.page.keyboard.press("Enter")

    def give(self, option: str) -> None:
        """Choose and submit, and wait for nothing."""
        self.choose(option)
        self.submit()

    def wait_for_next(self, before: str) -> None:
        self.page.wait_for_function(IS_NEXT, arg=before)

    def answer(self, option: str, key: str | None = None, gap: float = 0) -> None:
        """Choose, submit, and wait for the next unit, or the end, until the answer is stored."""
        before = self.page.locator(".material").text_content() or ""
        self.choose(option, key)
        if gap:
            self.page.wait_for_timeout(gap)
        self.submit()
        self.wait_for_next(before)
        self.wait_for_chip("saved")

    def all_stored(self) -> bool:
        """Wait until the labels given are stored; an answer may be stored once its unit is left."""
        return holds(lambda: self.stored() == self.given)

    def stored(self) -> dict[str, str]:
        rows = self.server.labels(self.rater)
        return dict(zip(rows["unit_id"], rows["label"], strict=True))

    def in_panel(self, condition: str) -> None:
        """Wait until a JavaScript condition on `panel`, the panel's root, holds."""
        self.page.wait_for_function(
            "() => { const panel = document.querySelector('[data-testid=stBidiComponentIsolated]')"
            f"?.shadowRoot.querySelector('.panel'); return panel && ({condition}); }}"
        )

    def go_on(self, *keys: str) -> None:
        """Press keys, and wait for the next unit."""
        go_on(self.page, *keys)

    def focus(self) -> str:
        """Return the CSS class of the panel's element that has the focus."""
        return str(
            self.page.evaluate(
                "document.querySelector('[data-testid=stBidiComponentIsolated]')"
                ".shadowRoot.activeElement?.className"
            )
        )

    def press(self, *keys: str) -> None:
        press_keys(self.page, *keys)

    def chosen(self) -> str | None:
        checked = self.page.locator(".option input:checked")
        return checked.get_attribute("value") if checked.count() else None

    def wait_for_chip(self, state: str) -> None:
        self.page.wait_for_selector(f".chip[data-state={state}]", state="attached")


def arrive(page: Page, server: Served, rater: str, address: str = "") -> Annotator:
    """Return an annotator at their first unit, at the usual `address` or another one."""
    server.enter(rater)
    page.goto(f"{address or server.url}?rater={rater}")
    page.wait_for_selector(READY)
    return Annotator(rater, server, page)


def press_keys(page: Page, *keys: str) -> None:
    """Press one key after the other, as fast as they come."""
    for key in keys:
        page.keyboard.press(key)


def go_on(page: Page, *keys: str) -> None:
    """Press keys, and wait for the next unit."""
    before = page.locator(".material").text_content()
    press_keys(page, *keys)
    page.wait_for_function(IS_NEXT, arg=before)


def look_back(page: Page) -> None:
    """Press Backspace, and wait until the last answer is there to be changed."""
    page.keyboard.press("Backspace")
    page.locator(".editing").wait_for()
    page.wait_for_selector(READY)


def reload(page: Page) -> None:
    """Load the page again, and wait for its unit."""
    page.reload()
    page.wait_for_selector(READY)
