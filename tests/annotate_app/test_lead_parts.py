"""The lead's pages without a browser: what they say, take and count, who may act, and none lost."""

import io
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from evenhand.analysis.results import RESULTS_KEY
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.annotate_app.lead import adjudication_page, pages, parts, raters_page
from evenhand.annotate_app.lead.new_study_page import _FIELDS, _ROLES, _in_page, _role_of
from evenhand.annotate_app.lead.pages import PAGES
from evenhand.annotate_app.lead.parts import counted, latest
from evenhand.annotate_app.lead.raters_page import kappa_cell
from evenhand.annotate_app.logins import PLACES, place_of
from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.exporting import as_csv, exported_attacked, part_path, sidecar_text
from evenhand.reporting.new_study import item_study, look_at_items
from evenhand.reporting.ratings_file.declared import ItemOptions
from evenhand.reporting.report import study_quality
from evenhand.rubrics import load_rubric
from evenhand.rubrics.options import Option
from evenhand.study import open_study
from evenhand.study.access import disable_account, set_account
from evenhand.study.desk.claims import exclude, oversight
from evenhand.study.desk.desk import AnnotationDesk, Flag
from evenhand.study.lead import disagreements, progress
from evenhand.study.store.grades import AttackedGrade
from evenhand.study.store.logs.decisions import note_act
from evenhand.study.tables.ratings import read_attacked
from evenhand.texts import DASH, written
from harness.studies import label_all, send, task_of, with_labels
from tests.commands import python


@pytest.mark.parametrize(
    ("keys", "digits"),
    [
        (load_rubric("refusal").categories, "1 2 3 4 5"),
        (load_rubric("even-handedness").categories, "1 2 3"),
        ([f"k{n}" for n in range(11)], "1 2 3 4 5 6 7 8 9  "),
        (["0", "1", "10"], "0 1 "),
    ],
    ids=["their own", "places", "many", "two digits"],
)
def test_options_have_the_digits_that_choose_them(keys, digits):
    rows = adjudication_page.option_rows([Option(key=key, name="x") for key in keys])
    assert [row["digit"] for row in rows] == digits.split(" ")


def test_a_decision_is_read_and_what_has_another_form_is_nothing():
    for more, (label, reason, passes) in (
        ({"label": "C", "reason": "so"}, ("C", "so", False)),
        ({"passes": True}, ("", "", True)),
        ({"passes": "yes"}, ("", "", False)),
    ):
        read = adjudication_page.read_decision({"token": "t"} | more)
        assert read == adjudication_page.Sent("t", label, reason, passes=passes)
    long = {"token": "t", "reason": "x" * (adjudication_page.LONGEST_REASON + 1)}
    for sent in (None, "token", ["token"], {"token": 3}, {"token": "t", "label": ["C"]}, long):
        assert adjudication_page.read_decision(sent) is None


def test_the_table_of_verdicts_has_both_kappas_where_they_are_known():
    keys = [["hedging", "cohen_kappa", "humans", rater, "all", ""] for rater in ("some-model", "")]
    rows = pd.DataFrame([dict(zip(RESULTS_KEY, key, strict=True)) for key in keys])
    about = {"rubric": "hedging", "grader": "some-model", "verdict": "only_with_correction"}
    about |= {"reason": "a failing slice <b>", "holds_for": ""}
    verdict: Any = about | {"kappas": keys, "evidence": []}
    words = TITLES["only_with_correction"].words
    other = verdict | {"rubric": "refusal", "grader": "another", "kappas": []}
    table = pages.verdict_table([verdict, other], rows.assign(estimate=[0.77, 0.82]))
    cell = f"<b>± {words}</b><small>{{}}a failing slice &lt;b&gt;</small>".format
    assert table.to_dict("records") == [
        {"grader": "some-model", "hedging": cell("0.77 vs 0.82; "), "refusal": DASH},
        {"grader": "another", "hedging": DASH, "refusal": cell("")},
    ]
    unknown = pages.verdict_table([verdict], rows.assign(estimate=[0.77, math.nan]))
    assert unknown["hedging"].tolist() == [cell("")]


def test_every_page_has_its_address():
    assert {place_of(page.title) for page in PAGES} == PLACES


RUBRIC_TITLES = {"r": "Refusal", "s": "Style"}


