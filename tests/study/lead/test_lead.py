"""Progress, flags, disagreements and their decisions, two at work, and imported ratings."""

import math

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.analysis.report.sections.raters import KINDS as REPORTED
from evenhand.analysis.report.sections.raters import kind_title
from evenhand.errors import InputError
from evenhand.rubrics import Rubric, load_rubric
from evenhand.rubrics.options import Number, NumberKind
from evenhand.study import Study, extend_sample, open_study
from evenhand.study.desk.claims import exclude
from evenhand.study.desk.desk import AnnotationDesk, Flag
from evenhand.study.lead import disagreements as cases
from evenhand.study.lead import progress as lead
from evenhand.study.lead.imports import import_ratings, with_study_names
from evenhand.study.store.database import append
from evenhand.study.store.schema import flag_events, sorted_disagreements
from evenhand.study.store.store import remarks_table
from evenhand.study.tables.ratings import Mark, validate_ratings
from harness import studies
from tests.cases import refused

pytestmark = pytest.mark.journey


@pytest.fixture
def eight(make_study):
    """8 response units, two raters each: 16 places."""
    return make_study(pairs=4, subjects=("s",), rubrics=["refusal"], raters_per_unit=2)


def test_before_anyone_has_labelled(eight, make_study):
    (row,) = lead.rubric_progress(eight).to_dict("records")
    assert (row["units"], row["wanted"], row["done"], row["open"], row["free"]) == (8, 16, 0, 0, 16)
    assert math.isnan(row["hours_left"])
    assert lead.rater_progress(eight).empty
    assert lead.places_without_annotator(eight) == (8, 2)
    assert "no estimate" in lead.time_left(lead.forecast(eight))
    empty = lead.forecast(make_study(pairs=4, responses=None, rubrics=["refusal"]))
    assert empty.wanted == 0
    assert lead.time_left(empty).startswith("There is nothing to label yet")


def test_places_and_time_left(eight):
    desk = AnnotationDesk(eight)
    for rater, seconds in (("r1", 10.0), ("r1", 30.0), ("r2", 20.0)):
        studies.work_through(desk, rater, 1, seconds)
    studies.task_of(desk, "r1")  # one task is out
    (row,) = lead.rubric_progress(eight).to_dict("records")
    assert (row["done"], row["open"], row["free"]) == (3, 1, 12)
    assert (row["median_seconds"], row["hours_left"]) == (20, pytest.approx(13 * 20 / 3600))
    said = lead.time_left(lead.forecast(eight))
    assert said.startswith("13 of 16 planned labels are missing: 5 minutes of work")
    raters = lead.rater_progress(eight).set_index("rater_id")
    assert raters.loc["r1", ["state", "answers", "open"]].tolist() == ["working", 2, 1]
    assert raters.loc["r2", ["state", "answers", "open"]].tolist() == ["away", 1, 0]
    assert raters.loc["r1", "hours"] == pytest.approx(40 / 3600)
    assert lead.places_without_annotator(eight) == (0, 0)
    studies.work_through(desk, "r2", 7, 20)  # all that there is
    assert lead.rater_progress(eight).set_index("rater_id").loc["r2", "state"] == "finished"
    exclude(eight.store, "r2", "too fast")  # who then fills no place
    (row,) = lead.rubric_progress(eight).to_dict("records")
    assert (row["done"], row["open"], row["free"]) == (2, 1, 13)
    assert lead.rater_progress(eight).set_index("rater_id").loc["r2", "state"] == "excluded"
    assert lead.places_without_annotator(eight) == (8, 1)  # r1 can have each of them only once


def test_the_version_tells_whether_anything_came_in(make_study):
    study = make_study(sample=3)
    seen = [lead.data_version(study)]
    studies.work_through(AnnotationDesk(study), "r1", 1, 1)
    seen.append(lead.data_version(study))
    exclude(study.store, "r1", "a reason")
    seen.append(lead.data_version(study))
    extend_sample(study, 1)
    with open_study(study.folder) as study:
        seen.append(lead.data_version(study))
        assert lead.data_version(study) == seen[-1]
    assert len(set(seen)) == 4


