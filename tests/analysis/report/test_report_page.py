"""The report in a real Chromium: for everyone, in light and dark, on a phone and on paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from evenhand.analysis import Analysis, analyse
from evenhand.analysis.report import ReportContext, write_report
from evenhand.analysis.report.blocks import Chart, Table
from evenhand.analysis.report.charts.style import ROLES
from evenhand.analysis.report.document import sections_of
from evenhand.analysis.report.table_files import csv_of
from evenhand.rubrics import Published
from tests.analysis.report.small_study import SCALE, tables

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def found() -> tuple[Analysis, ReportContext]:
    """With every kind of block, long names and long texts among them."""
    long = "provider:a-model-whose-name-is-rather-long-20260101@0f3a"
    ratings, units = tables(graders=("provider:sure", long, "provider:constant"))
    order = ratings.groupby("rater_id").cumcount()
    stamps = [f"2026-03-02T10:{n // 60:02}:{n % 60:02}+00:00" for n in order]
    ratings = ratings.assign(seconds=20.0 + order % 7, created_at=stamps)
    units = units.assign(topic=["tax", "war"] * (len(units) // 2))
    found = analyse(ratings, units, [SCALE], resamples=100, slices=["topic"])
    listed = {(each.rubric, each.unit_id) for each in found.disagreements}
    context = ReportContext(
        "A study",
        synthetic=True,
        facts={"seed": 7},
        notes=["12 labels set aside"],
        rubric_titles={"R": "The rubric"},
        published={"R": [Published(raters="Others", source="A 2025", agreement="94%")]},
        texts={unit: {"Response": "word " * 500 + "x" * 500} for unit in listed},
        remarks={unit: {"ann": "not clear to me"} for unit in listed},
    )
    return found, context


@pytest.fixture(scope="module")
def report(found: tuple[Analysis, ReportContext], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    write_report(*found, out)
    return out / "report.html"


@pytest.fixture(scope="module")
def page_tables(found: tuple[Analysis, ReportContext]) -> list[Table]:
    """The tables of the page, in order."""
    blocks = [block for section in sections_of(*found) for block in section.blocks]
    return [table for each in blocks if isinstance(each, Chart | Table) for table in each.data]


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Callable[..., Page]]:
    """opened(**context settings) -> the report; whatever the page complains of fails the test."""
    contexts, said = [], []

    def open_page(**settings: object) -> Page:
        context = browser.new_context(**settings)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: said.append(request.url))
        page.goto(report.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == [report.as_uri()] * len(contexts), "no complaint, nothing loaded"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_no_fault(opened: Callable[..., Page], scheme: str, width: int) -> None:
    """Schemes change nothing but colours and widths nothing but sizes: each is seen once."""
    from axe_playwright_python.sync_playwright import Axe

    page = opened(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    rules = ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]
    # What is in order need not be told node by node, which takes most of the time.
    result = Axe().run(page, options={"runOnly": rules, "resultTypes": ["violations"]})

    assert result.violations_count == 0, result.generate_report()


@pytest.mark.parametrize("folded", [True, False])
def test_on_a_phone_the_page_does_not_scroll_sideways(
    opened: Callable[..., Page], folded: bool
) -> None:
    page = opened(viewport=PHONE)
    if not folded:
        page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")

    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator("figure.chart svg").count() > 5


def test_pictures_change_with_light_and_dark(opened: Callable[..., Page]) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        page = opened(color_scheme=scheme)
        text = page.locator("figure.chart svg text").first
        colours.add(text.evaluate("node => getComputedStyle(node).fill"))

    assert len(colours) == 2
    assert "rgb(0, 0, 0)" not in colours


def test_paper_shows_the_evidence_and_what_was_unfolded_in_black(
    opened: Callable[..., Page],
) -> None:
    page = opened(color_scheme="dark")
    page.locator(".chart details").first.evaluate("node => node.open = true")
    page.emulate_media(media="print", color_scheme="dark")

    def heights(selector: str) -> list[float]:
        return page.locator(selector).evaluate_all(
            "all => all.map(node => node.getBoundingClientRect().height)"
        )

    assert min(heights(".card .evidence")) > 20
    assert min(heights(".chart details[open] table")) > 20
    assert max(heights("details:not([open]) blockquote")) == 0
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


def test_pictures_say_what_they_show(opened: Callable[..., Page]) -> None:
    page = opened()

    for picture in page.locator("figure.chart svg").all():
        assert len(picture.get_attribute("aria-label") or "") > 60
        assert picture.get_attribute("role") == "img"


def saved(page: Page, button: str, at: int = 0) -> tuple[str, str]:
    """The name and the text of what a button hands over."""
    with page.expect_download() as handed:
        page.locator(f"button:text-is('{button}')").nth(at).click()
    return handed.value.suggested_filename, handed.value.path().read_text("utf-8")


def test_each_figure_hands_over_a_picture_that_opens_alone(opened: Callable[..., Page]) -> None:
    page = opened(color_scheme="dark", accept_downloads=True)
    figures = page.locator("figure.chart")
    assert page.locator("button:text-is('SVG')").count() == figures.count() > 5
    name, text = saved(page, "SVG")
    assert name == figures.first.locator("> figcaption").get_attribute("id") + ".svg"
    root = ElementTree.fromstring(text)  # noqa: S314 - our own page's
    assert "var(" not in text
    assert ROLES["series-1"] in text, "light, on a dark page too"
    said = " ".join(node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "kappa with people, and the human ceiling (synthetic)" in said
    assert "Hollow points: baselines." in said


def test_each_table_hands_over_the_csv_that_is_written_too(
    opened: Callable[..., Page], page_tables: list[Table]
) -> None:
    page = opened(accept_downloads=True)
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    captions = page.locator("caption:has(button)")
    assert captions.count() == len(page_tables)
    for at, table in enumerate(page_tables):
        name, text = saved(page, "CSV", at)
        assert name == f"{table.name}.csv"
        assert text.splitlines() == csv_of(table, synthetic=True).splitlines()


def test_letters_of_a_figure_can_be_read_on_a_phone(opened: Callable[..., Page]) -> None:
    page = opened(viewport=PHONE)
    heights = page.locator("figure.chart svg").evaluate_all(
        """all => all.flatMap(svg => {
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            return [...svg.querySelectorAll("text")].map(
                text => scale * parseFloat(getComputedStyle(text).fontSize));
        })"""
    )
    assert min(heights) >= 9


def test_on_paper_a_heading_stays_with_its_figure(opened: Callable[..., Page]) -> None:
    page = opened()
    page.emulate_media(media="print")

    def style(selector: str, what: str) -> set[str]:
        return set(
            page.locator(selector).evaluate_all(
                "(all, what) => all.map(node => getComputedStyle(node)[what])", what
            )
        )

    assert style("h2, h3, h4, figure.chart > figcaption, caption", "breakAfter") == {"avoid"}
    assert style("figure.chart > .scroll", "breakInside") == {"avoid"}
    assert style("button", "display") == {"none"}
