"""What a browser gets: little for each unit, nothing about the machine that it comes from."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import streamlit

import evenhand
from evenhand.annotate_app.bundle import bundle, modules_of
from evenhand.annotate_app.front import front_page
from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.launch import _without_delay
from evenhand.annotate_app.panel_files import panel_path
from evenhand.study.creation import usual_rubrics
from harness.annotator import CONNECTING, IS_NEXT, READY, SAVED, opened
from harness.served import Served, holds

if TYPE_CHECKING:
    from playwright.sync_api import Page

MOST_BESIDE_THE_TEXTS = 12_000


@pytest.fixture(scope="module")
def several(make_study, serve_study):
    """A study with the usual rubrics, all of a kind on one screen, and long responses rendered."""
    paragraph = "Some people hold that **this is right**, and others that it is *not* so.\n\n"
    row = "| a cell of some words | another one |\n"
    response = f"## A heading\n\n{paragraph * 30}\n{row}| --- | --- |\n{row * 8}"
    study = make_study(
        3,
        lambda number, side: f"{response}\n{number}{side}",
        rubrics=usual_rubrics(propositions=False),
        screen="all",
        display="markdown",
    )
    return serve_study(study)


def frames_of(page) -> list[bytes]:
    """What goes over the page's socket, both ways, from now on."""
    frames: list[bytes] = []

    def keep(frame: str | bytes) -> None:
        frames.append(frame.encode() if isinstance(frame, str) else frame)

    def listen(socket) -> None:
        socket.on("framereceived", keep)
        socket.on("framesent", keep)

    page.on("websocket", listen)
    return frames


def answer_all(page) -> None:
    before = page.text_content(".material")
    for _ in range(page.locator(".ask").count()):
        page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.wait_for_function(IS_NEXT, arg=before)


@pytest.mark.thorough
@pytest.mark.browser
def test_a_unit_costs_little_beside_its_texts_and_a_rubric_travels_once(new_context, several):
    page = new_context().new_page()
    frames = frames_of(page)
    several.enter("light")
    page.goto(f"{several.url}?rater=light")
    page.wait_for_selector(READY)
    instructions = set()
    everything = b""

    def cost() -> int:
        texts = page.locator(".material .text").all_text_contents()
        return sum(map(len, frames)) - sum(len(text.encode()) for text in texts)

    for _ in range(4):
        instructions |= {text[:60] for text in page.locator(".instructions").all_text_contents()}
        everything += b"".join(frames)
        frames.clear()
        answer_all(page)
        assert holds(lambda: cost() > 0)  # the page may have drawn what is still being counted
        assert cost() <= MOST_BESIDE_THE_TEXTS
    for text in instructions:
        told = text.split("\n")[0].encode("unicode_escape")  # as JSON has it
        assert everything.count(told) == 1, text


@pytest.mark.thorough
@pytest.mark.browser
def test_who_comes_again_fetches_no_panel_again(new_context, served):
    page = new_context().new_page()
    served.enter("again")
    page.goto(f"{served.url}?rater=again")
    page.wait_for_selector(READY)
    page.reload()
    page.wait_for_selector(READY)
    sizes = page.evaluate(
        "(path) => performance.getEntriesByType('resource')"
        ".filter(({ name }) => name.includes(path)).map(({ transferSize }) => transferSize)",
        panel_path(),
    )
    assert sizes and set(sizes) == {0}


@pytest.mark.thorough
@pytest.mark.browser
def test_nothing_tells_of_the_study_or_of_errors(new_context, served):
    page = new_context().new_page()
    frames = frames_of(page)
    urls: set[str] = set()
    page.on("request", lambda request: urls.add(request.url))
    served.enter("nosy")
    frames.append(opened(page, f"{served.url}?rater=nosy"))
    page.wait_for_selector(READY)
    answer_all(page)
    page.goto(f"{served.url}?lead=x")
    page.get_by_role("textbox", name="Password").wait_for()
    for closed in ("_stcore/metrics", "_stcore/agent/openapi.json"):
        assert page.request.get(served.url + closed).status == 404
    heard = b"".join(frames)
    assert b"Response " in heard  # the listening works
    # Not Streamlit's own scripts, which carry the version that they were built as.
    own = re.compile(rf"{served.url}(?!static/|evenhand/bundle)")
    ours = {url for url in urls if own.match(url)}
    for url in [*ours, served.url + "nowhere"]:
        answer = page.request.get(url)
        heard += str(answer.headers).encode() + answer.body()
    assert any(panel_path() in url for url in ours)
    # Streamlit's messages name its script, its version and Python's: see docs/security.md.
    for secret in (str(served.folder), str(served.home), evenhand.__version__):
        at = heard.find(secret.encode())
        assert at < 0, heard[max(at - 80, 0) : at + 80]