def verdicts(**given: str) -> list[Any]:
    return [
        {"rubric": rubric, "grader": n, "verdict": verdict}
        for rubric, each in given.items()
        for n, verdict in enumerate(each.split())
    ]


def test_a_study_is_decided_where_every_grader_has_a_conclusive_verdict():
    assert pages.is_decided(verdicts(r="do_not_use can_replace"))
    for undecided in (verdicts(r="do_not_use inconclusive"), []):
        assert not pages.is_decided(undecided)
    some = verdicts(r="do_not_use only_with_correction", s="can_replace")
    none_on_one = verdicts(r="can_replace", s="do_not_use")
    after = pages.report_link
    ways = [after(each, RUBRIC_TITLES) for each in ([], some, none_on_one)]
    assert {way.title for way in ways} == {"Export"}
    assert ["No grader passes on Style" in way.text for way in ways] == [False, False, True]


ASKED = ItemOptions(question="Is it right?", options=("yes", "no"))
OF_THE_MACHINE = {"help", "port", "url", "host", "no-browser"}


def test_every_option_of_label_has_a_field(capsys):
    main(["label", "--help"])
    options = set(re.findall(r"--([a-z][a-z-]+)", capsys.readouterr().out))
    assert options - OF_THE_MACHINE - {"sample"} <= set(_FIELDS)  # the sample has another name


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows))
    return path


def test_each_column_is_told_before_anything_is_asked(tmp_path):
    file = write(tmp_path / "items.csv", "prompt,output,model,tone", "Hi,Hello,m1,warm")
    found = look_at_items(file, ASKED)
    assert found.columns == [
        ("prompt", "Hi"), ("output", "Hello"), ("model", "m1"), ("tone", "warm"),
    ]  # fmt: skip
    assert found.show == ["prompt", "output"]
    assert [_role_of(name, found) for name, _ in found.columns] == [
        "read by annotators, the prompt", "read by annotators, the response",
        "the subject (model under test)", "kept with the item",
    ]  # fmt: skip
    assert found.roles == item_study(file, ASKED).roles
    file = write(tmp_path / "items.csv", "prompt,answer_a,answer_b", "Hi,Hello,Hey", "Ho,Hi,Oh")
    found = look_at_items(file, ItemOptions())  # two answers are told as such
    assert found.show == ["prompt", "answer_a", "answer_b"]
    assert found.roles == item_study(file, ItemOptions()).roles
    assert {role for role, _ in found.roles} <= set(_ROLES)


def test_what_is_not_clear_is_said_beside_the_columns(tmp_path):
    found = look_at_items(write(tmp_path / "items.csv", "task,said", "Hi,Hello"), ASKED)
    assert [name for name, _ in found.columns] == ["task", "said"]
    assert "“Columns that annotators read, in this order”" in _in_page(found.fault)
    assert "--" not in _in_page(found.fault)
    assert _role_of("task", found) == ""


def test_complaints_name_fields_for_options(tmp_path):
    chat = write(tmp_path / "items.csv", "response", "Hello")
    asked, both = {"question": "?"}, {"options": ("a", "b")}
    wrong = [{}, asked, both, asked | {"scale": "1-x"}, asked | {"options": ("yes",)}]
    wrong += [asked | {"scale": "1-5", "several": True}, asked | both | {"each_turn": True}]
    for how in (*wrong, asked | both | {"steps": 3}):
        with pytest.raises(InputError) as complaint:
            item_study(chat, ItemOptions(**how))
        said = _in_page(str(complaint.value))
        assert "--" not in said
        assert "yes,no" not in said


def made(maker: parts.FiguresMaker, version: str) -> parts.LiveFigures:
    for _ in range(600):
        maker.request(version)
        if maker.last_attempt and maker.last_attempt.version == version:
            return maker.last_attempt
        time.sleep(0.1)
    pytest.fail("no figures")


def label(folder: Path, rater: str, labels: str) -> str:
    with open_study(folder) as study:
        return progress.data_version(with_labels(study, {rater: labels}, "shorter"))


