"""Fuzz one annotator with several windows and devices, over unreliable connections.

`python -m harness.rater_fuzz --seeds 40` runs seeds 0 to 39, each with a rater of its own, and
fails where a stored label was on no screen of theirs when it was chosen, or where an answer was
refused without a word. A seed that failed is run again by `--first SEED --seeds 1`.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study import open_study
from evenhand.study.desk.claims import exclude, oversight, pause, readmit, resume
from evenhand.study.store.schema import claims, labels
from harness.annotator import SWAPPED
from harness.chromium import launched_chromium
from harness.served import Served, holds
from harness.slow_line import SlowLine
from harness.studies import panel_study

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

UNITS = 14
"""Of the study: few, so that many of the seeds come to its end."""
STEPS = 60
SECONDS = 16.0
"""In which a seed takes its steps: on a busy machine it may take fewer."""
DELAYS = (0, 75, 250)
"""Milliseconds each way."""
SEEN_MS = 130
"""A unit counts as seen once it has been painted for 150 ms; clocks and frames have their grain."""
READ_MS = 300
"""For so long a message is on the screen at least."""

# What a window shows, whenever it changes, and what it sends: in the browser's own storage, where a
# window that is closed or reloaded leaves it.
RECORD = """
(() => {
  const load = Math.random().toString(36).slice(2);
  let count = 0, last = "", unit = null, since = 0;
  const now = () => performance.timeOrigin + performance.now();
  const note = (what) => set.call(localStorage, `heard:${load}:${count++}`, JSON.stringify(what));
  const set = Storage.prototype.setItem;
  const root = () => document.querySelector("[data-testid=stBidiComponentIsolated]")?.shadowRoot;
  const seen = (place, name) => {
    const node = place.querySelector(name);
    return node?.checkVisibility() ? node.innerText.trim() : "";
  };
  function screen() {
    const place = root();
    const panel = place?.querySelector(".panel");
    if (!panel) return { unit: "" };
    const texts = [...place.querySelectorAll(".material .response .text")];
    return {
      unit: texts.map((node) => node.textContent.split(".")[0]).join(" | "),
      phase: panel.dataset.phase,
      chosen: [...place.querySelectorAll(".option input:checked")].map((node) => node.value).join(),
      editing: Boolean(seen(place, ".editing")),
      notice: seen(place, ".notice"),
      lost: seen(place, ".lost span"),
    };
  }
  function sample() {
    const shown = screen();
    if (shown.unit !== unit) [unit, since] = [shown.unit, now()];
    const said = JSON.stringify(shown);
    if (said === last) return;
    last = said;
    note({ at: now(), kind: "screen", ...shown });
  }
  Storage.prototype.setItem = function (name, value) {
    const known = this.getItem(name) !== null;
    set.call(this, name, value);
    if (known || !/:answer:/.test(name) || !value.includes("option_key")) return;
    const answer = JSON.parse(value);
    if (!answer.edit) window.answeredLast = screen().unit;
    note({ at: now(), kind: "sent", answer, ...screen(), shown_for: now() - since });
  };
  addEventListener("keydown", ({ key }) => {
    sample();
    note({ at: now(), kind: "key", key, unit, shown_for: now() - since });
  }, true);
  const watch = () => { sample(); requestAnimationFrame(watch); };
  requestAnimationFrame(watch);
})();
"""
HEARD = """() => Object.entries(localStorage).filter(([name]) => name.startsWith("heard:"))
  .map(([name, value]) => ({ load: name.split(":")[1], ...JSON.parse(value) }))"""
WAITING = """() => Object.entries(localStorage)
  .filter(([name]) => name.includes(":answer:")).length"""
REFUSALS = ("already answered this item", "study has changed", "no longer open to you")


@dataclass(frozen=True)
class Meant:
    """An annotator's intended answer: this option for this unit, in this window."""

    unit: str
    option: str
    at: float


@dataclass
class Device:
    """A browser of the annotator, with its connection."""

    context: BrowserContext
    line: SlowLine
    pages: list[Page] = field(default_factory=list)