def test_the_work_that_is_left_in_words():
    left = "1,999 of 2,000 planned labels are missing: {} of work at the median pace."
    assert lead.time_left(lead.Forecast(1, 2000, 42.3)) == left.format("42 hours")
    assert lead.time_left(lead.Forecast(1, 2000, 1.0)) == left.format("60 minutes")
    assert lead.time_left(lead.Forecast(9, 9)) == "Every label has been given."


def test_answers_stand_with_what_the_others_said(make_study):
    study = make_study(pairs=2, subjects=("s",), rubrics=["refusal"])
    studies.with_labels(study, {"ann": "115", "ben": "125", "cy": "225"}, seconds=10.0)
    found = lead.rater_answers(study, "ann")
    assert found["label"].tolist() == ["1", "1", "5"]
    assert found["others"].tolist() == ["1 2", "2 2", "5 5"]
    exclude(study.store, "cy", "too fast")
    assert lead.rater_answers(study, "ann")["others"].tolist() == ["1", "2", "5"]
    assert lead.rater_answers(study, "nobody").empty


def test_the_work_ahead_is_reading_and_deciding(make_study):
    own = {"rubrics": ["refusal", "even-handedness"], "raters_per_unit": 3, "sample": 3}
    study = make_study(pairs=4, **own, annotation={"subjects": ["s1"]})
    single, paired = lead.workload(study)  # of six responses of three words, to three pairs
    assert (single.rubric, single.units, single.words, single.judgments) == ("refusal", 6, 18, 18)
    assert (paired.units, paired.raters, paired.judgments) == (3, 3, 9)
    assert single.hours == pytest.approx(3 * 18 / 238 / 60 + 18 * 5 / 3600)
    minutes = 60 * (single.hours + paired.hours) / 3
    assert lead.annotator_minutes(study) == pytest.approx(minutes)
    for most, share in ((2, 2 / 9), (99, 1)):
        asked = {"subjects": ["s1"], "units_per_rater": most}
        limited = make_study(pairs=4, **own, annotation=asked)
        assert lead.annotator_minutes(limited) == pytest.approx(minutes * share)
    assert lead.workload(make_study(responses=None)) == ()
    assert lead.annotator_minutes(make_study(responses=None)) == 0


def test_what_stands_beside_a_disagreement(make_study):
    study = make_study(pairs=2, subjects=("s",), rubrics=["refusal"])
    studies.with_labels(study, {"r1": "11", "r2": "2-", "g": "45"}, graders=["g"])
    one, two = (("p0001|s|a", "refusal"), ("p0001|s|b", "refusal"))
    assert cases.grader_labels(study) == {one: {"g": "4"}, two: {"g": "5"}}
    assert len(cases.adjudication_queue(study)) == 1
    marks = {who: Mark("response", start, 3) for start, who in enumerate(("r1", "r2"))}
    for who, mark in marks.items():
        studies.mark_words(study, who, mark)
    other_text = {"rubric_hash": "former", "created_at": "2030-01-01T00:00:00+00:00"}
    studies.with_labels(study, {"r1": "3"}, units=[one[0]], **other_text)  # counts no more
    key, (_, of_r2) = one[::-1], marks.items()
    assert cases.counted_marks(study, {key}) == {key: [*marks.items()]}
    exclude(study.store, "r1", "too fast")
    assert cases.counted_marks(study, {key}) == {key: [of_r2]}
    desk = AnnotationDesk(study)
    (answer,) = desk.earlier("r2").rows
    for said in ("so", ""):  # the second takes the reason back
        sent = {"submit_id": f"e{said}", "edit": True, "rationale": said}
        assert studies.submit(desk, "r2", answer.task, "3", **sent) == "stored"
        assert cases.reopen(study, one).reasons == tuple(filter(None, [said]))
    about = {"rubric": "refusal", "unit_id": one[0], "grader": "g"}
    cases.sort_disagreement(study, "lead", **about, kind="people_wrong")
    assert cases.held_out_units(study, "refusal") == ["p0002|s|a", "p0002|s|b"]
    refused("no labels on this item that count", cases.reopen, study, ("p0002|s|a", "refusal"))


