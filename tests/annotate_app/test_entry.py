"""The way in, without a browser: Streamlit's own test runner draws the page."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from evenhand.annotate_app.languages import ENGLISH


def page(folder) -> AppTest:
    def script(folder):
        from pathlib import Path

        from evenhand.annotate_app.page import show_page
        from evenhand.annotate_app.sites import Site

        show_page(Site(Path(folder)))

    return AppTest.from_function(script, args=(str(folder),), default_timeout=20)


def entered(folder, code: str) -> AppTest:
    """The way in, once somebody has typed a code there."""
    app = page(folder).run()
    app.text_input[0].input(code)
    return app.button[0].click().run()


def complaint(app: AppTest) -> str:
    return "".join(node.proto.body for node in app.get("html") if "alert" in node.proto.body)


def test_a_folder_that_is_no_study(tmp_path):
    assert "is not a study" in complaint(page(tmp_path).run())


def test_a_bad_code_is_one_sentence_and_a_good_one_the_way_in(make_study):
    folder, letters = make_study(2), "letters, digits"
    for code, sentence in (
        ("", ENGLISH.say("entry.empty")),
        ("a b", letters),
        ("<b>x</b>", letters),
    ):
        app = entered(folder, code)
        assert sentence in complaint(app)
        assert "rater" not in app.query_params
        assert not app.exception
    app = entered(folder, " anna ")
    assert app.query_params["rater"] == "anna"
    assert not (app.text_input or app.exception)
