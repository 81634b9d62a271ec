"""How many keys and pointer moves the labelling of 250 pairs under three rubrics takes.

`python -m benchmarks.handling` writes results/handling.md: an annotator in a real Chromium answers
the units of some pairs by keyboard and by pointer, as it comes and with "Submit as soon as I
choose"; what the page hears is counted, and multiplied.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.annotation import make_study
from benchmarks.documents import RESULTS
from harness.annotator import IS_NEXT, READY
from harness.chromium import launched_chromium
from harness.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGE = RESULTS / "handling.md"
PAIRS = 250
ANSWERS = 5 * PAIRS
"""One of each pair, and two of each of its responses."""
COUNT = """
window.heard = { keys: 0, presses: 0, moves: 0 };
const names = { keydown: "keys", pointerdown: "presses", pointermove: "moves" };
for (const [kind, name] of Object.entries(names)) {
  addEventListener(kind, () => (window.heard[name] += 1), true);
}
"""
AGAIN_MS = 750
"""Where a choice is sent at once, one within 700 ms is the second half of a double press."""


@dataclass(frozen=True)
class Counted:
    """One way of working, and what the page heard in so many answers."""

    way: str
    answers: int
    keys: int
    presses: int
    moves: int

    def row(self) -> str:
        whole = [f"{each * ANSWERS / self.answers:,.0f}" for each in self._heard()]
        counted = ", ".join(map(str, self._heard()))
        return f"| {self.way} | {' | '.join(whole)} | {counted} in {self.answers} |"

    def _heard(self) -> tuple[int, int, int]:
        return self.keys, self.presses, self.moves


def work(
    browser: Browser, served: Served, answers: int, *, pointer: bool, at_once: bool
) -> Counted:
    """So many units, one after the other, and what that took."""
    way = f"{'pointer' if pointer else 'keyboard'}{', as soon as chosen' if at_once else ''}"
    rater = way.replace(", ", "-").replace(" ", "-")
    served.enter(rater)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script(COUNT)
    page.goto(f"{served.url}?rater={rater}")
    page.wait_for_selector(READY)
    if at_once:
        page.locator("#at-once").check()
    page.evaluate("window.heard = { keys: 0, presses: 0, moves: 0 }")
    for _ in range(answers):
        before = page.text_content(".material")
        page.wait_for_timeout(AGAIN_MS)
        if pointer:
            _press(page, ".option")
            if not at_once:
                _press(page, ".go")
        else:
            page.keyboard.press("1")
            if not at_once:
                page.keyboard.press("Enter")
        page.wait_for_function(IS_NEXT, arg=before)
    page.wait_for_selector(".chip[data-state=saved]", state="attached")
    heard = page.evaluate("window.heard")
    page.close()
    assert len(served.labels(rater)) == answers
    return Counted(way, answers, **heard)


def _press(page: Page, target: str) -> None:
    """Press a part with the pointer; it moves only where it is not there yet."""
    inside = """([x, y, target]) => document.elementFromPoint(x, y)?.shadowRoot
      ?.elementFromPoint(x, y)?.closest(target) != null"""
    part = page.locator(target).first
    part.scroll_into_view_if_needed()
    box = part.bounding_box()
    assert box is not None
    middle = box["x"] + min(box["width"] / 2, 60), box["y"] + box["height"] / 2
    at = getattr(page, "pointer_at", None)
    if at is None or not page.evaluate(inside, [*at, f"{target}:first-of-type"]):
        page.mouse.move(*middle)
        page.pointer_at = middle  # type: ignore[attr-defined]
    page.mouse.down()
    page.mouse.up()


def document(counted: Sequence[Counted]) -> str:
    """The documentation page."""
    today = datetime.datetime.now(datetime.UTC).date()
    rows = "\n".join(each.row() for each in counted)
    return f"""# Keys and pointer moves

Counted on {today} by `python -m benchmarks.handling`, in a real Chromium: {PAIRS} pairs under three
rubrics are {ANSWERS:,} answers, one of each pair and two of each of its responses. A part of them
was given, always by the first option, and what the page heard is multiplied.

| way of working | keys | presses of the pointer | moves of the pointer | counted |
| --- | ---: | ---: | ---: | ---: |
{rows}

A move is one from a place that has to be pressed to another; a pointer that lies there already does
not move. Reading, scrolling, changed answers and reasons are not in it. "As soon as chosen" is the
box below the answers, "Submit as soon as I choose".
"""


def main(arguments: Sequence[str] | None = None) -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=50, help="given in each way")
    parser.add_argument("--out", type=Path, default=PAGE)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        browser = launched_chromium(playwright)
        pairs = max(1, asked.answers // 5)
        served = Served(make_study(Path(home) / "study", pairs), Path(home))
        served.start()
        try:
            counted = [
                work(browser, served, asked.answers, pointer=pointer, at_once=at_once)
                for pointer in (False, True)
                for at_once in (False, True)
            ]
        finally:
            served.kill()
    asked.out.write_text(document(counted), "utf-8")
    print(document(counted))


if __name__ == "__main__":
    main()
