"""Behind nginx: two studies by path, and two processes on one PostgreSQL that are killed."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from evenhand.study import open_study
from evenhand.study.keeping import move_store
from evenhand.study.store.schema import labels
from harness.annotator import arrive
from harness.postgresql import Postgresql
from harness.proxy import NAME, ProxiedSession, Proxy
from harness.served import Served, ServedTogether, holds
from harness.studies import panel_study
from tests.annotate_app.together import NAMES, two_studies


@pytest.fixture(scope="module")
def apart(tmp_path_factory, nginx) -> Iterator[tuple[Proxy, list[Served]]]:
    """A process for each study, and the configuration's lines for the second one."""
    home = tmp_path_factory.mktemp
    apps = [
        Served(folder, home("app"), public_host=NAME, path=f"/{folder.name}")
        for folder in two_studies(home("studies"))
    ]
    proxy = Proxy(home("nginx"), [], second=0)
    try:
        for app in apps:
            app.start()
        proxy.apps, proxy.second = [apps[0].port], apps[1].port
        proxy.start()
        yield proxy, apps
        proxy.stop()
    finally:
        for app in apps:
            app.kill()


@pytest.fixture(scope="module")
def at_once(tmp_path_factory, nginx) -> Iterator[tuple[Proxy, list[Served]]]:
    """One command for both, and the configuration as it is for one."""
    home = tmp_path_factory.mktemp
    folders = two_studies(home("studies"))
    served = ServedTogether(folders, home("app"), options=["--url", f"https://{NAME}"])
    served.start()
    proxy = Proxy(home("nginx"), [served.port])
    try:
        proxy.start()
        yield proxy, [served.study(name) for name in NAMES]
        proxy.stop()
    finally:
        served.stop()


@pytest.fixture(params=["apart", "at_once"])
def site(request: pytest.FixtureRequest) -> tuple[Proxy, list[Served]]:
    found: tuple[Proxy, list[Served]] = request.getfixturevalue(request.param)
    return found


@pytest.mark.browser
def test_each_study_is_labelled_at_its_path(site, browser):
    proxy, studies = site
    context = browser.new_context(ignore_https_errors=True)
    for name, study in zip(NAMES, studies, strict=True):
        person = arrive(context.new_page(), study, "ann", f"{proxy.url}{name}/")
        person.answer("L")
        assert person.all_stored()
    own = {str(each["name"]) for each in context.cookies()}
    assert {f"__Host-evenhand_session_{name}" for name in NAMES} <= own
    context.close()


@pytest.mark.browser
def test_each_path_is_its_studys_alone_and_none_leads_to_the_other(site):
    for path, status in (
        ("/first", 307), ("/first/health", 200), ("/second/health", 200), ("/third/", 404),
        ("/second/_stcore/metrics", 404), ("/secondly/health", 404), ("/_stcore/health", 404),
    ):  # fmt: skip
        assert site[0].ask("GET", path)[0] == status, path
    for path in ("/first/..%2fsecond/", "/first/%2e%2e/second/overview"):
        status, headers = site[0].ask("GET", path)
        assert status in (400, 404)
        given = headers.get_all("Set-Cookie", [])
        assert not [each for each in given if "evenhand_session" in each]


class Site(NamedTuple):
    """What stands on a study's servers."""

    apps: list[Served]
    proxy: Proxy
    postgresql: Postgresql
    url: str


@pytest.fixture
def pair(tmp_path_factory, nginx, postgresql) -> Iterator[Callable[..., Site]]:
    """pair(pairs) -> two processes that serve one study, on a PostgreSQL of its own."""
    home, made = tmp_path_factory.mktemp, []

    def make(pairs: int) -> Site:
        folder, url = panel_study(home("study"), pairs), postgresql.new_database()
        move_store(folder, url)
        apps = [Served(folder, home("app"), public_host=NAME) for _ in range(2)]
        made.extend(apps)
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(Served.start, apps))
        proxy = Proxy(home("nginx"), [app.port for app in apps])
        proxy.start()
        made.insert(0, proxy)
        return Site(apps, proxy, postgresql, url)

    yield make
    for each in made:
        each.stop() if isinstance(each, Proxy) else each.kill()


class Crowd:
    """People who label through the proxy until they are told to stop."""

    def __init__(self, site: Site) -> None:
        names = [f"r{n}" for n in range(6)]
        site.apps[0].enter(*names)
        self.people = [ProxiedSession(site.proxy.secure, name) for name in names]

    @property
    def acknowledged(self) -> set[str]:
        return set().union(*(person.acknowledged for person in self.people))

    async def goes_on(self) -> None:
        """Wait until so many more answers are acknowledged."""
        wanted, end = len(self.acknowledged) + 8, time.monotonic() + 120
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < end, "the work does not go on"
            await asyncio.sleep(0.02)


