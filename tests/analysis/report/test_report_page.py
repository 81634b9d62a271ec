"""The report in a real Chromium: for everyone, in light and dark, on a phone and on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pandas as pd
import pytest

from evenhand.analysis import Analysis, analyse
from evenhand.analysis.report import ReportContext, write_report
from evenhand.analysis.report.blocks import Chart, Table, csv_of
from evenhand.analysis.report.charts import ROLES
from evenhand.analysis.report.files import sections_of
from evenhand.analysis.report.source import BesidePublished, Source
from evenhand.study.settings.analysis import PublishedFigures
from tests.analysis.report.small_study import SCALE, tables, timed
from tests.analysis.report.test_disagreements_page import PAGE, texts_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
FIGURE = {"rubric": "R", "statistic": "observed_agreement", "between": "people and graders"}
PUBLISHED = {
    "citation": "A 2025",
    "figure": [FIGURE | {"of": "Others", "value": "94", "unit": "percent"}],
}


@pytest.fixture(scope="module")
def found() -> tuple[Analysis, ReportContext]:
    """With every kind of block, long names and long texts among them."""
    long = "provider:a-model-whose-name-is-rather-long-20260101@0f3a"
    ratings, units = timed(graders=("provider:sure", long, "provider:constant"))
    found = analyse(ratings, units, [SCALE], resamples=100, slices=["topic"])
    listed = {(each.rubric, each.unit_id) for each in found.disagreements}
    context = ReportContext(
        "A study",
        synthetic=True,
        facts={"seed": 7},
        notes=["12 labels set aside"],
        rubric_titles={"R": "The rubric"},
        beside=BesidePublished(PublishedFigures.model_validate(PUBLISHED), ("provider:sure",)),
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
    blocks = [block for section in sections_of(Source(*found)) for block in section.every_block()]
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


@pytest.mark.parametrize(
    ("scheme", "width"), [pytest.param("light", 1280, marks=pytest.mark.thorough), ("dark", 390)]
)
@pytest.mark.journey
def test_axe_finds_no_fault(opened, scheme, width):
    """Schemes change nothing but colours and widths nothing but sizes: each is seen once."""
    from axe_playwright_python.sync_playwright import Axe

    page = opened(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    rules = ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]
    # What is in order need not be told node by node, which takes most of the time.
    result = Axe().run(page, options={"runOnly": rules, "resultTypes": ["violations"]})

    assert result.violations_count == 0, result.generate_report()


@pytest.mark.parametrize("folded", [True, False])
def test_on_a_phone_the_page_does_not_scroll_sideways(opened, folded):
    page = opened(viewport=PHONE)
    if not folded:
        page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")

    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    drawn = page.locator(".open figure.chart svg")
    widths = drawn.evaluate_all("all => all.map(node => node.getBoundingClientRect().width)")
    assert 0 < max(widths) <= PHONE["width"], "a figure that decides is seen whole"
    assert page.locator("figure.chart svg").count() > 5


def test_pictures_change_with_light_and_dark(opened):
    colours = set()
    for scheme in ("light", "dark"):
        page = opened(color_scheme=scheme)
        text = page.locator("figure.chart svg text").first
        colours.add(text.evaluate("node => getComputedStyle(node).fill"))

    assert len(colours) == 2
    assert "rgb(0, 0, 0)" not in colours


def test_paper_shows_what_was_unfolded_and_no_more_in_black(opened):
    page = opened(color_scheme="dark")
    for shut in ("details:has(> .cards)", ".card details", ".chart details"):
        page.locator(shut).first.evaluate("node => node.open = true")
    page.emulate_media(media="print", color_scheme="dark")

    def heights(selector: str) -> list[float]:
        return page.locator(selector).evaluate_all(
            "all => all.map(node => node.getBoundingClientRect().height)"
        )

    assert min(heights(".card details[open] .evidence")) > 20
    assert min(heights(".chart details[open] table")) > 20
    assert max(heights("details:not([open])")) == 0
    assert max(heights("details:not([open]) blockquote")) == 0
    assert min(heights(".paper")) > 10, "paper says what it leaves out"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


def saved(page: Page, button: str, at: int = 0) -> tuple[str, str]:
    """The name and the text of what a button hands over."""
    with page.expect_download() as handed:
        page.locator(f"button:text-is('{button}')").nth(at).click()
    return handed.value.suggested_filename, handed.value.path().read_text("utf-8")


def test_each_figure_hands_over_a_picture_that_opens_alone(opened):
    page = opened(color_scheme="dark", accept_downloads=True)
    figures = page.locator("figure.chart")
    assert page.locator("button:text-is('SVG')").count() == figures.count() > 5
    name, text = saved(page, "SVG")
    assert name == figures.first.locator("> figcaption").get_attribute("id") + ".svg"
    root = ElementTree.fromstring(text)  # noqa: S314 - our own page's
    assert "var(" not in text
    assert ROLES["series-1"] in text, "light, on a dark page too"
    said = " ".join(node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text"))
    assert "kappa with annotators, and the human ceiling (synthetic)" in said
    assert "Hollow points: baselines." in said


def test_each_table_hands_over_the_csv_that_is_written_too(opened, page_tables):
    page = opened(accept_downloads=True)
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    captions = page.locator("caption:has(button)")
    assert captions.count() == len(page_tables)
    kinds = {  # one of each; a browser does not hand over dozens of files at once
        "with bounds": lambda cells, rows: any(cell.interval for cell in cells),
        "in groups": lambda cells, rows: any(not row.cells for row in rows),
        "with asides": lambda cells, rows: any(cell.aside for cell in cells),
        "published": lambda cells, rows: any(cell.published for cell in cells),
    }
    for is_one in kinds.values():
        at, table = next(
            (at, table)
            for at, table in enumerate(page_tables)
            if is_one([cell for row in table.rows for cell in row.cells], table.rows)
        )
        name, text = saved(page, "CSV", at)
        assert name == f"{table.name}.csv"
        assert text.splitlines() == csv_of(table, synthetic=True).splitlines()


def test_letters_of_a_figure_can_be_read_on_a_phone(opened):
    page = opened(viewport=PHONE)
    heights = page.locator("figure.chart svg").evaluate_all(
        """all => all.flatMap(svg => {
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            return [...svg.querySelectorAll("text")].map(
                text => scale * parseFloat(getComputedStyle(text).fontSize));
        })"""
    )
    assert min(heights) >= 9


def test_on_paper_a_heading_stays_with_its_figure(opened):
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


def test_a_link_opens_what_its_anchor_is_folded_in(opened):
    page = opened()
    caption = page.locator("#bias-audit .folds caption").first
    assert not caption.is_visible()
    page.evaluate("name => location.hash = name", caption.get_attribute("id"))
    caption.wait_for(state="visible")


@pytest.mark.journey
def test_all_can_be_unfolded_at_once_and_folded_again(opened):
    page = opened()
    button, shut = page.locator("nav .all"), page.locator("details:not([open])")
    assert shut.count() == page.locator("details").count() > 10
    button.click()
    assert shut.count() == 0
    assert button.text_content() == "Close all"
    button.click()
    assert shut.count() == page.locator("details").count()


def test_the_navigation_stays_in_view_and_marks_the_section(opened):
    for width in (1440, PHONE["width"]):
        page = opened(viewport={"width": width, "height": 700})
        for wanted in ("bias-audit", "verdicts"):
            page.locator(f"#{wanted}").evaluate(
                "node => node.scrollIntoView({behavior: 'instant'})"
            )
            here = page.locator("nav a[aria-current]")
            page.locator(f"nav a[aria-current][href='#{wanted}']").wait_for(state="attached")
            assert here.count() == 1
            box = here.bounding_box()
            assert 0 <= box["y"] <= 700
            assert 0 <= box["x"] <= width


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two rubrics, unfolded: also what `--full` writes."""
    ratings, units = tables()
    both = pd.concat([ratings, ratings.assign(rubric="S")])
    found = analyse(both, units, [SCALE, replace(SCALE, name="S")], resamples=20)
    out = tmp_path_factory.mktemp("of_two")
    titles = {"R": "Right", "S": '"Said" & so'}
    write_report(found, ReportContext("Two", rubric_titles=titles), out, full=True)
    return out / "report.html"


