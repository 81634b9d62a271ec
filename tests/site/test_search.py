"""The site opens from its folder: its search finds pages there, and nothing comes from a host."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

pytest.importorskip("mkdocs", reason="`make docs` installs what builds the site")
pytest.importorskip("material")

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page on which every request and every complaint counts."""
    page = browser.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    page.close()
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert complaints == []


@pytest.mark.parametrize("start", ["index.html", "cases/llmbar.html"])
def test_a_word_that_is_typed_leads_to_its_page(site, page, start):
    page.goto((site / start).as_uri())
    page.get_by_role("textbox", name="Search").fill("Krippendorff")
    found = page.locator(".md-search-result__link")
    expect(found.first).to_be_visible()
    found.filter(has_text="Statistics").first.click()
    page.wait_for_url((site / "statistics.html").as_uri() + "*")
    expect(page.locator("article")).to_contain_text("Krippendorff")


def test_the_logs_of_benchmarks_are_not_among_what_is_found(site):
    index = (site / "search" / "search_index.js").read_text("utf-8")
    assert '"location":"evidence.html' in index
    assert '"location":"results/' not in index
    assert (site / "results" / "decisions.html").is_file()
