"""The site is built without a warning, holds what the code knows, and loads nothing from afar."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="`make docs` installs what builds the site")
pytest.importorskip("material")

import evenhand.analysis
from docs.doctest_blocks import in_blocks
from docs.site_map import ELSEWHERE, ROOT
from docs.site_pages import notebook_page
from evenhand.cli.main import GROUPS

pytestmark = pytest.mark.slow

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a browser fetches by itself, and the attribute that says whence."""


class Fetched(HTMLParser):
    """Collects the addresses that a page fetches by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADED.get(tag, ""))
        if address:
            self.addresses.append(address)


def text_of(page: Path) -> str:
    """What a page says, without its marks."""
    return unescape(re.sub(r"<[^>]+>", "", page.read_text("utf-8")))


def test_no_page_loads_anything_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        fetched = Fetched()
        fetched.feed(page.read_text("utf-8"))
        assert len(fetched.addresses) > 2
        afar = [each for each in fetched.addresses if re.match(r"(\w+:)?//", each)]
        assert not afar, page.name
        # With an element of this class the theme would fetch mermaid from a CDN.
        assert 'class="mermaid"' not in page.read_text("utf-8")
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(\w+:)?//", sheet.read_text("utf-8"))


class Links(HTMLParser):
    """Collects where a page's own text leads: the menus, which lead everywhere, are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.targets = False, set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = self.inside or tag == "article"
        if self.inside and tag == "a":
            self.targets.add((dict(attrs).get("href") or "").partition("#")[0])

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "article"


def led_to(page: Path) -> set[Path]:
    links = Links()
    links.feed(page.read_text("utf-8"))
    return {(page.parent / target).resolve() for target in links.targets if "://" not in target}


def test_every_page_is_two_clicks_from_the_first_or_from_start(site):
    pages = {page.resolve() for page in site.rglob("*.html")} - {(site / "404.html").resolve()}
    reached = {(site / name).resolve() for name in ("index.html", "start.html")}
    for _ in range(2):
        reached |= set().union(*map(led_to, reached & pages))
    assert pages - reached == set()


def test_every_page_from_elsewhere_is_there(site):
    for page in ELSEWHERE.values():
        assert (site / page).with_suffix(".html").is_file()


def test_the_list_for_language_models_leads_to_pages_of_the_site(site):
    linked = re.findall(r"^- \[.+?\]\((.+?)\): \S", (site / "llms.txt").read_text("utf-8"), re.M)
    assert len(linked) > 20
    assert [page for page in linked if not (site / page).is_file()] == []
    assert (site / "SKILL.md").read_text("utf-8") == (ROOT / "SKILL.md").read_text("utf-8")


def test_every_verb_stands_in_the_reference_with_its_help(site):
    verbs = text_of(site / "verbs.html")
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
    assert {name for name in public if f'id="evenhand.analysis.{name}"' not in page} <= PLANNING
    assert "&gt;&gt;&gt;" in page


PLANNING = {"clusters_to_decide", "half_width", "pass_chance", "units_needed"}
"""What `evenhand plan` is made of, and nobody calls alone."""


def test_links_out_of_the_checkout_become_links_of_the_site(site):
    home = (site / "index.html").read_text("utf-8")
    assert 'href="labels.html"' in home
    assert 'href="cases/llmbar.html"' in home
    case = (site / "cases" / "dices.html").read_text("utf-8")
    assert 'href="../notebooks/dices.html"' in case
    assert 'href="labels.py"' not in case  # no page: its words alone


def test_diagrams_are_pictures(site):
    assert re.search(r'src="pictures/diagram-\w+\.svg"', (site / "architecture.html").read_text())


def test_examples_of_docstrings_become_blocks():
    assert in_blocks("Adds.\n\n>>> 1 + 1\n2\n\nMore.") == (
        "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    )


def test_a_notebook_becomes_text_code_and_what_it_showed():
    shown = {"data": {"text/html": ["<p>one</p>\n", "\n", "<p>two</p>"], "text/plain": ["1"]}}
    cells = [
        {"cell_type": "markdown", "source": ["# A\n", "b"]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"text": ["2\n"]}, shown]},
    ]
    assert notebook_page({"cells": cells}) == (
        "---\nhide: [toc]\n---\n\n# A\nb\n\n```py\n1 + 1\n```\n\n```text\n2\n```\n\n"
        '<div><template shadowrootmode="open"><p>one</p>\n<p>two</p></template></div>\n'
    )
