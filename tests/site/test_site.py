"""The site is built without a warning, holds what the code knows, and loads nothing from afar. It
opens from its folder, where its search finds pages.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

pytest.importorskip("mkdocs", reason="`make docs` installs what builds the site")
pytest.importorskip("material")

import evenhand.analysis
from docs.doctest_blocks import in_blocks
from docs.site_map import ELSEWHERE, ROOT
from docs.site_pages import notebook_page
from evenhand.cli.main import GROUPS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which `make docs` would build it, without a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stderr.splitlines() if not line.startswith("INFO")]
    return folder


LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Addresses(HTMLParser):
    """What a browser fetches of a page by itself, and where the page's own text leads: the menus,
    which lead everywhere, are left out.
    """

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.inside, self.targets, self.fetched = False, set[str](), list[str]()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if address := given.get(LOADED.get(tag, "")):
            self.fetched.append(address)
        self.inside = self.inside or tag == "article"
        if self.inside and tag == "a":
            self.targets.add((given.get("href") or "").partition("#")[0])

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "article"


def test_no_page_loads_anything_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        fetched = Addresses(page).fetched
        assert len(fetched) > 2
        assert not [each for each in fetched if re.match(r"(\w+:)?//", each)], page.name
        # With an element of this class the theme would fetch mermaid from a CDN.
        assert 'class="mermaid"' not in page.read_text("utf-8")
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(\w+:)?//", sheet.read_text("utf-8"))


def test_every_page_is_two_clicks_from_the_first_or_from_start(site):
    def led_to(page: Path) -> set[Path]:
        targets = (each for each in Addresses(page).targets if "://" not in each)
        return {(page.parent / target).resolve() for target in targets}

    pages = {page.resolve() for page in site.rglob("*.html")} - {(site / "404.html").resolve()}
    reached = {(site / name).resolve() for name in ("index.html", "start.html")}
    for _ in range(2):
        reached |= set().union(*map(led_to, reached & pages))
    assert pages - reached == set()
    for page in ELSEWHERE.values():
        assert (site / page).with_suffix(".html").is_file()


def test_the_list_for_language_models_leads_to_pages_of_the_site(site):
    linked = re.findall(r"^- \[.+?\]\((.+?)\): \S", (site / "llms.txt").read_text("utf-8"), re.M)
    assert len(linked) > 20
    assert [page for page in linked if not (site / page).is_file()] == []
    assert (site / "SKILL.md").read_text("utf-8") == (ROOT / "SKILL.md").read_text("utf-8")


def test_every_verb_stands_in_the_reference_with_its_help(site):
    verbs = unescape(re.sub(r"<[^>]+>", "", (site / "verbs.html").read_text("utf-8")))
    for verb in (verb for verbs in GROUPS.values() for verb in verbs):
        assert f"usage: evenhand {verb.name} " in verbs
    assert "usage: evenhand rubric check " in verbs


def test_the_python_reference_has_every_function_of_the_analysis(site):
    page = (site / "api.html").read_text("utf-8")
    public = {
        name
        for name in evenhand.analysis.__all__
        if callable(each := getattr(evenhand.analysis, name)) and not isinstance(each, type)
    }
    # What `evenhand plan` is made of, and nobody calls alone.
    planning = {"clusters_to_decide", "half_width", "pass_chance", "units_needed"}
    assert {name for name in public if f'id="evenhand.analysis.{name}"' not in page} <= planning
    assert "&gt;&gt;&gt;" in page


def test_links_out_of_the_checkout_become_links_of_the_site_and_diagrams_pictures(site):
    home, case, architecture = (
        (site / f"{name}.html").read_text("utf-8")
        for name in ("index", "cases/dices", "architecture")
    )
    assert 'href="labels.html"' in home
    assert 'href="cases/llmbar.html"' in home
    assert 'href="../notebooks/dices.html"' in case
    assert 'href="labels.py"' not in case  # no page: its words alone
    assert re.search(r'src="pictures/diagram-\w+\.svg"', architecture)


def test_examples_become_blocks_and_a_notebook_text_code_and_what_it_showed():
    adds = "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    assert in_blocks("Adds.\n\n>>> 1 + 1\n2\n\nMore.") == adds
    shown = {"data": {"text/html": ["<p>one</p>\n", "\n", "<p>two</p>"], "text/plain": ["1"]}}
    cells = [
        {"cell_type": "markdown", "source": ["# A\n", "b"]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"text": ["2\n"]}, shown]},
    ]
    assert notebook_page({"cells": cells}) == (
        "---\nhide: [toc]\n---\n\n# A\nb\n\n```py\n1 + 1\n```\n\n```text\n2\n```\n\n"
        '<div><template shadowrootmode="open"><p>one</p>\n<p>two</p></template></div>\n'
    )


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page on which every request and every complaint counts."""
    page = browser.new_page()
    asked, complaints = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    page.close()
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert complaints == []


@pytest.mark.browser
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
