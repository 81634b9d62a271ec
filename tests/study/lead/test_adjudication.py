"""The queue of disagreements, decisions that never count as a person's label, and two at work."""

import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.rubrics import Rubric, load_rubric
from evenhand.rubrics.options import Number, NumberKind
from evenhand.study import Study
from evenhand.study.desk.claims import exclude
from evenhand.study.lead import disagreements as adjudication
from evenhand.study.lead.disagreements import (
    adjudication_queue,
    decide,
    final_labels,
    import_decisions,
    open_next,
    past_decisions,
    queue_table,
)
from evenhand.study.lead.disagreements import reopen as reopen_case
from evenhand.study.store.logs.answers import remarks_table
from harness.studies import with_labels

REFUSAL = load_rubric("refusal")  # 1 to 5, ordinal
PAIRWISE = load_rubric("even-handedness")  # A, B, C, nominal


@pytest.mark.parametrize(
    ("given", "called"),
    [("1", False), ("111", False), ("112", False), ("12", True), ("123", True), ("1122", True)],
)
def test_what_has_no_majority_is_called(make_study, given, called):
    study = make_study(pairs=1, subjects=("s",), rubrics=[REFUSAL])
    with_labels(study, {f"r{number}": label for number, label in enumerate(given)})
    assert bool(adjudication_queue(study)) is called


def test_numbers_near_their_median_are_a_majority():
    kind = NumberKind(number=Number(low=0, high=100))
    given = {("40", "50", "60"): True, ("40", "51", "90"): False, ("10", "20", "21", "31"): False}
    assert {labels: kind.have_majority(labels) for labels in given} == given


@pytest.fixture
def study(make_study):
    study = make_study(pairs=2, subjects=("s",), rubrics=[REFUSAL])
    return with_labels(study, {"r1": "112", "r2": "-22", "r3": "332"})


def test_the_queue_names_units_and_no_people(study, make_study):
    first, second = adjudication_queue(study)
    assert (first.unit_id, sorted(first.labels)) == ("p0001|s|a", ["1", "3"])
    assert (second.unit_id, sorted(second.labels)) == ("p0001|s|b", ["1", "2", "3"])
    assert "r1" not in queue_table([first, second]).to_csv()
    exclude(study.store, "r3", "a reason")  # whose label then makes no disagreement
    assert [each.unit_id for each in adjudication_queue(study)] == ["p0001|s|b"]
    # Labels stand in an order that does not follow the raters.
    many = make_study(pairs=30, subjects=("s",), rubrics=[REFUSAL])
    with_labels(many, {"r1": "1" * 60, "r2": "2" * 60})
    first = [found.labels[0] for found in adjudication_queue(many)]
    assert len(first) == 60
    assert 15 < first.count("1") < 45


def test_a_decision_is_an_adjudicators_rating_and_leaves_the_queue(study):
    decide(study, "chair", "p0001|s|b", "refusal", "2", "it answers in part")
    assert [each.unit_id for each in adjudication_queue(study)] == ["p0001|s|a"]
    (row,) = study.ratings().query("rater_kind == 'adjudicator'").to_dict("records")
    assert (row["rater_id"], row["label"]) == ("adjudicator:chair", "2")
    assert row["rubric_hash"] == study.rubrics["refusal"].hash
    assert remarks_table(study.store)["text"].tolist() == ["it answers in part"]
    decide(study, "chair", "p0001|s|b", "refusal", "3", "on second thoughts")
    assert study.ratings().query("rater_kind == 'adjudicator'")["label"].tolist() == ["3"]
    assert len(remarks_table(study.store)) == 2


def test_decisions_from_a_file_go_in_whole_or_not_at_all(study):
    table = queue_table(adjudication_queue(study))
    table["label"] = ["1", ""]
    table["reason"] = ["plain", ""]
    assert import_decisions(study, "chair", table, "queue.csv") == (1, 1)
    table["label"] = ["2", "9"]
    with pytest.raises(InputError, match=r"queue.csv, row 3: label '9' is none of 1, 2"):
        import_decisions(study, "chair", table.assign(reason="why"), "queue.csv")
    assert study.ratings().query("rater_kind == 'adjudicator'")["label"].tolist() == ["1"]
    again = table.assign(label="1", reason="why").iloc[[0, 0]].reset_index(drop=True)
    with pytest.raises(InputError, match=r"row 3: a row further up decides the same item"):
        import_decisions(study, "chair", again, "queue.csv")
    with pytest.raises(InputError, match="'the chair' is no adjudicator's name"):
        import_decisions(study, "the chair", table, "queue.csv")
    assert study.ratings().query("rater_kind == 'adjudicator'")["label"].tolist() == ["1"]
    with pytest.raises(InputError, match="'reason' is missing"):
        import_decisions(study, "chair", table.drop(columns="reason"), "queue.csv")


