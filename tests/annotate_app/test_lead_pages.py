"""The lead's pages without a browser: nothing before a good login, no act by who may not, none
lost, and what there is to take away.
"""

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from evenhand.annotate_app.lead import raters_page
from evenhand.annotate_app.lead.pages import PAGES
from evenhand.annotate_app.lead.parts import counted
from evenhand.reporting.exporting import as_csv, exported_attacked, part_path, sidecar_text
from evenhand.study import Study, open_study
from evenhand.study.access.accounts import disable_account, set_account
from evenhand.study.desk.claims import oversight
from evenhand.study.desk.desk import AnnotationDesk, Flag
from evenhand.study.lead.disagreements import sorted_so_far
from evenhand.study.store.grades import AttackedGrade
from evenhand.study.tables.ratings import read_attacked
from evenhand.texts import written
from harness.studies import send, task_of, with_labels

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"
UNIT = "p0001|secret-subject"
HOSTILE = "=HYPERLINK(1)|secret-subject"


@pytest.fixture(scope="module")
def make_folder(make_study):
    """make_folder() -> a study with a lead and an expert."""

    def make() -> Path:
        folder = make_study(2)
        with open_study(folder) as study:
            for name, role in (("ada", "lead"), ("chair", "expert")):
                set_account(study.store, name, PASSWORD, role)
        return folder

    return make


@pytest.fixture(scope="module")
def looked_at(make_folder) -> Path:
    """For tests that only look."""
    return make_folder()


@pytest.fixture
def folder(make_folder) -> Path:
    return make_folder()


@pytest.fixture(autouse=True)
def shown_errors() -> Iterator[None]:
    """Tells of what was refused, whatever a test before has set for all of the process."""
    before = config.get_option("client.showErrorDetails")
    config.set_option("client.showErrorDetails", "full")
    yield
    config.set_option("client.showErrorDetails", before)


def shown_to(folder: Path, title: str, name: str = "ada") -> AppTest:
    """One of the lead's pages, or the part that sorts disagreements, called by itself for whoever
    is logged in; with `cut` in the session a run ends before it.
    """

    def script(folder: str, title: str, name: str, password: str) -> None:
        import streamlit as st

        from evenhand.analysis.people.disagreements import GraderDisagreement
        from evenhand.annotate_app import entry
        from evenhand.annotate_app.lead import adjudication_page
        from evenhand.annotate_app.lead.pages import PAGES
        from evenhand.study import open_study
        from evenhand.study.access.accounts import sign_in

        if st.session_state.get("cut"):
            st.stop()  # as Streamlit does when another event comes
        with open_study(folder) as study:
            if name and "in" not in st.session_state:
                entry.admit_lead(sign_in(study.store, name, password))
                st.session_state["in"] = True
            if title != "sort":
                (page,) = [page for page in PAGES if page.title == title]
                page.show(study)
                return
            found = [
                GraderDisagreement("shorter", "model", f"p{n:04d}|secret-subject", "L", {}, 1.0)
                for n in (1, 2)
            ]
            abouts = [(each.rubric, each.unit_id, each.grader) for each in found]
            place = st.session_state.setdefault("place", adjudication_page._Place(abouts[0]))
            adjudication_page._sort(study, place, place.at, abouts, None)

    arguments = (str(folder), title, name, PASSWORD)
    return AppTest.from_function(script, args=arguments, default_timeout=60).run()


