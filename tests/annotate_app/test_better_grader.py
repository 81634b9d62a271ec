"""The lead's page A better grader, in a browser: what was tried, the proof, the command to copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from evenhand.analysis.planning.parting import part_clusters
from evenhand.study import open_study
from evenhand.study.lead.disagreements import sort_disagreement
from evenhand.study.store.logs.improvements import Tried, note_candidates, note_end, note_parts
from harness.annotator import SUBJECT
from harness.served import Served
from harness.studies import with_labels
from tests.annotate_app.test_lead import enter, turn_to

pytestmark = pytest.mark.browser

PAIRS = 60
COMMAND = "evenhand grade study --rubric=shorter --grader=openai:new --scope=all"
END = {
    "outcome": "better",
    "old": "openai:old",
    "new": "openai:new",
    "origin": "care.toml",
    "prompt": "",
    "price": 1.25,
    "verdict": "cannot_tell",
    "estimate": 0.3,
    "low": 0.1,
    "high": 0.5,
    "before": 0.5,
    "after": 0.8,
    "level": 0.0125,
    "look": 1,
    "clusters": 30,
    "units": 30,
    "difference": "--- openai:old\n+++ openai:new\n-Compare.\n+Compare them with **care** <b>.",
    "command": COMMAND,
}


@pytest.fixture(scope="module")
def served(make_study: Callable[..., Path], serve_study: Callable[[Path], Served]) -> Served:
    """A study in which a grader that is right more often was proved to be better."""
    folder = make_study(PAIRS + 1, raters_per_unit=3)
    with open_study(folder) as study:
        units = [f"p{n:04d}|{SUBJECT}" for n in range(1, PAIRS + 1)]
        truth = ["LRC"[n % 3] for n in range(PAIRS)]
        other = ["LRC"[(n + 1) % 3] for n in range(PAIRS)]
        given = {who: list(truth) for who in ("ann", "ben", "openai:old", "openai:new")}
        given["ben"][::7] = other[::7]
        given["openai:old"][::2] = other[::2]
        given["openai:new"][::9] = other[::9]
        graders = [who for who in given if ":" in who]
        with_labels(study, given, "shorter", units=units, graders=graders)
        strata = {unit.partition("|")[0]: "any" for unit in units}
        parts = part_clusters(strata, seed=study.config.seed, rubric="shorter")
        note_parts(study.store, "shorter", parts, "pair", "lead")
        tried = {"openai:new": Tried(origin="care.toml", is_new=True, has_own_text=False)}
        note_candidates(study.store, "shorter", tried, "lead")
        rounds = [{"clusters": 18, "kappas": {"openai:old": 0.25, "openai:new": 0.8}}]
        sizes = {part: list(parts.values()).count(part) for part in ("learn", "choose", "prove")}
        note_end(study.store, "shorter", END | {"parts": sizes, "rounds": rounds}, "lead")
        about = {"rubric": "shorter", "unit_id": units[0], "grader": "openai:old"}
        sort_disagreement(study, "lead", **about, kind="grader_wrong")
    return serve_study(folder)


def opened(context: BrowserContext, served: Served) -> Page:
    page = context.new_page()
    enter(page, served)
    turn_to(page, "A better grader")
    expect(page.get_by_text("The best one, openai:new, was proved")).to_be_visible(timeout=60_000)
    page.wait_for_selector("[data-test-script-state=notRunning]")
    return page


def test_what_was_tried_and_the_command_that_comes_next(
    new_context: Callable[..., BrowserContext], served: Served
) -> None:
    page = opened(new_context(), served)
    tried = page.get_by_role("table", name="95% intervals on the labels to choose on")
    rows = [row.get_by_role("cell").all_inner_texts() for row in tried.get_by_role("row").all()]
    assert [row[0] for row in rows[1:]] == ["openai:old", "openai:new"]
    assert rows[2][1:4] == ["care.toml", "0.80", "18"]
    gain, low, high = map(float, rows[2][4:7])
    assert 0 < low < gain < high
    errors = page.get_by_role("table", name="What openai:old said where most people said otherwise")
    expect(errors.get_by_role("row").nth(1)).to_be_visible()
    kinds = page.get_by_role("table", name="Disagreements that were sorted, by kind")
    expect(kinds.get_by_role("row").last).to_contain_text("openai:old")
    expect(page.get_by_text("+Compare them with **care** <b>.")).to_be_visible()
    code = page.get_by_text(COMMAND)
    expect(code).to_be_visible()
    expect(page.get_by_text("keys for models are there")).to_be_visible()


def test_the_command_is_copied_with_the_keyboard_alone(
    new_context: Callable[..., BrowserContext], served: Served
) -> None:
    context = new_context(permissions=["clipboard-read", "clipboard-write"])
    page = opened(context, served)
    copy = page.get_by_role("button", name="Copy to clipboard").first
    expect(copy).to_be_visible()
    copy.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(f"navigator.clipboard.readText().then(t => t === {COMMAND!r})")


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_it_can_be_used_by_everyone_at_any_width(
    new_context: Callable[..., BrowserContext],
    served: Served,
    axe: Callable[[Page, str], None],
    scheme: str,
    width: int,
) -> None:
    context = new_context(color_scheme=scheme, viewport={"width": 1440, "height": 1000})
    page = opened(context, served)
    page.set_viewport_size({"width": width, "height": 1000})
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")
    axe(page, f"A better grader, {scheme}, {width}")