def test_the_first_page_carries_our_words_and_style():
    page = front_page()
    assert ENGLISH.say("page.no_answer") in page
    assert "<title>Annotation</title>" in page
    assert "evenhand-offline" in page.partition("</style>")[0]
    assert panel_path() in page
    assert "service-desc" not in page
    assert '<html translate="no"' in page


# ---- the way to the first unit ------------------------------------------------------------------

FAR = "far.localhost"
"""A name that is not this machine's own, though Chromium looks for it there."""
WITH_TLS = {"X-Forwarded-Proto": "https"}
"""A page that comes with TLS, over which many files cost no more than one."""
EXPORTS = """
async (names) => {
  const folder = new URL("static/js/", document.baseURI).href;
  const found = {};
  for (const name of names) found[name] = Object.keys(await import(folder + name)).sort();
  return found;
}
"""


@pytest.fixture(scope="module")
def far(
    make_study: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], str]]:
    """far(rater) -> the address of a server elsewhere, without TLS, for somebody who has begun."""
    served = Served(make_study(20), tmp_path_factory.mktemp("far"), public_host=FAR)
    served.start()

    def address(rater: str) -> str:
        served.enter(rater)
        return f"http://{FAR}:{served.port}/?rater={rater}"

    yield address
    served.kill()


def events_of(page: Page) -> list[str]:
    """What the page asks for and gets, in order: "asked NAME", "got NAME", "connects"."""
    events: list[str] = []

    def named(kind: str) -> Callable[..., None]:
        return lambda one: events.append(f"{kind} {one.url.partition('?')[0].rpartition('/')[2]}")

    page.on("request", named("asked"))
    page.on("response", named("got"))
    page.on("websocket", lambda _: events.append("connects"))
    return events


def scripts_in(events: list[str]) -> list[str]:
    asked = [event.removeprefix("asked ") for event in events if event.startswith("asked ")]
    return [name for name in asked if name.endswith(".js")]


def exported_by(name: str) -> list[str]:
    """The names that a module of Streamlit's exports, by its last statement."""
    folder = Path(streamlit.__file__).with_name("static") / "static" / "js"
    text = (folder / name).read_text("utf-8")
    [inside] = re.findall(r"export\s*\{([^{}]*)\};?\s*$", text)
    return sorted(each.split(" as ")[-1].strip() for each in inside.split(",") if each)


@pytest.mark.browser
def test_all_that_the_first_unit_needs_comes_in_three_scripts(new_context, far):
    page = new_context().new_page()
    events = events_of(page)
    page.goto(far("few"))
    page.wait_for_selector(READY)
    assert sorted(name.partition(".")[0] for name in scripts_in(events)) == [
        *("bundle", "front", "panel"),
    ]
    fonts = [at for at, event in enumerate(events) if event.endswith(".woff2")]
    assert min(fonts, default=len(events)) > events.index("asked first-run")


@pytest.mark.thorough
@pytest.mark.browser
def test_the_bundle_is_compressed_and_kept(new_context, far):
    page = new_context().new_page()
    address = far("kept-bundle")
    for sizes in (lambda size, whole: 0 < size < whole / 3, lambda size, _: size == 0):
        page.goto(address)
        page.wait_for_selector(READY)
        [entry] = page.evaluate(
            "performance.getEntriesByType('resource').filter((e) => e.name.includes('/bundle.'))"
            ".map((e) => [e.transferSize, e.decodedBodySize])"
        )
        assert sizes(*entry)


@pytest.mark.thorough
@pytest.mark.browser
def test_every_module_of_the_bundle_is_the_one_of_its_file(new_context, far):
    """Each runs, has its exports, and is the one that a file fetched later meets."""
    page = new_context().new_page()
    page.goto(far("modules"))
    page.wait_for_selector(READY)
    modules = modules_of(front_page())
    events = events_of(page)
    assert page.evaluate(EXPORTS, modules) == {name: exported_by(name) for name in modules}
    assert not scripts_in(events)
    folder = Path(streamlit.__file__).with_name("static") / "static" / "js"
    later = [name for name in _names(folder) if name.startswith(("DataFrame.", "ArrowVegaLite"))]
    assert len(later) == 2
    page.evaluate(EXPORTS, later)
    assert set(later) <= set(scripts_in(events))
    assert not set(modules) & set(scripts_in(events))


