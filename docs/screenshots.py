"""The pictures of the app and the report that the pages show, taken anew.

`python -m docs.screenshots` makes synthetic studies, serves them, and photographs what an annotator
and a lead see, and how a report begins. `--states FOLDER` photographs every state of their pages
instead, in every width, light and dark, with one sheet of all states for each. It needs a Chromium
(see harness/chromium.py).
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page, expect, sync_playwright

from evenhand.annotate_app.lead.pages import PAGES
from evenhand.annotate_app.logins import place_of
from evenhand.cli.main import lead_link, main
from harness.annotator import READY
from harness.chromium import launched_chromium
from harness.served import Served
from harness.studies import panel_study

PICTURES = Path(__file__).with_name("pictures")
SIZE = {"width": 1200, "height": 750}
COLOURS = 72
"""Few are needed, and fewer make a smaller file."""
SIZES = ((390, 844), (1280, 800), (1440, 900), (2560, 1440))
PHONE = 390
SCHEMES = ("light", "dark")
THUMB = 480
"""Width of a state on a sheet, in pixels."""
SESSION = """
[session]
content_warning = "Some texts are **harsh**."
instructions = "Read both responses, then answer. See [the guide](https://example.org)."

[consent]
text = "You may stop at any time. Your answers are used for research."

[training]
file = "training.toml"
pass_mark = 0.5
"""
PRACTICE = """
[[unit]]
name = "first"
explanation = "The second one answers what was asked."
expected = { quality = "yes" }

[unit.values]
response = "It rains because air that rises cools, and cool air holds less water."
"""
RUBRIC = """
name = "{name}"
title = "{name}"
unit = "response"
question = "{question}"
instructions = "Judge **only** what is asked.\\n\\n- what it says\\n- what it leaves out"
variables = [{variables}]
{rest}
"""
YES_NO = """
level = "nominal"
affirmative = ["yes"]
[[options]]
key = "yes"
name = "Yes"
description = "It does all that was asked."
examples = ["It rains because air cools."]
[[options]]
key = "no"
name = "No"
description = "It leaves something out."
"""
SEVERAL = """several = true
level = "nominal"
[[options]]
key = "reason"
name = "Gives the reason"
description = "Why it rains, not only that it does."
[[options]]
key = "example"
name = "Gives an example"
description = "A place or a day, as one would tell a friend."
"""
QUESTIONS = {
    "number": "How well does it explain why it rains? 0: not at all. 100: as well as can be.",
    "several": "What does the response do?",
}
NUMBER = "[number]\nlow = 0\nhigh = 100\nstep = 1\n"
BLOCKS = {
    "conversation": ("conversation", ""),
    "code": ("code", 'language = "python"'),
    "json": ("json", ""),
    "markdown": ("markdown", ""),
}
TURNS = [
    {"role": "system", "content": "You help with bills."},
    {"role": "user", "content": "Why was I charged twice?"},
    {"role": "assistant", "content": "The first charge was a hold; it is gone in three days."},
]
TEXTS = {
    "conversation": json.dumps(TURNS),
    "code": "def mean(values):\n    # of none there is none\n    return sum(values) / len(values)",
    "json": json.dumps({"answer": "Paris", "sources": [{"page": 3, "score": 0.93}]}),
    "markdown": "# Rain\n\n1. Air **rises**\n2. and cools: \\(p = \\rho R T\\)\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nreturn p  # in Pascal\n```\n\n- mist\n- hail",
}
DRAWN = {
    "Overview": "text=All verdicts in full",
    "Progress": "text=By annotator",
    "Agreement": "text=Graders compared with human agreement",
    "Annotators": "text=Annotators compared with the others",
    "Adjudication": ".st-key-decision",
    "Disagreements": ".st-key-disagreement-keys",
    "Export": ".st-key-files-report",
}
"""What is on a lead's page once its figures are, which are counted for a while."""
FIGURES_PATIENCE = 600_000
SAID = ".lost:not([hidden]), .notice:not(:empty)"
"""What a rater is told of an answer that does not count."""
State = tuple[str, Callable[[Page, str], None]]
"""A name, and what brings a page there: the page is a new one, the name a rater's own."""


def take_all() -> None:
    expect.set_options(timeout=60_000)  # machines may be crowded
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        browser = launched_chromium(playwright)
        for name, study in (("pairs", "pairs"), ("rag", "items")):
            main(["demo", f"{made}/{name}", "--study", study, "--no-app"])
        with _page(browser, "light") as page:
            page.goto((Path(made) / "rag" / "report" / "report.html").as_uri())
            _keep(page, "report")
        with _serving(Path(made) / "pairs") as served:
            _take_the_app(browser, served)


