"""What a browser gets: little for each unit, nothing about the machine that it comes from."""

import re

import pytest
from streamlit.testing.v1 import AppTest

import evenhand
from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.payload import panel_path
from evenhand.annotate_app.routes import front_page, modules_of
from evenhand.study.creation import usual_rubrics
from harness.annotator import arrive, go_on, reload
from harness.served import holds
from tests.annotate_app.participants import frames_of

MOST_BESIDE_THE_TEXTS = 12_000


def test_a_folder_that_is_no_study_is_one_sentence(tmp_path):
    def script(folder):
        from pathlib import Path

        from evenhand.annotate_app.page import show_page
        from evenhand.annotate_app.sites import Site

        show_page(Site(Path(folder)))

    app = AppTest.from_function(script, args=(str(tmp_path),), default_timeout=20).run()
    assert "is not a study" in "".join(node.proto.body for node in app.get("html"))


@pytest.fixture(scope="module")
def several(make_study, serve_study):
    """A study with the usual rubrics, all of a kind on one screen, and long responses rendered."""
    paragraph = "Some people hold that **this is right**, and others that it is *not* so.\n\n"
    row = "| a cell of some words | another one |\n"
    response = f"## A heading\n\n{paragraph * 30}\n{row}| --- | --- |\n{row * 8}"
    said = {"rubrics": usual_rubrics(propositions=False), "screen": "all", "display": "markdown"}
    return serve_study(make_study(3, lambda number, side: f"{response}\n{number}{side}", **said))


def answer_all(page) -> None:
    go_on(page, *"1" * page.locator(".ask").count(), "Enter")


@pytest.mark.thorough
@pytest.mark.browser
def test_a_unit_costs_little_beside_its_texts_and_a_rubric_travels_once(new_context, several):
    page = new_context().new_page()
    frames = frames_of(page)
    arrive(page, several, "light")
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
    arrive(page, served, "again")
    reload(page)
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
    arrive(page, served, "nosy")
    answer_all(page)
    page.goto(f"{served.url}?lead=x")
    page.get_by_role("textbox", name="Password").wait_for()
    for closed in ("_stcore/metrics", "_stcore/agent/openapi.json"):
        assert page.request.get(served.url + closed).status == 404
    heard = b"".join(frames)
    assert b"Response " in heard  # the listening works
    # Not Streamlit's own scripts, which carry the version that they were built as.
    own = re.compile(rf"{served.url}(?!static/)")
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


def test_the_page_names_every_module_that_streamlit_begins_with():
    page = front_page()
    modules = modules_of(page)
    assert any(name.startswith("BidiComponent.") for name in modules)
    assert len(modules) > 20
    assert all(f'"./static/js/{name}"' in page for name in modules)
