"""The first run of a page, which comes before its connection is there."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from evenhand.annotate_app.first_run import FIRST_RUN
from evenhand.annotate_app.where import MOST_PAGES
from evenhand.study import open_study
from evenhand.study.store.schema import claims
from harness.annotator import READY, Annotator, opened
from harness.served import Served, holds

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.browser  # it starts the app, as those do

OWN = {"X-Evenhand-Protocols": "streamlit,no-token", "X-Evenhand-Locale": "en-GB"}


def asked(
    served: Served, rater: str, method: str = "POST", **headers: str
) -> tuple[int, list[bytes]]:
    """The status, and the session's id before the messages of its first run."""
    line = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    line.request(method, f"/{FIRST_RUN}?rater={rater}", headers=OWN | headers)
    answer = line.getresponse()
    content = answer.read()
    line.close()
    is_run = answer.headers["Content-Type"] == "application/octet-stream"
    return answer.status, parts_of(content) if is_run else []


def first_run(served: Served, rater: str, **headers: str) -> list[bytes]:
    """The session's id before the messages of its first run, which a busy machine may not have in
    time.
    """
    for _ in range(20):
        if parts := asked(served, rater, **headers)[1]:
            return parts
    pytest.fail("no first run")


def parts_of(content: bytes) -> list[bytes]:
    parts = []
    while content:
        end = 4 + int.from_bytes(content[:4], "big")
        parts.append(content[4:end])
        content = content[end:]
    return parts


def kinds(messages: list[bytes]) -> list[str | None]:
    return [ForwardMsg.FromString(each).WhichOneof("type") for each in messages]


def claimed(served: Served, rater: str) -> int:
    with open_study(served.folder) as study, study.store.read() as connection:
        query = claims.select().where(claims.c.rater_id == rater)
        return len(connection.execute(query).all())


def test_it_is_the_whole_run_of_one_session_and_tells_nothing_of_the_machine(
    served: Served,
) -> None:
    served.enter("whole")
    session, *messages = first_run(served, "whole")
    found = [ForwardMsg.FromString(each) for each in messages]
    began, *_, finished, over = [each for each in found if each.WhichOneof("type") != "delta"]
    assert began.WhichOneof("type") in ("new_session", "session_status_changed")
    assert finished.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
    assert not over.session_status_changed.script_is_running
    [own] = [each.new_session for each in found if each.HasField("new_session")]
    assert own.initialize.session_id == session.decode()
    assert not own.main_script_path
    assert b"Response " in b"".join(messages)


def test_only_a_page_of_the_apps_own_gets_one(served: Served) -> None:
    served.enter("own")
    here = f"http://127.0.0.1:{served.port}"
    assert first_run(served, "own", Origin=here)
    for headers in (
        {"Origin": "https://elsewhere.example.org"},
        {"Origin": "null"},
        {"X-Evenhand-Protocols": "", "Origin": "http://["},
    ):
        assert asked(served, "own", **headers) == (204, [])
    assert asked(served, "own", Host="elsewhere.example.org")[0] == 421
    assert not asked(served, "own", "GET")[1]  # what a link's preview or a prefetch sends


def test_who_comes_from_a_single_sign_on_connects_as_usual(served: Served) -> None:
    served.enter("vouched")
    assert first_run(served, "vouched", Cookie="another=1")
    assert asked(served, "vouched", Cookie="another=1; _streamlit_user_1=word") == (204, [])


def test_who_has_not_begun_is_given_nothing_to_label(served: Served) -> None:
    _, *messages = first_run(served, "newcomer")
    assert "script_finished" in kinds(messages)
    assert not claimed(served, "newcomer")


def test_one_that_is_over_counts_as_no_open_page(served: Served) -> None:
    served.enter("many")
    for _ in range(MOST_PAGES + 5):
        assert first_run(served, "many")


def test_the_unit_is_there_before_any_connection_is(
    new_context: Callable[..., BrowserContext], served: Served
) -> None:
    page = new_context().new_page()
    page.route_web_socket(re.compile("_stcore/stream"), lambda _: None)  # open, and silent
    served.enter("no-line")
    opened(page, f"{served.url}?rater=no-line")
    page.wait_for_selector(READY)
    assert claimed(served, "no-line")


def test_the_connection_takes_up_its_session_and_answers_are_stored(
    new_context: Callable[..., BrowserContext], served: Served
) -> None:
    page = new_context().new_page()
    heard: list[str] = []

    def listen(frame: str | bytes) -> None:
        assert isinstance(frame, bytes)
        message = ForwardMsg.FromString(frame)
        if message.HasField("new_session"):
            heard.append(message.new_session.initialize.session_id)

    page.on("websocket", lambda socket: socket.on("framereceived", listen))
    served.enter("goes-on")
    first = opened(page, f"{served.url}?rater=goes-on")
    page.wait_for_selector(READY)
    person = Annotator("goes-on", served, page)
    person.answer("L")
    person.answer("R")
    assert person.all_stored()
    assert heard[-1] == parts_of(first)[0].decode()


@pytest.mark.parametrize("lost", ["abort", "refused", "garbled"])
def test_a_page_without_one_connects_as_usual(
    new_context: Callable[..., BrowserContext], served: Served, lost: str
) -> None:
    page = new_context().new_page()
    ways: dict[str, Callable[..., None]] = {
        "abort": lambda route: route.abort(),
        "refused": lambda route: route.fulfill(status=503, body="away"),
        "garbled": lambda route: route.fulfill(status=200, body="no messages at all"),
    }
    page.route(re.compile(FIRST_RUN), ways[lost])
    served.enter(f"lost-{lost}")
    page.goto(f"{served.url}?rater=lost-{lost}")
    page.wait_for_selector(READY)
    assert answered(page, served, f"lost-{lost}")


def answered(page: Page, served: Served, rater: str) -> bool:
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    return holds(lambda: len(served.labels(rater)) == 1)