@pytest.mark.thorough
def test_one_rubric_can_be_chosen(browser, of_two):
    page = browser.new_page()
    page.goto(of_two.as_uri())

    def seen() -> dict[str, int]:
        """How many elements of each rubric are seen."""
        shown = page.locator("[data-rubric]:visible")
        every = shown.evaluate_all("all => all.map(node => node.dataset.rubric)")
        return dict(Counter(every))

    whole = seen()
    assert len(whole) == 2
    assert min(whole.values()) > 15
    for title, count in whole.items():
        page.get_by_role("button", name=title, exact=True).click()
        assert seen() == {title: count}
        assert page.locator("button[aria-pressed=true]").all_text_contents() == [title]
    hidden = page.locator("section:visible h2").count()
    page.get_by_role("button", name="All rubrics").click()
    assert seen() == whole
    assert page.locator("section:visible h2").count() == hidden, "each speaks of both"
    page.close()


def test_a_full_report_is_unfolded_on_the_screen_and_on_paper(browser, of_two):
    page = browser.new_page()
    page.goto(of_two.as_uri())
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("details[open]").count() > 30
    page.emulate_media(media="print")
    tables_on_paper = page.locator("table").evaluate_all(
        "all => all.map(node => node.getBoundingClientRect().height)"
    )
    assert min(tables_on_paper) > 10
    assert page.locator(".paper").count() == 0
    page.close()


# --- The page of all disagreements: searched, filtered, on paper ----------------------------------
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def listing(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every unit has long texts; one that no other has the word parrot, too."""
    known = texts_of(analysis, "a rather long text " * 40 + "x" * 300)
    last = analysis.disagreements[-1]
    known["texts"][last.rubric, last.unit_id] = {"Response": "The Parrot <b>looked</b> up."}  # type: ignore[index]
    out = tmp_path_factory.mktemp("report")
    write_report(analysis, ReportContext("A study", synthetic=True, **known), out)  # type: ignore[arg-type]
    return out / PAGE


@pytest.fixture
def page(browser: Browser, listing: Path) -> Iterator[Page]:
    """The page; whatever it complains of or asks for fails the test."""
    context = browser.new_context(bypass_csp=False)
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: said.append(request.url))
    page.goto(listing.as_uri())
    yield page
    context.close()
    assert said == [listing.as_uri()]


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
def test_axe_finds_no_fault_and_nothing_scrolls_sideways(browser, listing, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(
        color_scheme=scheme,  # type: ignore[arg-type]
        viewport={"width": width, "height": 900},
        bypass_csp=True,
    )
    page = context.new_page()
    page.goto(listing.as_uri())
    page.get_by_role("button", name="Unfold all texts").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    rules = ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]
    result = Axe().run(page, options={"runOnly": rules, "resultTypes": ["violations"]})
    context.close()
    assert result.violations_count == 0, result.generate_report()