def _take_the_app(browser: Browser, served: Served) -> None:
    views = (("ada", "light", "annotation"), ("bo", "dark", "annotation-dark"))
    for rater, scheme, name in views:
        served.enter(rater)
        with _page(browser, scheme) as page:
            page.goto(f"{served.url}?rater={rater}")
            page.wait_for_selector(READY)
            _keep(page, name)
    with _page(browser, "light") as page:
        page.goto(lead_link(served.folder, served.url))
        # The figures are computed meanwhile, for a minute on a busy machine.
        card = page.get_by_text("All verdicts in full")
        expect(card).to_be_visible(timeout=400_000)
        _keep(page, "lead")


@contextmanager
def _serving(folder: Path) -> Iterator[Served]:
    home = folder.with_name(f"{folder.name}-server")
    home.mkdir()
    served = Served(folder, home)
    served.start()
    try:
        yield served
    finally:
        if served.process and served.process.poll() is None:
            served.kill()


@contextmanager
def _page(
    browser: Browser, scheme: str, width: int = SIZE["width"], height: int = SIZE["height"]
) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        has_touch=width <= PHONE,
        is_mobile=width <= PHONE,
    )
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def _keep(page: Page, name: str) -> None:
    taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    PICTURES.mkdir(exist_ok=True)
    taken.quantize(COLOURS).save(PICTURES / f"{name}.png", optimize=True)


# ---- every state --------------------------------------------------------------------------------


def take_states(
    browser: Browser,
    folder: Path,
    sizes: Sequence[tuple[int, int]] = SIZES,
    look: Callable[[Page, str], None] = lambda page, state: None,
) -> None:
    """Photograph every state in every size, light and dark, into a folder. `look(page, state)` is
    called on each as well.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        main(["demo", f"{made}/pairs", "--study", "pairs", "--no-app"])
        (Path(made) / "of-sides").mkdir()
        panel_study(Path(made) / "of-sides", 12, _prose).rename(Path(made) / "sides")
        for kind in (*BLOCKS, "number", "several", "session"):
            _make_study(Path(made), kind)
        for study, states in _states().items():
            with _serving(Path(made) / study) as served:
                for width, height in sizes:
                    for scheme in SCHEMES:
                        for state, go in states:
                            name = f"{state}-{width}-{scheme}"
                            served.enter(name)
                            with _page(browser, scheme, width, height) as page:
                                go(page, _address(served, state, name))
                                if state == "refused":
                                    _answer_elsewhere(browser, served, name)
                                    if not page.locator(SAID).count():  # Enter would wave it away
                                        page.keyboard.press("Enter")
                                    page.locator(SAID).first.wait_for()
                                if state == "offline":
                                    served.kill()
                                    page.keyboard.press("Enter")
                                    page.wait_for_selector(".chip[data-state=offline]")
                                page.wait_for_timeout(400)
                                _save(page, folder / f"{name}.webp")
                                look(page, name)
                            if served.process and served.process.poll() is not None:
                                served.start()
        for width, _ in sizes:
            for scheme in SCHEMES:
                _sheet(folder, f"{width}-{scheme}")


def _address(served: Served, state: str, rater: str) -> str:
    if state.startswith("lead"):
        return lead_link(served.folder, served.url)
    return f"{served.url}?rater={rater}" if state != "entry" else served.url


def _save(page: Page, path: Path) -> None:
    Image.open(io.BytesIO(page.screenshot())).convert("RGB").save(path, quality=70, method=6)


def _sheet(folder: Path, ending: str) -> None:
    """All states of one width and scheme on one picture, each under its name."""
    paths = sorted(folder.glob(f"*-{ending}.webp"))
    taken = [Image.open(path) for path in paths]
    scaled = [each.resize((THUMB, each.height * THUMB // each.width)) for each in taken]
    height = max(each.height for each in scaled) + 20
    across = 8 if taken[0].height > taken[0].width else 5
    sheet = Image.new("RGB", (across * THUMB, -(-len(scaled) // across) * height), "white")
    draw = ImageDraw.Draw(sheet)
    for n, (path, picture) in enumerate(zip(paths, scaled, strict=True)):
        corner = n % across * THUMB, n // across * height
        draw.text((corner[0] + 4, corner[1] + 4), path.stem.removesuffix(f"-{ending}"), "black")
        sheet.paste(picture, (corner[0], corner[1] + 20))
    sheet.save(folder / f"sheet-{ending}.webp", quality=60, method=6)


def _prose(number: int, side: str) -> str:
    """A response that is like the other side's but for some words."""
    who = {"a": "The committee", "b": "The council"}[side]
    return f"{who} met on Thursday and talked about bridge {number}. " + "It will cost a lot. " * 9