@dataclass
class Fuzz:
    """A fuzzed annotator under one seed. `done` lists the actions, to investigate a fault."""

    seed: int
    served: Served
    browser: Browser
    lines: ExitStack
    devices: list[Device] = field(default_factory=list)
    meant: list[Meant] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    frozen: bool = False
    dead: bool = False
    held_up: bool = False

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.rater = f"fuzz-{self.seed}"

    # ---- windows and devices ----

    def new_device(self) -> None:
        if len(self.devices) == 3:
            return
        line = self.lines.enter_context(SlowLine(self.served.port))
        context = self.browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(15_000)
        context.add_init_script(RECORD)
        self.devices.append(Device(context, line))
        self.new_window(self.devices[-1])

    def new_window(self, device: Device) -> None:
        if sum(len(each.pages) for each in self.devices) == 3:
            return
        page = device.context.new_page()
        device.pages.append(page)
        self._go(device, page)

    def _go(self, device: Device, page: Page) -> None:
        from playwright.sync_api import Error

        with contextlib.suppress(Error):  # the line may be cut just now: the page comes later
            page.goto(f"{device.line.url}?rater={self.rater}", timeout=6_000, wait_until="commit")

    def reload(self, device: Device, page: Page) -> None:
        self._go(device, page)

    def close(self, device: Device, page: Page) -> None:
        page.close()
        device.pages.remove(page)
        if not device.pages:
            self.new_window(device)

    # ---- what the rater does ----

    def shown(self, page: Page) -> dict[str, Any]:
        from playwright.sync_api import Error

        with contextlib.suppress(Error):
            shown: dict[str, Any] = page.wait_for_function(SHOWN, timeout=1_500).json_value()
            return NOTHING | shown
        return NOTHING

    def ready(self, page: Page, seconds: float = 1.5) -> str:
        """Return the unit on the screen once it can be answered, or "" on a timeout."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            shown = self.shown(page)
            if shown.get("phase") == "choosing" and shown["unit"]:
                return str(shown["unit"])
            page.wait_for_timeout(40)
        return ""

    def press(self, page: Page, *keys: str, gap: float = 0) -> None:
        for key in keys:
            page.keyboard.press(key)
            if gap:
                page.wait_for_timeout(gap)

    def mean(self, unit: str, option: str) -> None:
        self.meant.append(Meant(unit, option, time.time() * 1000))

    def answer(self, device: Device, page: Page) -> None:
        """Read, choose, perhaps think again, submit."""
        unit = self.ready(page)
        if not unit:
            return
        for _ in range(self.chance.choice((1, 1, 1, 2))):
            option = self.chance.choice("LRC")
            self.mean(unit, option)
            if self.chance.random() < 0.3:
                box = page.locator(f".option input[value={option}]")
                with contextlib.suppress(Exception):
                    box.click(timeout=1_000, force=True)
            else:
                self.press(page, option.lower())
        self.press(page, "Enter")

    def choose(self, device: Device, page: Page) -> None:
        if unit := self.ready(page):
            option = self.chance.choice("LRC")
            self.mean(unit, option)
            self.press(page, option.lower())

    def skip(self, device: Device, page: Page) -> None:
        if unit := self.ready(page):
            self.mean(unit, "")
            self.press(page, "-", "1", "Enter")

    def type_ahead(self, device: Device, page: Page) -> None:
        """Answer, and answer what is not yet there."""
        unit = self.ready(page)
        if unit and not self.shown(page)["editing"]:
            option = self.chance.choice("LRC")
            self.mean(unit, option)
            gap = self.chance.choice((0, 30, 80))
            self.press(page, option.lower(), "Enter", self.chance.choice("lrc"), "Enter", gap=gap)

    def undo(self, device: Device, page: Page) -> None:
        """Answer, and take it back at once for another answer, without waiting for anything."""
        unit = self.ready(page)
        if not unit or self.shown(page)["editing"]:
            return
        first, second = self.chance.sample("LRC", 2)
        self.mean(unit, first)
        self.mean(unit, second)
        self.press(page, first.lower(), "Enter", "Backspace", second.lower(), "Enter")

    def change_last(self, device: Device, page: Page) -> None:
        """Back and another answer, blind: it is for the unit that this window answered last."""
        if not self.ready(page) or self.shown(page)["editing"]:
            return
        answered = self.shown(page)["answered"]
        if not answered:
            return
        option = self.chance.choice("LRC")
        self.mean(answered, option)
        self.press(page, "Backspace", option.lower(), "Enter", gap=self.chance.choice((0, 40)))

    def back(self, device: Device, page: Page) -> None:
        self.press(page, "Backspace")

    def leave(self, device: Device, page: Page) -> None:
        self.press(page, "Escape")

    def go_on(self, device: Device, page: Page) -> None:
        """Confirm the message shown, and go on."""
        page.wait_for_timeout(750)
        if self.shown(page).get("phase") == "notice":
            self.press(page, "Enter")
        with contextlib.suppress(Exception):
            page.locator(".noted").click(timeout=200)

    def list_earlier(self, device: Device, page: Page) -> None:
        if not self.ready(page):
            return
        self.press(page, "!")
        with contextlib.suppress(Exception):
            rows = page.locator(".past-list button.past")
            rows.first.wait_for(timeout=2_500)
            rows.nth(self.chance.randrange(rows.count())).click(timeout=1_000)
            return
        self.press(page, "Escape")

    def at_once(self, device: Device, page: Page) -> None:
        with contextlib.suppress(Exception):
            page.locator("#at-once").click(timeout=500)

    def wait(self, device: Device, page: Page) -> None:
        page.wait_for_timeout(self.chance.choice((50, 300, 900)))

    # ---- what happens to them ----

    def other_line(self, device: Device, page: Page) -> None:
        device.line.milliseconds = self.chance.choice(DELAYS)
        device.line.jitter = self.chance.choice((0, 60, 200))

    def cut(self, device: Device, page: Page) -> None:
        device.line.cut()

    def fall_silent(self, device: Device, page: Page) -> None:
        device.line.silent = True

    def mend(self, device: Device, _: Page | None = None) -> None:
        device.line.silent = False
        device.line.mend()

    def kill(self, device: Device, page: Page) -> None:
        if not self.dead and not self.frozen:
            self.served.kill()
            self.dead = True

    def freeze(self, device: Device, page: Page) -> None:
        if not self.dead and not self.frozen:
            self.served.freeze()
            self.frozen = True

    def revive(self, *_: object) -> None:
        if self.frozen:
            self.served.thaw()
        if self.dead:
            self.served.start()
        self.frozen = self.dead = False

    def lead_acts(self, device: Device, page: Page) -> None:
        """Pause the study or exclude this annotator, as the lead."""
        if self.frozen:
            return  # it may have been at work in the store
        self.held_up = True
        with open_study(self.served.folder) as study:
            if self.chance.random() < 0.5:
                pause(study.store)
            else:
                with contextlib.suppress(InputError):  # who has done nothing yet
                    exclude(study.store, self.rater, "fuzz")

    def lease_ends(self, device: Device, page: Page) -> None:
        """Let the leases of this annotator's units expire."""
        if self.frozen:
            return
        with open_study(self.served.folder) as study, study.store.write() as connection:
            own = claims.c.rater_id == self.rater, claims.c.state == "open"
            connection.execute(
                sa.update(claims).where(*own).values(claimed_at="2020-01-01T00:00:00.000+00:00")
            )

    ACTS: Sequence[tuple[int, str]] = (
        (22, "answer"), (4, "choose"), (3, "skip"), (7, "type_ahead"), (7, "undo"),
        (7, "change_last"), (5, "back"), (3, "leave"), (6, "go_on"), (4, "list_earlier"),
        (4, "at_once"), (6, "wait"), (5, "other_line"), (3, "cut"), (2, "fall_silent"),
        (2, "kill"), (2, "freeze"), (2, "lead_acts"),
        (5, "reload"), (3, "close"), (1, "lease_ends"),
    )  # fmt: skip

    def run(self, steps: int) -> None:
        self.served.enter(self.rater)
        self.new_device()
        weights, acts = zip(*self.ACTS, strict=True)
        end = time.monotonic() + SECONDS
        for _ in range(steps):
            if time.monotonic() > end:
                break
            self._recover()
            if self.chance.random() < 0.12:
                self.chance.choice((self.new_device, self._another_window))()
            device = self.chance.choice(self.devices)
            page = self.chance.choice(device.pages) if device.pages else None
            if page is None:
                self.new_window(device)
                continue
            name = self.chance.choices(acts, weights)[0]
            place = f"device {self.devices.index(device)}, window {device.pages.index(page)}"
            self.note(f"{place}: {name} {self.shown(page)}")
            getattr(self, name)(device, page)

    def _recover(self) -> None:
        """End some of the faults at random, so that none of them lasts long."""
        for device in self.devices:
            if self.chance.random() < 0.4:
                self.mend(device)
        if (self.dead or self.frozen) and self.chance.random() < 0.4:
            self.revive()
        if self.held_up and self.chance.random() < 0.4:
            self._let_on()

    def _let_on(self) -> None:
        """Let the lead hand out units again, to this annotator too."""
        self.held_up = False
        with open_study(self.served.folder) as study:
            resume(study.store)
            if self.rater in oversight(study.store).exclusions:
                readmit(study.store, self.rater, "fuzz")

    def note(self, done: str) -> None:
        self.done.append(f"{time.time() * 1000:.0f} {done}")

    def _another_window(self) -> None:
        self.new_window(self.chance.choice(self.devices))

    def settle(self) -> None:
        """Restore everything, with a window in every browser, so that all kept answers are sent."""
        self.revive()
        for device in self.devices:
            self.mend(device)
            device.line.milliseconds = device.line.jitter = 0
        self._let_on()
        for device in self.devices:
            for page in device.pages[1:]:
                page.close()
            if not device.pages:
                device.pages.append(device.context.new_page())
            page = device.pages[0]
            page.goto(f"{device.line.url}?rater={self.rater}", wait_until="commit")
            page.wait_for_selector(".panel", state="attached", timeout=30_000)
            if not holds(lambda page=page: page.evaluate(WAITING) == 0, 15):  # type: ignore[misc]
                raise AssertionError(f"{self.rater}: answers are still waiting to be sent")
            page.wait_for_timeout(READ_MS + 150)

    # ---- what must hold ----

    def faults(self) -> list[str]:
        """Return a line for each stored label that nobody chose, and each answer lost silently."""
        found: list[str] = []
        heard = {at: device.pages[0].evaluate(HEARD) for at, device in enumerate(self.devices)}
        sent = {
            each["answer"]["submit_id"]: (at, each)
            for at, told in heard.items()
            for each in sorted(told, key=lambda each: each["at"], reverse=True)
            if each["kind"] == "sent"
        }  # as it was sent first
        with open_study(self.served.folder) as study, study.store.read() as connection:
            query = sa.select(labels).where(labels.c.rater_id == self.rater)
            stored = connection.execute(query.order_by(labels.c.event_id)).all()
        for event in stored:
            unit = shown_unit(event.unit_id, event.order)
            option = event.label if event.order == "ab" or not event.label else SWAPPED[event.label]
            at = datetime.fromisoformat(event.created_at).timestamp() * 1000
            what = f"{self.rater}: {unit}, {option or event.unscored_reason}"
            if event.submit_id not in sent:
                found.append(f"{what}: stored, and no window has sent it")
                continue
            _, screen = sent[event.submit_id]
            if screen["unit"] != unit or (option and screen["chosen"] != option):
                found.append(f"{what}: stored, but the screen was {screen}")
            if screen["shown_for"] < SEEN_MS:
                found.append(f"{what}: sent after {screen['shown_for']:.0f} ms: {screen}")
            pressed = (
                Meant(each["unit"], each["key"].upper(), each["at"])
                for told in heard.values()
                for each in told
                if each["kind"] == "key" and each["shown_for"] >= SEEN_MS
            )
            meant = (*self.meant, *pressed)
            if not any(m.unit == unit and m.option == option and m.at <= at for m in meant):
                found.append(f"{what}: stored, and nobody meant it: {screen}")
        kept = {event.submit_id for event in stored}
        for submit_id, (at, screen) in sent.items():
            if submit_id not in kept and not was_shown(screen, heard[at]):
                found.append(f"{self.rater}: refused without a word: {screen}")
        return found + self._overtaken(stored, sent)

    def _overtaken(self, stored: Sequence[Any], sent: dict[str, Any]) -> list[str]:
        """Return a line for each answer that an earlier one of the same browser overwrote."""
        found = []
        last: dict[tuple[int, str], Any] = {}
        for event in stored:
            if event.submit_id not in sent:
                continue
            device, screen = sent[event.submit_id]
            before = last.get((device, screen["unit"]))
            if before and before["at"] > screen["at"]:
                found.append(f"{self.rater}: {before} is overtaken by {screen}")
            last[device, screen["unit"]] = screen
        return found