# ---- the doors ----------------------------------------------------------------------------------


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
def test_who_labels_or_stands_at_the_leads_door_has_no_figures_loaded(looked_at):
    """In a process of its own, since tests have loaded them into this one."""
    command = [sys.executable, "-P", "-c", LOADED, str(looked_at)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *seen, loaded = done.stdout.splitlines()
    assert [written("lead_door.title") in each for each in seen] == [False, True, True]
    assert loaded == "set()"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "chair"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_every_page_asks_who_is_there_before_anything_else(looked_at, page, name):
    app = shown_to(looked_at, page.title, name)
    if name and "expert" in page.roles:
        assert not app.exception
        assert len(app.main) > 0
        return
    (refusal,) = app.exception
    assert refusal.proto.type.endswith("InputError")
    assert len(app.main) == 1, "something was shown before, or beside, the refusal"


# ---- acts ---------------------------------------------------------------------------------------


def button(app: AppTest, label: str):
    (found,) = [each for each in app.button if each.label == label]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("ended", [False, True])
def test_who_has_ended_pauses_nothing(folder, ended):
    app = shown_to(folder, "Sessions")
    with open_study(folder) as study:
        set_account(study.store, "bea", PASSWORD, "lead")
        if ended:
            disable_account(study.store, "ada")
        button(app, "Pause the study").click().run()
        assert oversight(study.store).paused is not ended
    assert len(app.exception) == ended


@pytest.mark.slow
def test_flags_on_a_rubric_that_is_gone_do_not_block_the_others(folder):
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        desk.register("ann")
        task = task_of(desk, "ann").task_id
        reasons = ("harmful", "other")
        send(desk, "ann", *(Flag(submit_id=n, task_id=task, reason=n) for n in reasons))
        with study.store.write() as connection:
            connection.exec_driver_sql("UPDATE remarks SET rubric='gone' WHERE reason='harmful'")
    app = shown_to(folder, "Flags")
    assert not app.exception
    assert [each.label for each in app.button].count("Mark as dealt with") == 2
    assert "no rubric" in html_of(app)


def html_of(app: AppTest) -> str:
    return "".join(each.proto.body for each in app.get("html"))


@pytest.mark.slow
def test_every_item_is_found_with_its_labels_as_text_and_graders_only_on_request(folder):
    with open_study(folder) as study:
        given = {"ann": "LR", "<img src=x>": "LC", "model-x": "RR"}
        with_labels(study, given, "shorter", graders=["model-x"])
    app = shown_to(folder, "Items")
    assert "&lt;img src=x&gt;: L; ann: L" in (drawn := html_of(app))
    assert "Tie: no label" in drawn
    assert not any(hidden in drawn for hidden in ("<img src", "model-x", "evenhand-sides"))
    app.toggle[0].set_value(True).run()
    assert "model-x: R" in html_of(app)
    app.text_input[0].set_value("P0001|").run()
    assert "evenhand-sides" in (drawn := html_of(app))  # the item as annotators saw it
    assert "Tie: no label" not in drawn


@pytest.mark.slow
def test_what_was_sorted_is_kept_where_the_run_is_cut_short(folder):
    app = shown_to(folder, "sort")
    app.text_area[0].set_value("read twice")
    button(app, "Grader wrong").click()
    app.session_state["cut"] = True
    app.run()
    with open_study(folder) as study:
        (kept,) = sorted_so_far(study)
    assert (kept.unit_id, kept.kind, kept.note) == (UNIT, "grader_wrong", "read twice")
    assert kept.done_by == "ada"


@pytest.mark.slow
def test_of_two_keys_at_once_one_counts_and_the_other_is_told(folder):
    app = shown_to(folder, "sort")
    button(app, "Grader wrong").click()
    button(app, "Annotators wrong").click()
    app.run()
    assert "nothing was stored" in "".join(each.proto.body for each in app.get("html"))
    with open_study(folder) as study:
        (kept,) = sorted_so_far(study)
    assert kept.unit_id == UNIT
    app.run()
    assert not app.get("html")


# ---- tables to take away ------------------------------------------------------------------------


def audit(study: Study) -> None:
    about = {"rater_id": "g", "rubric": "shorter", "unit_id": HOSTILE, "suite": "3-abc"}
    digest = study.rubrics["shorter"].hash
    study.store.add_grades(
        AttackedGrade(
            **about, rubric_hash=digest, attack=name, target="", side="", label="L", draw=draw
        )
        for name, draw in (("clean", 0), ("clean", 1), ("placebo", 0))
    )


@pytest.mark.slow
def test_the_audits_answers_are_there_once_there_was_one(folder, tmp_path):
    def titles() -> list[str]:
        app = shown_to(folder, "Export")
        assert not app.exception
        return [each.proto.label for each in app.get("download_button")]

    title = "Answers of the injection audit"
    assert "Ratings" in titles()
    assert title not in titles()
    with open_study(folder) as study:
        audit(study)
        assert title in titles()
        content = counted(study, as_csv, exported_attacked)
        sidecar = sidecar_text(study, "units.csv", raters_page._ATTACKED)
    assert f"'{HOSTILE}".encode() in content  # as a spreadsheet would run it
    assert pd.read_csv(io.BytesIO(content))["attack"].tolist() == ["clean", "clean", "placebo"]
    file = part_path(tmp_path / "ratings.csv", "attacked")
    file.write_bytes(content)
    assert set(read_attacked(file)["unit_id"]) == {HOSTILE}
    assert f'attacked = "{file.name}"' in sidecar