@pytest.mark.thorough
def test_figures_follow_the_labels(make_study):
    folder = make_study(12)
    maker = parts.FiguresMaker(folder)
    with open_study(folder) as study:
        empty = made(maker, progress.data_version(study))
    assert empty.complaint.startswith("the study has no labels and no grades yet")
    assert maker.current is None
    label(folder, "ann", "LRCLRCLRCLRC")
    with open_study(folder) as study:
        (row,) = study_quality(study).to_dict("records")
    assert kappa_cell(row) == ""  # whom nobody labels beside
    assert kappa_cell(row | {"agreement": -0.25}).endswith('--high: 0.00%"></i>-0.25')
    first = made(maker, label(folder, "NA", "LRCLRCLRCLRR"))
    assert first.complaint == ""
    assert first.quality["rater_id"].tolist() == ["NA", "ann"]
    (drawn, _) = map(kappa_cell, first.quality.to_dict("records"))
    assert re.search(r"--at: 87\.\d\d%; --low: .*>0\.87 \(0\.\d\d to ", drawn)
    main = pages.main_rows(first.results)
    assert main["who"].iloc[0] == "Annotators with one another"
    kappas = pages.deciding_kappas(main, "linear")
    (row,) = pages.agreement_table(kappas, []).to_dict("records")
    assert re.fullmatch(r"0\.8\d \(0\.\d\d to .*\)", row[""])
    (sentence,) = pages.precision_sentences(kappas, 0.01, "pair")
    assert sentence.startswith("shorter: label about ")
    (sentence,) = pages.precision_sentences(kappas, 0.5, "pair")
    assert sentence.startswith("shorter: enough.")
    maker.request(first.version)
    assert maker.last_attempt is first  # nothing has come in: nothing is made
    stages = set()
    newer = label(folder, "cy", "LLLLLLLLLLLL")
    maker.request(newer)
    while maker.stage:
        assert maker.current is first  # what was finished last stays until there is more
        stages.add(maker.stage)
        time.sleep(0.01)
    assert {"reading the labels", "analysing shorter (1 of 1)"} <= stages
    second = made(maker, newer)
    assert maker.current is second
    assert len(second.quality) == 3
    assert first.results is not None  # who still looks at the last ones can
    again = parts.FiguresMaker(folder)  # in another process, which has made none yet
    assert again.current is not None and again.last_attempt is None
    assert (again.current.version, again.current.made_at) == (newer, second.made_at)
    pd.testing.assert_frame_equal(again.current.quality, second.quality)


@pytest.mark.slow
def test_another_process_counts_the_same_and_what_comes_in_at_the_next_look(make_study):
    with open_study(make_study(12)) as study:
        given = {
            "r1": "LRC-LRCLRC-L",
            "r2": "LLCRRC-LRCLR",
            "r3": "CCCCRRLL----",
            "r4": "LRLRLRLRLRLR",
        }
        with_labels(study, given, "shorter", seconds=[None, *range(1, 12)])
        exclude(study.store, "r4", "too fast")
        task_of(AnnotationDesk(study), "new")  # is open
        for count in (progress.rubric_progress, progress.rater_progress):
            pd.testing.assert_frame_equal(latest(study, count), count(study))
        queue = disagreements.adjudication_queue(study)
        assert latest(study, disagreements.queue_length) == len(queue) > 0
        answers = counted(study, progress.rater_answers, "r1")
        pd.testing.assert_frame_equal(answers, progress.rater_answers(study, "r1"))
        (theirs,) = counted(study, progress.confusions, "r1").values()
        (ours,) = progress.confusions(study, "r1").values()
        pd.testing.assert_frame_equal(theirs, ours)
        with pytest.raises(InputError, match="annotators have no labels on this item"):
            counted(study, disagreements.reopen, ("none", "shorter"))  # said here too
        before = latest(study, progress.rubric_progress)["done"].sum()
        label_all(AnnotationDesk(study), "new", "L", 1)
        assert latest(study, progress.rubric_progress)["done"].sum() == before + 1
        people = latest(study, progress.rater_progress).set_index("rater_id")
        assert people.loc["new", "answers"] == 1


ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"
UNIT = "p0001|secret-subject"
FORMULA = "=HYPERLINK(1)|secret-subject"


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
        from evenhand.study.access import sign_in

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
            keys = [adjudication_page._key_of(each) for each in found]
            place = st.session_state.setdefault("place", adjudication_page._Place(keys[0]))
            adjudication_page._show_causes(study, place, place.key, keys, None)

    arguments = (str(folder), title, name, PASSWORD)
    return AppTest.from_function(script, args=arguments, default_timeout=60).run()


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
    done = python("-c", LOADED, looked_at, cwd=ROOT)
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