def shown_unit(unit_id: str, order: str) -> str:
    number = int(unit_id[1:5])
    return " | ".join(f"Response {number}, side {side}" for side in order)


def was_shown(sent: dict[str, Any], events: list[dict[str, Any]]) -> bool:
    """Return True if a refused answer was shown to its annotator for long enough to be read."""
    by_load: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event["kind"] == "screen":
            by_load.setdefault(event["load"], []).append(event)
    unit = sent["answer"]["unit"]
    for screens in by_load.values():
        screens.sort(key=lambda event: event["at"])
        ends = [event["at"] for event in screens[1:]] + [float("inf")]
        read = 0.0
        for screen, end in zip(screens, ends, strict=True):
            in_view = screen["unit"] == sent["unit"] and any(
                reason in screen.get("notice", "") for reason in REFUSALS
            )
            names_item = re.search(rf"\bitem {unit}:", screen.get("lost", ""))
            if end >= sent["at"] and (in_view or names_item):
                read += end - max(screen["at"], sent["at"])
        if read >= READ_MS:
            return True
    return False


NOTHING = {"unit": "", "phase": "", "answered": "", "editing": False}
SHOWN = """() => {
  const place = document.querySelector("[data-testid=stBidiComponentIsolated]")?.shadowRoot;
  const panel = place?.querySelector(".panel");
  if (!panel) return { unit: "" };
  const texts = [...place.querySelectorAll(".material .response .text")];
  return {
    unit: texts.map((node) => node.textContent.split(".")[0]).join(" | "),
    phase: panel.dataset.phase,
    answered: window.answeredLast ?? "",
    editing: !place.querySelector(".editing").hidden,
    notice: place.querySelector(".notice").textContent,
    lost: place.querySelector(".lost").innerText,
  };
}"""