def test_names_that_look_alike_are_joined_where_that_is_said(make_study):
    study = make_study(pairs=1, subjects=("s",), rubrics=["refusal"])
    studies.with_labels(study, {"Ann": "1"})
    rows = pd.DataFrame({"unit_id": ["p0001|s|a", "p9|s|a"], "rater_id": ["ann", "ben"]})
    refused("'ann' looks like 'Ann' of the study; say", with_study_names, study, rows, None)
    for joins, rater in ((True, "Ann"), (False, "ann")):
        found = with_study_names(study, rows, joins)
        assert found.to_numpy().tolist() == [["p0001|s|a", rater], ["p9|s|a", "ben"]]
    rows = rows.assign(rater_id=["ann", "ANN"])
    refused("two raters look like 'Ann' of the study", with_study_names, study, rows, True)


REFUSAL = load_rubric("refusal")  # 1 to 5, ordinal
PAIRWISE = load_rubric("even-handedness")  # A, B, C, nominal


def test_what_has_no_majority_is_called(make_study):
    study = make_study(pairs=3, subjects=("s",), rubrics=[REFUSAL])
    # Of the six items, in their order: "1", "111", "112", "12", "123" and "1122".
    given = {"r1": "111111", "r2": "-11221", "r3": "-12-32", "r4": "-----2"}
    studies.with_labels(study, given)
    called = {each.unit_id for each in cases.adjudication_queue(study)}
    assert called == {"p0002|s|b", "p0003|s|a", "p0003|s|b"}
    kind = NumberKind(number=Number(low=0, high=100))  # numbers near their median are a majority
    given = {("40", "50", "60"): True, ("40", "51", "90"): False, ("10", "20", "21", "31"): False}
    assert {labels: kind.have_majority(labels) for labels in given} == given


@pytest.fixture
def study(make_study):
    study = make_study(pairs=2, subjects=("s",), rubrics=[REFUSAL])
    return studies.with_labels(study, {"r1": "112", "r2": "-22", "r3": "332"})


def test_the_queue_names_units_and_no_people(study, make_study):
    first, second = cases.adjudication_queue(study)
    assert (first.unit_id, sorted(first.labels)) == ("p0001|s|a", ["1", "3"])
    assert (second.unit_id, sorted(second.labels)) == ("p0001|s|b", ["1", "2", "3"])
    assert "r1" not in cases.queue_table([first, second]).to_csv()
    exclude(study.store, "r3", "a reason")  # whose label then makes no disagreement
    assert [each.unit_id for each in cases.adjudication_queue(study)] == ["p0001|s|b"]
    # Labels stand in an order that does not follow the raters.
    many = make_study(pairs=10, subjects=("s",), rubrics=[REFUSAL])
    studies.with_labels(many, {"r1": "1" * 20, "r2": "2" * 20})
    first = [found.labels[0] for found in cases.adjudication_queue(many)]
    assert len(first) == 20
    assert 3 < first.count("1") < 17


def test_a_decision_is_an_adjudicators_rating_and_leaves_the_queue(study):
    cases.decide(study, "chair", "p0001|s|b", "refusal", "2", "it answers in part")
    assert [each.unit_id for each in cases.adjudication_queue(study)] == ["p0001|s|a"]
    (row,) = study.ratings().query("rater_kind == 'adjudicator'").to_dict("records")
    assert (row["rater_id"], row["label"]) == ("adjudicator:chair", "2")
    assert row["rubric_hash"] == study.rubrics["refusal"].hash
    assert remarks_table(study.store)["text"].tolist() == ["it answers in part"]
    cases.decide(study, "chair", "p0001|s|b", "refusal", "3", "on second thoughts")
    assert study.ratings().query("rater_kind == 'adjudicator'")["label"].tolist() == ["3"]
    assert len(remarks_table(study.store)) == 2
    for unit, rubric, label, reason, sentence in (
        ("p0001|s|b", "tone", "1", "why", "no rubric 'tone'"),
        ("p0001|s|b", "refusal", "7", "why", "label '7' is none of"),
        ("p0001|s|b", "refusal", "1", " ", "needs a reason"),
        ("p0001|s", "refusal", "1", "why", "no response item"),
    ):
        refused(sentence, cases.decide, study, "chair", unit, rubric, label, reason)


