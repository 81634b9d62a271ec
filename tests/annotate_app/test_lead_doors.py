"""The doors to the lead's pages: nothing is loaded or shown before a good login."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from evenhand.annotate_app.lead.pages import PAGES
from evenhand.study import open_study
from evenhand.study.access.accounts import set_account
from evenhand.texts import written

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def folder(make_study) -> Path:
    folder = make_study(2)
    with open_study(folder) as study:
        set_account(study.store, "ada", PASSWORD, "expert")
    return folder


@pytest.fixture(autouse=True)
def shown_errors() -> Iterator[None]:
    """Tells of what was refused, whatever a test before has set for all of the process."""
    before = config.get_option("client.showErrorDetails")
    config.set_option("client.showErrorDetails", "full")
    yield
    config.set_option("client.showErrorDetails", before)


LOADED = '''
import sys
from streamlit.testing.v1 import AppTest

script = f"""
from pathlib import Path
from evenhand.annotate_app.sites import Site
from evenhand.annotate_app.page import show_page
show_page(Site(Path({sys.argv[1]!r})))
"""
for query in ({"rater": "anna"}, {"lead": "in"}, {"lead": "forged"}):
    app = AppTest.from_string(script, default_timeout=60)
    app.query_params.update(query)
    app.run()
    assert not app.exception, app.exception
    print(query, [title.value for title in app.title])
print({"evenhand.analysis", "evenhand.graders", "evenhand.annotate_app.lead"} & sys.modules.keys())
'''


@pytest.mark.slow
def test_who_labels_or_stands_at_the_leads_door_has_no_figures_loaded(folder):
    """In a process of its own, since tests have loaded them into this one."""
    command = [sys.executable, "-P", "-c", LOADED, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *seen, loaded = done.stdout.splitlines()
    assert [written("lead_door.title") in each for each in seen] == [False, True, True]
    assert loaded == "set()"


def shown_to(folder: Path, title: str, name: str) -> AppTest:
    """One of the lead's pages, called by itself, for whoever is logged in."""

    def script(folder: str, title: str, name: str, password: str) -> None:
        from evenhand.annotate_app import lead_entry
        from evenhand.annotate_app.lead.pages import PAGES
        from evenhand.study import open_study
        from evenhand.study.access.lead_login import log_in

        with open_study(folder) as study:
            if name:
                lead_entry._admit(log_in(study.store, name, password))
            (page,) = [page for page in PAGES if page.title == title]
            page.show(study)

    arguments = (str(folder), title, name, PASSWORD)
    return AppTest.from_function(script, args=arguments, default_timeout=60).run()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "ada"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_every_page_asks_who_is_there_before_anything_else(folder, page, name):
    app = shown_to(folder, page.title, name)
    if name and "expert" in page.roles:
        assert not app.exception
        assert len(app.main) > 0
        return
    (refusal,) = app.exception
    assert refusal.proto.type.endswith("InputError")
    assert len(app.main) == 1, "something was shown before, or beside, the refusal"
