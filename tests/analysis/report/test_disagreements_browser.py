"""The page of all disagreements in a real Chromium: searched, filtered, for everyone, on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evenhand.analysis import Analysis
from evenhand.analysis.report import ReportContext, write_report
from tests.analysis.report.test_disagreements_page import PAGE, texts_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every unit has long texts; one that no other has the word parrot, too."""
    known = texts_of(analysis, "a rather long text " * 40 + "x" * 300)
    last = analysis.disagreements[-1]
    known["texts"][last.rubric, last.unit_id] = {"Response": "The Parrot <b>looked</b> up."}  # type: ignore[index]
    out = tmp_path_factory.mktemp("report")
    write_report(analysis, ReportContext("A study", synthetic=True, **known), out)  # type: ignore[arg-type]
    return out / PAGE


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    """The page; whatever it complains of or asks for fails the test."""
    context = browser.new_context(bypass_csp=False)
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: said.append(request.url))
    page.goto(report.as_uri())
    yield page
    context.close()
    assert said == [report.as_uri()]


def shown(page: Page) -> list[str]:
    ids = page.locator("article:visible h2").all_inner_texts()
    said = page.locator("#shown").inner_text()
    assert said.startswith(f"{len(ids)} of "), said
    return [each.partition(" ")[0] for each in ids]


def test_search_and_filters_find_what_matches(page, analysis):
    found = analysis.disagreements
    units = {each.unit_id for each in found}
    assert len(shown(page)) == 25
    page.get_by_role("button", name="Show more").click()
    assert len(shown(page)) == min(50, len(units))
    assert page.evaluate("document.activeElement.tagName") == "H2", "the first that is new"

    search = page.get_by_label("Search")
    search.fill("looked  PARROT")
    assert shown(page) == [found[-1].unit_id]
    search.fill("")
    page.get_by_label("Grader").select_option("provider:hard")
    page.get_by_label("Part of the sample").select_option(label="second")
    of_both = {e.unit_id for e in found if e.grader == "provider:hard" and "|second" in e.unit_id}
    assert set(shown(page)) == of_both
    assert of_both

    # The first two that were found were sorted, as unclear; they are another grader's.
    page.get_by_label("Part of the sample").select_option("*")
    page.get_by_label("Sorted as").select_option(label="Rubric unclear")
    assert found[0].grader != "provider:hard"
    assert shown(page) == []
    page.get_by_label("Grader").select_option(found[0].grader)
    assert set(shown(page)) == {each.unit_id for each in found[:2]}
    search.fill("no such word")
    assert shown(page) == []
    search.press("Enter")
    assert page.url.endswith(PAGE)


def test_texts_unfold_and_only_these_are_printed(page):
    quotes = page.locator("article:visible .read blockquote")
    assert quotes.first.is_hidden()
    page.get_by_role("button", name="Unfold all texts").press("Enter")
    assert quotes.first.is_visible()
    page.emulate_media(media="print", color_scheme="dark")
    assert quotes.first.is_visible()
    assert page.locator("form").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


@pytest.mark.thorough
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_axe_finds_no_fault_and_nothing_scrolls_sideways(browser, report, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(
        color_scheme=scheme,  # type: ignore[arg-type]
        viewport={"width": width, "height": 900},
        bypass_csp=True,
    )
    page = context.new_page()
    page.goto(report.as_uri())
    page.get_by_role("button", name="Unfold all texts").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    rules = ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]
    result = Axe().run(page, options={"runOnly": rules, "resultTypes": ["violations"]})
    context.close()
    assert result.violations_count == 0, result.generate_report()