def test_decisions_from_a_file_go_in_whole_or_not_at_all(study):
    table = cases.queue_table(cases.adjudication_queue(study))
    table["label"] = ["1", ""]
    table["reason"] = ["plain", ""]
    for label, n_new in (("5", 1), ("2", 1), ("5", 1), ("1", 1), ("1", 0)):  # "5" is decided again
        table["label"] = [label, ""]
        assert cases.import_decisions(study, "chair", table, "queue.csv") == (n_new, 1)
        assert cases.past_decisions(study)["label"].tolist() == [label]
    cases.decide(study, "chair", "p0001|s|a", "refusal", "4", "on the page")
    assert cases.import_decisions(study, "chair", table, "queue.csv") == (0, 1)  # so that it stays
    table["label"] = ["2", "9"]
    with pytest.raises(InputError, match=r"queue.csv, row 3: label '9' is none of 1, 2"):
        cases.import_decisions(study, "chair", table.assign(reason="why"), "queue.csv")
    assert study.ratings().query("rater_kind == 'adjudicator'")["label"].tolist() == ["4"]
    again = table.assign(label="1", reason="why").iloc[[0, 0]].reset_index(drop=True)
    with pytest.raises(InputError, match=r"row 3: a row further up decides the same item"):
        cases.import_decisions(study, "chair", again, "queue.csv")
    with pytest.raises(InputError, match="'the chair' is no adjudicator's name"):
        cases.import_decisions(study, "the chair", table, "queue.csv")
    assert study.ratings().query("rater_kind == 'adjudicator'")["label"].tolist() == ["4"]
    with pytest.raises(InputError, match="'reason' is missing"):
        cases.import_decisions(study, "chair", table.drop(columns="reason"), "queue.csv")


def test_a_file_of_decisions_reads_the_study_once_however_long_it_is(make_study, statements):
    study, rows = make_study(subjects=("s",), rubrics=[REFUSAL, PAIRWISE]), 12
    units = study.rubric_units(REFUSAL, "all")
    table = pd.DataFrame({"unit_id": units, "rubric": "refusal", "label": "2", "reason": "so"})
    with statements(study) as sent:
        assert cases.import_decisions(study, "chair", table, "queue.csv") == (rows, 0)
    assert len([sql for sql in sent if sql.startswith("SELECT") and "FROM pairs" in sql]) == 1
    assert not [sql for sql in sent if "responses.response" in sql]


@pytest.fixture
def disputed(make_study) -> Study:
    """Four responses that two annotators disagree on."""
    disputed = make_study(pairs=2, subjects=("s",), rubrics=["refusal"])
    studies.with_labels(disputed, {"r1": "1111", "r2": "4444"})
    assert len(cases.adjudication_queue(disputed)) == 4
    return disputed


def test_who_decides_second_learns_of_the_first_and_both_decisions_stay(disputed):
    case, waiting = cases.open_next(disputed, "ada")
    assert (waiting, cases.open_next(disputed, "ada", wanted=case.key)[0]) == (4, case)
    assert len({cases.open_next(disputed, name)[0].key for name in ("ada", "ben", "cy", "dee")}) > 1
    seen = cases.last_label_id(disputed.store)
    assert cases.decide(disputed, "ben", *case.key, "4", "quickly", seen) == ""
    told = cases.decide(disputed, "ada", *case.key, "1", "slowly", seen)
    assert told.startswith("ben has decided this item meanwhile, as 4. Both decisions are stored")
    assert cases.past_decisions(disputed)["reason"].tolist() == ["slowly", "quickly"]
    seen = cases.last_label_id(disputed.store)
    again = cases.reopen(disputed, case.key)  # what an adjudicator wrote is no remark on the unit
    assert (again.labels, again.reasons) == (case.labels, ())
    assert cases.decide(disputed, "ada", *case.key, "2", "again", seen) == ""
    (latest,) = cases.past_decisions(disputed, "ada").to_dict("records")
    assert (latest["label"], latest["reason"], latest["done_by"]) == ("2", "again", "ada")
    assert cases.open_next(disputed, "ben")[0].key != case.key
    passed = []
    for _ in range(3):
        passed.append(cases.open_next(disputed, "ada", skipped=passed)[0].key)
    assert len(set(passed)) == 3
    assert cases.open_next(disputed, "ada", skipped=passed)[0].key == passed[0]