def _names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


@pytest.mark.browser
def test_where_the_bundle_is_not_taken_the_files_are(new_context, far):
    """As under a policy that forbids what stands in the page itself."""
    # An answer that Playwright hands on is of no network, so that Chromium would ask.
    page = new_context(permissions=["local-network-access"]).new_page()
    events = events_of(page)

    def strict(route) -> None:
        # Playwright itself does not know where such a name leads.
        asked = urlsplit(route.request.url)
        here = asked._replace(netloc=f"127.0.0.1:{asked.port}").geturl()
        answer = route.fetch(url=here, headers=route.request.headers | {"host": asked.netloc})
        assert "/bundle." in answer.text()
        policy = {"content-security-policy": "script-src 'self' blob:"}
        route.fulfill(response=answer, headers=answer.headers | policy)

    page.route(re.compile(r"/\?rater="), strict)
    page.goto(far("strict"))
    page.wait_for_selector(READY)
    assert set(modules_of(front_page())) <= set(scripts_in(events))


@pytest.mark.thorough
@pytest.mark.browser
def test_a_page_with_tls_begins_with_the_files_themselves(new_context, far):
    page = new_context(extra_http_headers=WITH_TLS).new_page()
    events = events_of(page)
    page.goto(far("files"), wait_until="load")
    scripts = scripts_in(events)
    assert set(modules_of(front_page())) <= set(scripts)
    assert not [name for name in scripts if name.startswith("bundle.")]


@pytest.mark.thorough
@pytest.mark.browser
def test_a_page_whose_bundle_got_lost_is_loaded_anew(new_context, far):
    page = new_context().new_page()
    lost, asked = re.compile("/evenhand/bundle"), []
    page.on("request", lambda request: asked.append(request.url) if lost.search(request.url) else 0)
    page.route(lost, lambda route: route.abort())
    page.goto(far("lost"))
    while len(asked) < 2:  # it has been loaded anew
        page.wait_for_timeout(100)
    page.unroute(lost)
    page.wait_for_selector(READY)


@pytest.mark.thorough
@pytest.mark.browser
def test_a_unit_is_labelled_with_the_bundle(new_context, far):
    page = new_context().new_page()
    page.goto(far("labels"))
    page.wait_for_selector(READY)
    for _ in range(2):
        answer_all(page)
    page.wait_for_selector(SAVED, state="attached")
    page.reload()
    page.wait_for_selector(READY)
    assert page.locator(".count").inner_text().startswith("2 of")


def test_where_no_bundle_can_be_made_a_page_has_the_files():
    assert bundle("<html></html>") == ""
    page = front_page(in_one_file=False)
    assert "/bundle." not in page
    assert all(f'"./static/js/{name}"' in page for name in modules_of(page))


@pytest.mark.browser
def test_a_page_asks_before_its_scripts_are_there_and_connects_only_once(new_context, served):
    page = new_context().new_page()
    page.add_init_script(CONNECTING)
    events = events_of(page)
    served.enter("at-once")
    page.goto(f"{served.url}?rater=at-once")
    page.wait_for_selector(READY)
    first_script = next(at for at, event in enumerate(events) if event.startswith("got index."))
    assert events.index("asked first-run") < first_script
    assert len(page.evaluate("connecting")) == 1
    assert events.count("asked health") == events.count("asked host-config") == 1


@pytest.mark.parametrize(
    "lost", ["this.close()", "this.addEventListener('open', () => this.close())"]
)
@pytest.mark.browser
def test_a_connection_lost_before_it_is_needed_is_made_anew(new_context, served, lost):
    page = new_context().new_page()
    page.add_init_script(CONNECTING)
    page.add_init_script(LOSING_THE_FIRST.replace("LOST", lost))
    served.enter("lost-early")
    page.goto(f"{served.url}?rater=lost-early")
    page.wait_for_selector(READY)
    page.wait_for_function("connecting.length === 2")
    answer_all(page)
    page.wait_for_selector(SAVED, state="attached")


LOSING_THE_FIRST = """
window.WebSocket = class extends WebSocket {
  constructor(...asked) {
    super(...asked);
    if (connecting.length === 1) LOST;
  }
};
"""


def test_no_piece_of_an_answer_waits_for_the_one_before() -> None:
    listening, address = _without_delay("127.0.0.1", "127.0.0.1", 0, 5)
    listening.setblocking(True)
    with listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert address == "127.0.0.1"