def button(app: AppTest, label: str):
    (found,) = [each for each in app.button if each.label.startswith(label)]
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
    assert [each.label for each in app.button].count("Mark as resolved") == 2
    assert "no rubric" in html_of(app)


def html_of(app: AppTest) -> str:
    return "".join(each.proto.body for each in app.get("html"))


@pytest.mark.slow
def test_every_item_is_found_with_its_labels_as_text_and_graders_only_on_request(
    folder, monkeypatch
):
    monkeypatch.setattr(adjudication_page, "_MOST_ITEMS", 1)
    with open_study(folder) as study:
        given = {"ann": "LR", "<img src=x>": "LC", "model-x": "RR"}
        with_labels(study, given, "shorter", graders=["model-x"])
    app = shown_to(folder, "Items")
    assert "&lt;img src=x&gt;: L · ann: L" in re.sub("<[^>]*>", "", drawn := html_of(app))
    assert [button(app, f"**{turn}").disabled for turn in ("Previous", "Next")] == [True, False]
    assert "No majority" not in drawn
    button(app, "**Next").click().run()
    assert "No majority" in (drawn := html_of(app))
    assert not any(hidden in drawn for hidden in ("<img src", "model-x", "evenhand-sides"))
    button(app, "**Previous").click()
    app.toggle[0].set_value(True).run()
    assert "model-x: R" in re.sub("<[^>]*>", "", html_of(app))
    app.text_input[0].set_value("P0001|").run()
    assert "evenhand-sides" in (drawn := html_of(app))  # the item as annotators saw it
    assert "No majority" not in drawn


@pytest.mark.slow
def test_the_log_shows_what_one_person_did(folder):
    with open_study(folder) as study:
        for name, file in (("ada", "ratings.csv"), ("ben", "times.csv")):
            note_act(study.store, "export", file, "", name)
    app = shown_to(folder, "Log")
    app.selectbox[1].set_value("ben").run()
    assert [file in html_of(app) for file in ("ratings.csv", "times.csv")] == [False, True]


@pytest.mark.slow
def test_what_was_sorted_is_kept_where_the_run_is_cut_short_and_of_two_keys_at_once_one_counts(
    make_folder,
):
    folder, other = make_folder(), make_folder()
    app = shown_to(folder, "sort")
    app.text_area[0].set_value("read twice")
    button(app, "Grader wrong").click()
    app.session_state["cut"] = True
    app.run()
    with open_study(folder) as study:
        (kept,) = disagreements.sorted_cases(study)
    said = (kept.unit_id, kept.kind, kept.note, kept.done_by)
    assert said == (UNIT, "grader_wrong", "read twice", "ada")
    app = shown_to(other, "sort")
    button(app, "Grader wrong").click()
    button(app, "Annotators wrong").click()
    app.run()
    assert "nothing was stored" in html_of(app)
    with open_study(other) as study:
        assert [each.unit_id for each in disagreements.sorted_cases(study)] == [UNIT]
    app.run()
    assert not app.get("html")


@pytest.mark.slow
def test_the_audits_answers_are_there_once_there_was_one(folder, tmp_path):
    def titles() -> list[str]:
        app = shown_to(folder, "Export")
        assert not app.exception
        return [each.proto.label for each in app.get("download_button")]

    title = "**Answers of the injection audit** CSV"
    assert "**Ratings** CSV" in titles()
    assert title not in titles()
    about = {"rater_id": "g", "rubric": "shorter", "unit_id": FORMULA, "suite": "3-abc"}
    about |= {"target": "", "side": "", "label": "L"}
    with open_study(folder) as study:
        about["rubric_hash"] = study.rubrics["shorter"].hash
        study.store.add_grades(
            AttackedGrade(**about, attack=attack, draw=draw)
            for attack, draw in (("clean", 0), ("clean", 1), ("placebo", 0))
        )
        assert title in titles()
        content = counted(study, as_csv, exported_attacked)
        sidecar = sidecar_text(study, "units.csv", raters_page._ATTACKED)
    assert f"'{FORMULA}".encode() in content  # as a spreadsheet would run it
    assert pd.read_csv(io.BytesIO(content))["attack"].tolist() == ["clean", "clean", "placebo"]
    file = part_path(tmp_path / "ratings.csv", "attacked")
    file.write_bytes(content)
    assert set(read_attacked(file)["unit_id"]) == {FORMULA}
    assert f'attacked = "{file.name}"' in sidecar
