"""The real app on a free port, on a small study, and annotators at work in a real Chromium."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from evenhand.annotate_app import sites
from evenhand.annotate_app.app import make_app
from evenhand.annotate_app.sites import Site
from evenhand.cli.main import lead_link, main
from harness.annotator import CLOCK, Annotator, arrive
from harness.led_study import led_study
from harness.served import Served, ServedTogether
from harness.studies import panel_study
from harness.visits import Visit
from tests.annotate_app.leading import KNOWN, SESSION, inside, turn_to
from tests.annotate_app.together import two_studies

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page


@pytest.fixture(scope="session")
def make_study(tmp_path_factory) -> Callable[..., Path]:
    """make_study(pairs, response=function of (pair number, side), **annotation settings) -> the
    folder of a new study."""
    return lambda pairs, *arguments, **settings: panel_study(
        tmp_path_factory.mktemp("study"), pairs, *arguments, **settings
    )


@pytest.fixture(scope="session")
def make_items(tmp_path_factory) -> Callable[..., Path]:
    """make_items(rows, option, ..., rubric=text) -> the folder of a study of these rows, of which
    the first is the header, by `evenhand new`."""

    def make(rows: Iterable[Sequence[object]], *options: str, rubric: str = "") -> Path:
        folder = tmp_path_factory.mktemp("items")
        items, file = folder / "items.csv", folder / "rubric.toml"
        with items.open("w", newline="") as out:
            csv.writer(out).writerows(rows)
        file.write_text(rubric)
        own = ["--rubric", str(file)] if rubric else []
        assert main(["new", str(folder / "study"), "--items", str(items), *options, *own]) == 0
        return folder / "study"

    return make


def _servers(tmp_path_factory) -> Iterator[Callable[[Path], Served]]:
    with ExitStack() as running:

        def start(folder: Path) -> Served:
            return running.enter_context(Served(folder, tmp_path_factory.mktemp("server")))

        yield start


serve_study = pytest.fixture(_servers, scope="module", name="serve_study")
"""serve_study(folder) -> the app, running; stopped when the file's tests are done."""
serve_all_along = pytest.fixture(_servers, scope="session", name="serve_all_along")
"""The same, stopped at the end of the run."""


@pytest.fixture(scope="module")
def serve(make_study, serve_study) -> Callable[..., Served]:
    """serve(pairs, response, **annotation settings) -> the app, running on a study of its own."""
    return lambda *arguments, **settings: serve_study(make_study(*arguments, **settings))


@pytest.fixture(scope="session")
def served(make_study, serve_all_along) -> Served:
    """One server for the tests that only read and label: each with rater codes of its own."""
    return serve_all_along(make_study(150))


@pytest.fixture(scope="session")
def mortal(make_study, serve_all_along) -> Served:
    """A small study whose server tests may kill, as long as they start it again."""
    return serve_all_along(make_study(2))


@pytest.fixture(scope="session")
def make_session(make_study) -> Callable[..., Path]:
    """make_session(pairs, toml, **annotation settings) -> the folder of a study with a session."""

    def make(pairs: int, toml: str = SESSION, **settings: object) -> Path:
        folder = make_study(pairs, **settings)
        for name in ("training.toml", "attention.toml"):
            (folder / name).write_text(KNOWN, "utf-8")
        with (folder / "study.toml").open("a", encoding="utf-8") as file:
            file.write("\n" + toml)
        return folder

    return make


@pytest.fixture(scope="session")
def crowd(make_session, serve_all_along) -> Served:
    """One server for those who go through a session, each under a name of their own."""
    return serve_all_along(make_session(3))


@pytest.fixture(scope="session")
def together(tmp_path_factory) -> Iterator[ServedTogether]:
    """Two studies behind one address."""
    folders = two_studies(tmp_path_factory.mktemp("studies"))
    with ServedTogether(folders, tmp_path_factory.mktemp("together")) as served:
        yield served


@pytest.fixture(scope="session")
def client() -> Iterator[TestClient]:
    """The app in this process, which can have only one."""
    with TestClient(make_app(), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def window(client, monkeypatch) -> Iterator[Callable[..., Visit]]:
    """window(folder, query, place) -> a visit of the study, served; its forms count from 1."""
    opened: list[Visit] = []
    monkeypatch.setattr("evenhand.annotate_app.lead.settings_page._NUMBERS", iter(range(1, 999)))

    def make(folder: Path, query: str = "", place: str = "") -> Visit:
        site = Site(folder, f"/{folder.name}", alone=False)
        monkeypatch.setitem(sites._sites, site.path, site)
        opened.append(Visit(client, site.path, query, place))
        return opened[-1]

    yield make
    for visit in opened:
        visit.close()


@pytest.fixture(scope="session")
def led(tmp_path_factory) -> Path:
    """A study for tests that only read what its lead's pages show."""
    return led_study(tmp_path_factory.mktemp("led") / "led", "led")


@pytest.fixture
def new_context(browser) -> Iterator[Callable[..., BrowserContext]]:
    """new_context(**settings) -> a browser of one's own: its storage is shared with nobody. `width`
    stands for the size of its window."""
    opened: list[BrowserContext] = []

    def make(width: int = 0, **settings: Any) -> BrowserContext:
        size = {"width": width or 1440, "height": 844 if width else 900}
        context = browser.new_context(**({"viewport": size} | settings))
        context.set_default_timeout(15_000)
        context.add_init_script(CLOCK)
        opened.append(context)
        return context

    yield make
    for context in opened:
        context.close()


@pytest.fixture
def new_page(new_context) -> Callable[..., Page]:
    """new_page(address, **settings) -> a page of a browser of its own, opened there."""

    def make(address: str, **settings: Any) -> Page:
        page = new_context(**settings).new_page()
        page.goto(address)
        return page

    return make


@pytest.fixture
def annotator(new_context, served) -> Callable[..., Annotator]:
    """annotator(rater, server, context, **settings) -> a person at their first unit, in a browser
    of their own."""

    def make(
        rater: str, server: Served = served, context: Any = None, **settings: Any
    ) -> Annotator:
        return arrive((context or new_context(**settings)).new_page(), server, rater)

    return make


@pytest.fixture
def lead(new_page) -> Iterator[Callable[..., Page]]:
    """lead(server, title, **settings) -> the lead at a page of theirs, by default the first. No
    page asks anything of another host, and no text runs, whoever wrote it."""
    opened: list[tuple[Page, Served, list[str]]] = []

    def make(server: Served, title: str = "", **settings: Any) -> Page:
        page, asked = new_page("about:blank", **settings), []
        page.on("request", lambda request: asked.append(request.url))
        opened.append((page, server, asked))
        page.goto(lead_link(server.folder, server.url))
        inside(page)
        if title:
            turn_to(page, title)
        return page

    yield make
    for page, server, asked in opened:
        assert not [url for url in asked if not url.startswith((server.url, "data:", "blob:"))]
        assert page.title() != "1"


LIGHT_AND_DARK = [pytest.param("light", 1440, marks=pytest.mark.thorough), ("dark", 390)]
"""Colours and widths of windows in which axe looks."""


@pytest.fixture
def axe() -> Callable[[Page, str], None]:
    """axe(page, state): fails where the page has a serious fault of accessibility."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()

    def look(page: Page, state: str) -> None:
        # What is in order need not be told node by node, which takes most of the time.
        found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
        serious = [
            f"{state}: {one['id']}: {node['target']} {node['failureSummary']}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]
        assert not serious, serious

    return look