def _make_study(home: Path, kind: str) -> None:
    files = home / f"{kind}-files"
    files.mkdir()
    text = TEXTS.get(kind, "It rains because air that rises cools, and cool air holds less water.")
    with (files / "items.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [["response", "system"], *([f"{text}\n" * (n > 2) or text, "m"] for n in range(6))]
        )
    rest = {"number": NUMBER, "several": SEVERAL}.get(kind, YES_NO)
    if kind in BLOCKS:
        name, more = BLOCKS[kind]
        label = "Conversation" if kind == "conversation" else "Response"
        rest += f'[[blocks]]\ncolumn = "response"\nlabel = "{label}"\nkind = "{name}"\n{more}\n'
    question = QUESTIONS.get(kind, "Does it answer?")
    rubric = RUBRIC.format(name="quality", question=question, variables='"response"', rest=rest)
    (files / "quality.toml").write_text(rubric, "utf-8")
    # Everybody who comes, once for each width and scheme, has all of the units.
    words = ["new", str(home / kind), "--items", str(files / "items.csv"), "--raters", "50"]
    main([*words, "--rubric", str(files / "quality.toml")])
    if kind == "session":
        (home / kind / "training.toml").write_text(PRACTICE, "utf-8")
        with (home / kind / "study.toml").open("a", encoding="utf-8") as file:
            file.write("\n" + SESSION)


def _states() -> dict[str, list[State]]:
    """The states by the study in which they are reached."""
    titles = [each.title for each in PAGES]
    lead = [(f"lead-{each.lower().replace(' ', '-')}", _to_lead(each)) for each in titles]
    pairs: list[State] = [
        ("entry", lambda page, url: _see(page, url, "label:has-text('Annotator code')")),
        *lead,
    ]
    sides: list[State] = [
        ("unit-pair", _unit),
        ("guidelines", _then("#")),
        ("differences", _then("Shift+%")),
        ("earlier", _then("l", "Enter", "l", "Enter", "!")),
        ("flag", _then("+")),
        ("skip", _then("-")),
        ("keys", _then("?")),
        ("editing", _then("l", "Enter", "Backspace")),
        ("chosen", _then("l")),
        ("finding", _then("/", "b", "r", "i", "d")),
        ("folded", _folded),
        ("refused", _then("l")),
        ("offline", _then("l")),
    ]
    session: list[State] = [
        ("welcome", lambda page, url: _see(page, url, "text=Before you begin")),
        ("consent", _through("Continue")),
        ("rubric", _through("Continue", "I agree and want to take part")),
        ("practice", _to_practice),
        ("feedback", _feedback),
    ]
    kinds = {kind: [(f"unit-{kind}", _unit)] for kind in (*BLOCKS, "number", "several")}
    kinds["several"].append(("done", _to_the_end))
    return {"pairs": pairs, "sides": sides, "session": session, **kinds}


def _see(page: Page, url: str, what: str) -> None:
    page.goto(url)
    page.locator(what).first.wait_for()


def _unit(page: Page, url: str) -> None:
    _see(page, url, READY)


def _answer_elsewhere(browser: Browser, served: Served, rater: str) -> None:
    with _page(browser, "light") as page:
        _then("r", "Enter")(page, f"{served.url}?rater={rater}")


def _then(*keys: str) -> Callable[[Page, str], None]:
    def go(page: Page, url: str) -> None:
        _unit(page, url)
        for key in keys:
            page.keyboard.press(key)
            page.wait_for_timeout(300)
            with suppress(Exception):
                page.wait_for_selector(READY, timeout=2_000)

    return go


def _through(*buttons: str) -> Callable[[Page, str], None]:
    def go(page: Page, url: str) -> None:
        _see(page, url, "text=Before you begin")
        for name in buttons:
            page.get_by_role("button", name=name).click()
            page.wait_for_timeout(1_200)

    return go


def _folded(page: Page, url: str) -> None:
    """The question put away, where there is little room."""
    _unit(page, url)
    if page.locator(".fold").is_visible():
        page.locator(".fold").click()


_to_practice = _through("Continue", "I agree and want to take part", "Continue")


def _feedback(page: Page, url: str) -> None:
    _to_practice(page, url)
    page.wait_for_selector(READY)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.get_by_text("What you read").wait_for()


def _to_the_end(page: Page, url: str) -> None:
    _unit(page, url)
    for done in range(1, 7):
        page.wait_for_selector(READY)
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        page.get_by_text(f"{done} of 6 answered").wait_for()
    page.get_by_text("All done").wait_for()


def _to_lead(title: str) -> Callable[[Page, str], None]:
    def go(page: Page, url: str) -> None:
        root, _, token = url.partition("?")
        _see(page, f"{root}{place_of(title)}?{token}", "text=Leading the study")
        expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
        page.locator(DRAWN.get(title, "h1")).first.wait_for(timeout=FIGURES_PATIENCE)
        page.wait_for_timeout(3_000)

    return go


def run(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=Path, metavar="FOLDER", help="every state, into a folder")
    parser.add_argument("--widths", type=int, nargs="*", default=[width for width, _ in SIZES])
    asked = parser.parse_args(arguments)
    if asked.states:
        sizes = [size for size in SIZES if size[0] in asked.widths]
        with sync_playwright() as playwright:
            take_states(launched_chromium(playwright), asked.states, sizes)
    else:
        take_all()


if __name__ == "__main__":
    run()
