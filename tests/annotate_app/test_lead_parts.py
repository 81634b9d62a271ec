"""The lead's pages without a browser: what they say, take and count, who may act, and none lost."""

import io
import math
import re
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

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
from evenhand.reporting.new_study import look_at_items, read_content
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
from evenhand.study.tables.ratings import read_attacked
from evenhand.texts import DASH, written
from harness.studies import label_all, send, task_of, with_labels
from harness.visits import Visit, lead_query
from tests.cases import refused
from tests.commands import python


@pytest.mark.parametrize(
    ("keys", "digits"),
    [
        (load_rubric("refusal").categories, "1 2 3 4 5"),
        (load_rubric("even-handedness").categories, "1 2 3"),
        ([f"k{n}" for n in range(12)], "1 2 3 4 5 6 7 8 9   "),
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
    keys = [["hedging", "cohen_kappa", "humans", to, "all|binary", ""] for to in ("some-model", "")]
    rows = pd.DataFrame([dict(zip(RESULTS_KEY, key, strict=True)) for key in keys])
    about = {"rubric": "hedging", "grader": "some-model", "verdict": "only_with_correction"}
    verdict: Any = about | {"reason": "a <b>", "holds_for": "", "kappas": keys, "evidence": []}
    other = verdict | {"rubric": "refusal", "grader": "another", "kappas": []}
    table = pages.verdict_table([verdict, other], rows.assign(estimate=[0.77, 0.82]))
    words = TITLES["only_with_correction"].words
    cell = f'<b class="is-only_with_correction">± {words}</b><small>{{}}a &lt;b&gt;</small>'.format
    assert table.to_dict("records") == [
        {"grader": "some-model", "hedging": cell("0.77 vs 0.82; "), "refusal": DASH},
        {"grader": "another", "hedging": DASH, "refusal": cell("")},
    ]
    in_part = [verdict | {"holds_for": "binary"}]
    unknown = pages.verdict_table(in_part, rows.assign(estimate=[0.77, math.nan]))
    assert unknown["hedging"].tolist() == [cell("").replace('only_with_correction">±', 'part">(±)')]
    rows.loc[1, ["statistic", "rater_b"]] = keys[1][1], keys[1][3] = "people_kappa", "some-model"
    both = [pages.binary_kappas(rows, shown)["rater_b"].tolist() for shown in (in_part, [verdict])]
    assert both == [["some-model", ""], []]


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
    ways = [pages.report_link(each, RUBRIC_TITLES) for each in ([], some, none_on_one)]
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
    assert found.roles == read_content(file, ASKED).roles
    file = write(tmp_path / "items.csv", "prompt,answer_a,answer_b", "Hi,Hello,Hey", "Ho,Hi,Oh")
    found = look_at_items(file, ItemOptions())  # two answers are told as such
    assert found.show == ["prompt", "answer_a", "answer_b"]
    assert found.roles == read_content(file, ItemOptions()).roles
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
        said = _in_page(refused("", read_content, chat, ItemOptions(**how)))
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
    assert kappa_cell(row | {"agreement": -0.25}).endswith('--high: 0.00%"></i> 1</small>-0.25')
    first = made(maker, label(folder, "NA", "LRCLRCLRCLRR"))
    assert (first.complaint, first.quality["rater_id"].tolist()) == ("", ["NA", "ann"])
    (drawn, _) = map(kappa_cell, first.quality.to_dict("records"))
    assert re.search(r"--at: 87\.\d\d%; --low: .*>0\.87 \(0\.\d\d to ", drawn)
    kappas = pages.deciding_kappas(first.results, "linear")
    (row,) = pages.agreement_table(kappas, []).to_dict("records")
    assert re.fullmatch(r"0\.8\d \[0\.\d\d, .*\]", row[""])
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
            "r1": "LRC-LRCLRC-L", "r2": "LLCRRC-LRCLR", "r3": "CCCCRRLL----", "r4": "LRLRLRLRLRLR",
        }  # fmt: skip
        with_labels(study, given, "shorter", seconds=[None, *range(1, 12)])
        exclude(study.store, "r4", "too fast")
        task_of(AnnotationDesk(study), "new")  # is open
        for count in (progress.rubric_progress, progress.rater_progress):
            pd.testing.assert_frame_equal(latest(study, count), count(study))
        queue = disagreements.adjudication_queue(study)
        assert latest(study, disagreements.adjudication_queue) == queue != []
        answers = counted(study, progress.rater_answers, "r1")
        pd.testing.assert_frame_equal(answers, progress.rater_answers(study, "r1"))
        with pytest.raises(InputError, match="annotators have no labels on this item"):
            counted(study, disagreements.reopen, ("none", "shorter"))  # said here too
        before = latest(study, progress.rubric_progress)["done"].sum()
        label_all(AnnotationDesk(study), "new", "L", 1)
        assert latest(study, progress.rubric_progress)["done"].sum() == before + 1
        people = latest(study, progress.rater_progress).set_index("rater_id")
        assert people.loc["new", "answers"] == 1


ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"
FORMULA = "=HYPERLINK(1)|secret-subject"


@pytest.fixture
def folder(make_study) -> Path:
    """A study with a lead and an expert."""
    folder = make_study(2)
    with open_study(folder) as study:
        for name, role in (("ada", "lead"), ("chair", "expert")):
            set_account(study.store, name, PASSWORD, role)
    return folder


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
    done = python("-c", LOADED, folder, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    *seen, loaded = done.stdout.splitlines()
    assert [written("lead_door.title") in each for each in seen] == [False, True, True]
    assert loaded == "set()"


def logged_in(visit: Visit, name: str) -> Visit:
    return visit.fill({"Name": name, "Password": PASSWORD}).press("Log in")


@pytest.mark.journey
def test_every_page_is_shown_to_its_roles_alone(folder, window):
    visit, door = window(folder, "", "overview"), written("lead_door.title")
    for page in PAGES:
        assert (visit.turn_to(page.title).headings, visit.pages) == ([door], [])
    logged_in(visit, "chair")
    for page in PAGES:
        assert visit.turn_to(page.title).headings[0] == "Adjudication"
        assert visit.pages == ["Adjudication"]
    with open_study(folder) as study:
        disable_account(study.store, "chair")
    assert visit.run().headings == [door]


@pytest.mark.journey
def test_who_has_ended_pauses_nothing(folder, window):
    visit = logged_in(window(folder, "", "recruitment"), "ada")
    with open_study(folder) as study:
        set_account(study.store, "bea", PASSWORD, "lead")
        disable_account(study.store, "ada")
        assert visit.press("Pause the study").headings == [written("lead_door.title")]
        assert not oversight(study.store).paused


@pytest.mark.journey
def test_flags_on_a_rubric_that_is_gone_do_not_block_the_others(folder, window):
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        desk.register("ann")
        task = task_of(desk, "ann").task_id
        reasons = ("harmful", "other")
        send(desk, "ann", *(Flag(submit_id=n, task_id=task, reason=n) for n in reasons))
        with study.store.write() as connection:
            connection.exec_driver_sql("UPDATE remarks SET rubric='gone' WHERE reason='harmful'")
    shown = window(folder, lead_query(folder), "flags").text()
    assert (shown.count("form flag-"), shown.count("no rubric")) == (2, 1)


@pytest.mark.slow
def test_the_audits_answers_are_there_once_there_was_one(folder, window, tmp_path):
    visit, title = window(folder, lead_query(folder)), "Answers of the injection audit"
    shown = visit.turn_to("Export").text()
    assert ("Ratings" in shown, title in shown) == (True, False)
    about = {"rater_id": "g", "rubric": "shorter", "unit_id": FORMULA, "suite": "3-abc"}
    about |= {"target": "", "side": "", "label": "L"}
    with open_study(folder) as study:
        about["rubric_hash"] = study.rubrics["shorter"].hash
        study.store.add_grades(
            AttackedGrade(**about, attack=attack, draw=draw)
            for attack, draw in (("clean", 0), ("clean", 1), ("placebo", 0))
        )
        assert title in visit.turn_to("Export").text()
        content = counted(study, as_csv, exported_attacked)
        sidecar = sidecar_text(study, "units.csv", raters_page._ATTACKED)
    assert f"'{FORMULA}".encode() in content  # as a spreadsheet would run it
    assert pd.read_csv(io.BytesIO(content))["attack"].tolist() == ["clean", "clean", "placebo"]
    file = part_path(tmp_path / "ratings.csv", "attacked")
    file.write_bytes(content)
    assert set(read_attacked(file)["unit_id"]) == {FORMULA}
    assert f'attacked = "{file.name}"' in sidecar
