"""The way in, without a browser: Streamlit's own test runner draws the page."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from evenhand.annotate_app.languages import ENGLISH


def page(folder: str) -> AppTest:
    def script(folder):
        from pathlib import Path

        from evenhand.annotate_app.page import show_page
        from evenhand.annotate_app.sites import Site

        show_page(Site(Path(folder)))

    return AppTest.from_function(script, args=(folder,), default_timeout=20)


def complaint(app: AppTest) -> str:
    return "".join(node.proto.body for node in app.get("html") if "alert" in node.proto.body)


@pytest.fixture(scope="module")
def folder(make_study) -> str:
    return str(make_study(2))


def test_a_folder_that_is_no_study(tmp_path):
    assert "is not a study" in complaint(page(str(tmp_path)).run())


@pytest.mark.parametrize(
    ("code", "sentence"),
    [("", ENGLISH.say("entry.empty")), ("a b", "letters, digits"), ("<b>x</b>", "letters, digits")],
)
def test_a_bad_code_is_one_sentence_and_no_way_in(folder, code, sentence):
    app = page(folder).run()
    app.text_input[0].input(code)
    app.button[0].click().run()
    assert sentence in complaint(app)
    assert "rater" not in app.query_params
    assert not app.exception


def test_a_good_code_leads_to_the_work_and_into_the_address(folder):
    app = page(folder).run()
    app.text_input[0].input(" anna ")
    app.button[0].click().run()
    assert app.query_params["rater"] == "anna"
    assert not app.text_input
    assert not app.exception