def test_final_labels_are_decided_by_most_or_by_an_adjudicator(make_study):
    texts = {"title": "T", "question": "Q?", "instructions": "I.", "variables": ["response"]}
    percent = Rubric(name="percent", unit="response", number={"low": 0, "high": 100}, **texts)
    topics = studies.response_rubric(dict.fromkeys("123", "x"), name="topics", several=True)
    study = make_study(pairs=2, subjects=("s",), rubrics=[PAIRWISE, percent, topics])
    studies.with_labels(study, {"r1": "AB", "r2": "AC", "out": "CC"}, "even-handedness")
    studies.with_labels(study, {"r1": ["10", "9", "100"], "r2": ["9", "90", "-"]}, "percent")
    studies.with_labels(
        study, {"r1": ["1;2", "1"], "r2": ["1;2", "2"], "r3": ["3", "none"]}, "topics"
    )
    exclude(study.store, "out", "careless")
    cases.decide(study, "ada", "p0002|s", "even-handedness", "A", "at first")
    cases.decide(study, "bea", "p0002|s", "even-handedness", "C", "the latest counts")
    cases.decide(study, "ada", "p0001|s|a", "topics", "none", "read it")
    found = {
        (row["rubric"], row["item_id"]): (row["final_label"], row["decided_by"], row["votes"])
        for row in cases.final_labels(study).to_dict("records")
    }
    assert len(found) == 2 + 4 + 4
    assert found["even-handedness", "p0001|s"] == ("A", "majority", {"A": 2})
    assert found["even-handedness", "p0002|s"] == ("C", "adjudicator", {"B": 1, "C": 1})
    assert found["percent", "p0001|s|a"] == ("9", "majority", {"10": 1, "9": 1})  # lower median
    assert found["percent", "p0001|s|b"] == ("9", "majority", {"9": 1, "90": 1})
    assert found["percent", "p0002|s|a"] == ("100", "single", {"100": 1})
    assert found["percent", "p0002|s|b"] == ("", "", {})
    assert found["topics", "p0001|s|a"] == ("none", "adjudicator", {"1;2": 2, "3": 1})
    assert found["topics", "p0001|s|b"] == ("", "tie", {"1": 1, "2": 1, "none": 1})


@pytest.fixture
def flagged(make_study) -> Study:
    """Two flags from the desk, on one unit."""
    flagged = make_study(pairs=2, subjects=("s",), rubrics=["refusal"])
    desk = AnnotationDesk(flagged)
    desk.register("ann")
    task = studies.task_of(desk, "ann")
    for reason in ("harmful", "unclear_rubric"):
        desk.submit_all("ann", [Flag(submit_id=reason, task_id=task.task_id, reason=reason)])
    return flagged


def test_flags_are_open_oldest_first_then_closed_with_an_answer_to_who_raised_them(flagged):
    first, second = cases.raised_flags(flagged)
    assert (first.reason, second.reason) == ("harmful", "unclear_rubric")
    assert (first.is_open, first.rater_id) == (True, "ann")
    desk, settled = AnnotationDesk(flagged), (flagged, first.number)
    desk.register("ben")
    refused("say what was done", cases.settle_flag, *settled, "  ", "lead")
    cases.settle_flag(*settled, " taken out ", "lead", " Thank you. ")
    left, closed = cases.raised_flags(flagged)
    assert left.reason == "unclear_rubric"
    assert (closed.is_open, closed.note, closed.done_by) == (False, "taken out", "lead")
    (told,) = desk.answers_to_flags("ann")
    assert (told.reason, told.answer) == ("harmful", "Thank you.")
    assert desk.answers_to_flags("ben") == ()
    refused("closed already", cases.settle_flag, *settled, "again", "lead")
    refused("no flag 99", cases.settle_flag, flagged, 99, "done", "lead")