@pytest.mark.parametrize(
    ("unit", "rubric", "label", "reason", "sentence"),
    [
        ("p0001|s|b", "tone", "1", "why", "no rubric 'tone'"),
        ("p0001|s|b", "refusal", "7", "why", "label '7' is none of"),
        ("p0001|s|b", "refusal", "1", " ", "needs a reason"),
        ("p0001|s", "refusal", "1", "why", "no response item"),
    ],
)
def test_what_is_no_decision(study, unit, rubric, label, reason, sentence):
    with pytest.raises(InputError, match=sentence):
        decide(study, "chair", unit, rubric, label, reason)


@pytest.mark.parametrize("rows", [1, 12])
def test_a_file_of_decisions_reads_the_study_once_however_long_it_is(make_study, statements, rows):
    study = make_study(subjects=("s",), rubrics=[REFUSAL, PAIRWISE])
    units = study.rubric_units(REFUSAL, "all")[:rows]
    table = pd.DataFrame({"unit_id": units, "rubric": "refusal", "label": "2", "reason": "so"})
    with statements(study) as sent:
        assert import_decisions(study, "chair", table, "queue.csv") == (rows, 0)
    read = [sql for sql in sent if sql.startswith("SELECT") and "FROM pairs" in sql]
    assert len(read) == 1
    assert not [sql for sql in sent if "responses.response" in sql]


# Two adjudicators at work


@pytest.fixture
def disputed(make_study) -> Study:
    """Four responses that two annotators disagree on."""
    disputed = make_study(pairs=2, subjects=("s",), rubrics=["refusal"])
    with_labels(disputed, {"r1": "1111", "r2": "4444"})
    assert len(adjudication_queue(disputed)) == 4
    return disputed


def test_who_decides_second_learns_of_the_first_and_both_decisions_stay(disputed):
    case, waiting = open_next(disputed, "ada")
    assert waiting == 4
    assert open_next(disputed, "ada", at=case.key)[0] == case
    assert len({open_next(disputed, name)[0].key for name in ("ada", "ben", "cy", "dee")}) > 1
    seen = adjudication.last_label(disputed.store)
    assert decide(disputed, "ben", *case.key, "4", "quickly", seen) == ""
    told = decide(disputed, "ada", *case.key, "1", "slowly", seen)
    assert told.startswith("ben has decided this item meanwhile, as 4. Both decisions are stored")
    assert past_decisions(disputed)["reason"].tolist() == ["slowly", "quickly"]
    seen = adjudication.last_label(disputed.store)
    assert decide(disputed, "ada", *case.key, "2", "again", seen) == ""
    assert open_next(disputed, "ben")[0].key != case.key


def test_who_passes_over_gives_the_unit_to_others_and_sees_it_again_at_the_end(disputed):
    seen = []
    for _ in range(4):
        case, _ = open_next(disputed, "ada", passed_over=seen)
        seen.append(case.key)
    assert len(set(seen)) == 4
    assert open_next(disputed, "ada", passed_over=seen)[0].key == seen[0]


@pytest.mark.slow
def test_a_revision_is_a_new_decision_and_the_latest_counts(disputed):
    case, _ = open_next(disputed, "ada")
    decide(disputed, "ada", *case.key, "1", "at first sight")
    again = reopen_case(disputed, case.key)
    assert again.labels == case.labels
    assert again.reasons == ()  # what the adjudicator wrote is nobody's remark on the unit
    decide(disputed, "ada", *case.key, "5", "read again")
    decide(disputed, "ben", *open_next(disputed, "ben")[0].key, "2", "plain")
    (mine,) = past_decisions(disputed, "ada").to_dict("records")
    assert (mine["label"], mine["reason"], mine["done_by"]) == ("5", "read again", "ada")
    assert past_decisions(disputed)["done_by"].tolist() == ["ben", "ada"]
    ratings = disputed.ratings()
    assert ratings[ratings["rater_id"] == "adjudicator:ada"]["label"].tolist() == ["5"]


def test_final_labels_are_decided_by_most_or_by_an_adjudicator(make_study):
    head = {
        "unit": "response",
        "title": "T",
        "question": "Q?",
        "instructions": "I.",
        "variables": ["response"],
    }
    percent = Rubric(name="percent", number={"low": 0, "high": 100}, **head)
    options = [{"key": key, "name": key} for key in "123"]
    topics = Rubric(name="topics", several=True, level="nominal", options=options, **head)
    study = make_study(pairs=2, subjects=("s",), rubrics=[PAIRWISE, percent, topics])
    with_labels(study, {"r1": "AB", "r2": "AC", "out": "CC"}, "even-handedness")
    with_labels(study, {"r1": ["10", "9", "100"], "r2": ["9", "90", "-"]}, "percent")
    with_labels(study, {"r1": ["1;2", "1"], "r2": ["1;2", "2"], "r3": ["3", "none"]}, "topics")
    exclude(study.store, "out", "careless")
    decide(study, "ada", "p0002|s", "even-handedness", "A", "at first")
    decide(study, "bea", "p0002|s", "even-handedness", "C", "the latest counts")
    decide(study, "ada", "p0001|s|a", "topics", "none", "read it")
    found = {
        (row["rubric"], row["item_id"]): (row["final_label"], row["decided_by"], row["votes"])
        for row in final_labels(study).to_dict("records")
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