@contextmanager
def fuzzed_study(home: Path) -> Iterator[Served]:
    """Yield the app on a study of a few units; the app may be killed."""
    home.mkdir(exist_ok=True)
    served = Served(panel_study(home, UNITS), home)
    served.start()
    yield served
    served.kill()


def fuzz(
    seeds: Sequence[int],
    served: Served,
    browser: Browser,
    steps: int = STEPS,
    say: Callable[[str], None] = lambda said: None,
) -> list[str]:
    """Return the faults found under these seeds."""
    faults = []
    for seed in seeds:
        with ExitStack() as lines:
            fuzzed = Fuzz(seed, served, browser, lines)
            began = time.monotonic()
            try:
                fuzzed.run(steps)
                fuzzed.settle()
                new_faults = fuzzed.faults()
            except AssertionError as error:
                new_faults = [str(error)]
            finally:
                for device in fuzzed.devices:
                    device.context.close()
            faults += new_faults
            count, seconds = len(served.labels(fuzzed.rater)), time.monotonic() - began
            say(f"seed {seed}: {count} labels, {len(new_faults)} faults, {seconds:.0f} s")
            for line in new_faults:
                say(f"  {line}")
            if new_faults:
                say("\n".join(f"    {line}" for line in fuzzed.done))
    return faults


def main(arguments: Sequence[str] | None = None) -> int:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--steps", type=int, default=STEPS, help="of a seed")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.seeds)
    with (
        tempfile.TemporaryDirectory() as home,
        sync_playwright() as playwright,
        fuzzed_study(Path(home) / "fuzz") as served,
    ):
        browser = launched_chromium(playwright)
        faults = fuzz(seeds, served, browser, options.steps, lambda said: print(said, flush=True))
    print(f"{len(faults)} faults in {options.seeds} seeds")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