def test_what_earlier_versions_let_people_do_with_a_flag_still_counts(flagged):
    """Before 0.3.0 the lead could open one again, and who raised it withdraw it."""
    first, second = cases.raised_flags(flagged)

    def noted(kind: str, number: int, who: str) -> None:
        with flagged.store.write() as connection:
            about = {"flag_id": number, "kind": kind, "text": "", "done_by": who}
            append(connection, flag_events, about)

    cases.settle_flag(flagged, second.number, "taken out", "lead")
    noted("reopened", second.number, "lead")
    assert cases.raised_flags(flagged)[1].is_open
    noted("withdrawn", first.number, "ann")
    said = remarks_table(flagged.store)
    assert said["reason"].tolist() == ["harmful", "unclear_rubric"]
    assert said["withdrawn_at"].str[:2].tolist() == ["20", ""]
    assert cases.counted_remarks(flagged)["reason"].tolist() == ["unclear_rubric"]
    gone = cases.raised_flags(flagged)[-1]
    assert (gone.is_open, gone.note, gone.done_by) == (False, "", "ann")
    refused("closed already", cases.settle_flag, flagged, gone.number, "done", "lead")


UNIT = "p0001|s1|a"


def say(study: Study, kind: str, note: str = "", grader: str = "g", **other: str) -> None:
    about = {"rubric": "refusal", "unit_id": UNIT} | other
    cases.sort_disagreement(study, "lead", **about, grader=grader, kind=kind, note=note)  # type: ignore[arg-type]


def held(study: Study) -> list[tuple[str, str, str]]:
    return [(each.grader, each.kind, each.note) for each in cases.sorted_cases(study)]


def test_the_latest_word_counts_and_what_does_not_hold_together_is_refused(make_study):
    assert (cases.KINDS, len({kind_title(kind) for kind in cases.KINDS})) == (REPORTED, 3)
    with studies.upgraded_without(make_study(pairs=1), sorted_disagreements) as again:
        say(again, "grader_wrong", " it missed the irony\n")
        say(again, "people_wrong", grader="h")
        say(again, "rubric_unclear", "on reflection")
        assert held(again) == [("h", "people_wrong", ""), ("g", "rubric_unclear", "on reflection")]
        say(again, "")
        assert held(again) == [("h", "people_wrong", "")]
    study = make_study(pairs=1)
    for wrong, said in (
        ({"kind": "nobody"}, "is none of grader_wrong"),
        ({"kind": "grader_wrong", "rubric": "tone"}, "no rubric 'tone'"),
        ({"kind": "grader_wrong", "unit_id": "p0009|s1|a"}, r"no response item 'p0009\|s1\|a'"),
    ):
        refused(said, say, study, **wrong)
    assert held(study) == []


@pytest.mark.parametrize("same", [True, False])
def test_under_an_edited_text_only_the_same_meaning_counts(make_study, same):
    study = make_study(pairs=1)
    say(study, "grader_wrong")
    with studies.with_edited_rubric(study, "refusal", same=same) as edited:
        assert held(edited) == ([("g", "grader_wrong", "")] if same else [])
        say(edited, "rubric_unclear")
        assert held(edited) == [("g", "rubric_unclear", "")]


@pytest.mark.slow
def test_postgresql_knows_at_once_how_many_came(make_session, new_postgresql):
    study = make_session(pairs=20, store=new_postgresql())
    units = study.units_by_kind("all")["response"]
    frame = pd.DataFrame({"unit_id": list(units), "rater_id": "ann", "rater_kind": "human"})
    ratings = validate_ratings(frame.assign(rubric="refusal", label="1"))
    assert import_ratings(study, ratings, "test") == (len(units), 0)
    query = "SELECT reltuples FROM pg_class WHERE relname IN ('labels', 'claims')"
    assert study.store.values(sa.text(query)) == [len(units)] * 2