async def at_work(crowd: Crowd, what: Callable[[], Awaitable[None]]) -> None:
    """All of the crowd at work, before what happens and after it."""
    over = asyncio.Event()
    work = [asyncio.create_task(person.work(over, pause=0.1)) for person in crowd.people]
    await crowd.goes_on()
    await what()
    over.set()
    await asyncio.wait_for(asyncio.gather(*work), 60)


def freeze_inside_a_write(site: Site, app: Served) -> None:
    """Stop a process at moments by chance until one of them is inside a write of its own."""
    holds = sa.text(
        "SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE "
        "l.locktype = 'advisory' AND l.granted AND a.state = 'idle in transaction'"
    )
    engine = sa.create_engine(site.url, isolation_level="AUTOCOMMIT")
    end = time.monotonic() + 60
    with engine.connect() as connection:
        while time.monotonic() < end:
            app.freeze()
            seen = []
            for _ in range(3):  # the other process holds it for a moment only
                time.sleep(0.05)
                seen.append(set(connection.execute(holds).scalars()))
            if set.intersection(*seen):
                return engine.dispose()
            app.thaw()
            time.sleep(random.random() * 0.05)
    raise TimeoutError("the process was never met inside a write")


@pytest.mark.thorough
def test_a_process_frozen_inside_a_write_holds_up_nobody_for_long(pair):
    place, longest = pair(200), 20.0
    crowd, app = Crowd(place), place.apps[0]

    async def frozen() -> None:
        try:
            await asyncio.to_thread(freeze_inside_a_write, place, app)
            await asyncio.sleep(longest)
        finally:
            app.thaw()
        await crowd.goes_on()

    asyncio.run(at_work(crowd, frozen))
    assert max(max(person.waits) for person in crowd.people) < longest


@pytest.mark.parametrize(
    ("pairs", "turns"),
    [
        pytest.param(60, 2, marks=pytest.mark.thorough),
        pytest.param(1500, 20, marks=pytest.mark.load),
    ],
)
def test_a_killed_process_and_a_killed_database_lose_nothing(pair, pairs, turns):
    place = pair(pairs)
    stays_with_one_process(place)
    crowd = Crowd(place)

    async def killed_in_turn() -> None:
        for turn in range(turns):
            if turn:
                await asyncio.to_thread(place.apps[(turn - 1) % 2].start)
            place.apps[turn % 2].kill()
            await crowd.goes_on()  # with the other one
            if turn % 3 == 0:
                place.postgresql.crash()
                await asyncio.to_thread(place.postgresql.start)
                await crowd.goes_on()

    asyncio.run(at_work(crowd, killed_in_turn))
    assert all(person.breaks for person in crowd.people)
    # Nothing acknowledged is lost, and nothing is there twice.
    with open_study(place.apps[0].folder) as study, study.store.read() as connection:
        stored = connection.execute(sa.select(labels)).all()
    assert crowd.acknowledged <= {row.submit_id for row in stored}
    answered = Counter((row.rater_id, row.unit_id, row.rubric) for row in stored)
    assert set(answered.values()) == {1}, "somebody has answered a unit twice"
    # Whoever was told that nothing was stored has sent it again: nothing else is there.
    assert len(stored) == len(crowd.acknowledged)


def stays_with_one_process(site: Site) -> None:
    """Sixteen browsers ask three times each; the log says which process answered."""
    for _ in range(16):
        _, headers = site.proxy.ask("GET", "/")
        given = headers.get_all("Set-Cookie")
        assert all("Secure" in each.split("; ") for each in given)
        # Scripts read Streamlit's, to send it back beside the cookie itself.
        own = [each for each in given if not each.startswith("_streamlit_xsrf=")]
        assert len(own) == 2
        assert all("HttpOnly" in each.split("; ") for each in own)
        cookie = "; ".join(each.partition(";")[0] for each in given)
        for _ in range(2):
            _, headers = site.proxy.ask("GET", "/", headers={"Cookie": cookie})
            again = headers.get_all("Set-Cookie") or []
            assert not [each for each in again if each.startswith("evenhand_browser=")]
    assert holds(lambda: len(site.proxy.log.splitlines()) >= 48), "not all requests are in the log"
    answered = [line.rsplit(" ", 1)[1] for line in site.proxy.log.splitlines()]
    browsers = [set(answered[n : n + 3]) for n in range(0, 48, 3)]
    assert all(len(each) == 1 for each in browsers)
    assert set().union(*browsers) == {f"127.0.0.1:{app.port}" for app in site.apps}
