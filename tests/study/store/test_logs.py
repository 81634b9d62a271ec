"""The logs: decisions, what improving a grader decided, replies, grades under attack."""

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study import Study, open_study
from evenhand.study.access.accounts import new_link_token, open_link
from evenhand.study.desk.claims import decisions_table, exclude, oversight, pause, readmit
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.store.grades import AttackedGrade, GradeAttempt
from evenhand.study.store.logs.answers import add_event, answers_table, events_of, given_back
from evenhand.study.store.logs.decisions import (
    ACT_COLUMNS,
    TUNED_THRESHOLDS,
    ProofReading,
    Tried,
    TunedThreshold,
    acts,
    candidates_of,
    check_clusters,
    chosen_on,
    coming_looks,
    contents_read,
    ends_of,
    labels_hash,
    look_numbers,
    note_act,
    note_candidates,
    note_choice,
    note_end,
    note_parts,
    note_settings,
    parts_of,
    price_of,
    read_proof,
    rubrics_improved,
    texts_led_by,
)
from evenhand.study.store.logs.replies import (
    BatchJournal,
    BatchRequest,
    Chunk,
    attacked_table,
    finished_trials,
    gave_without_reasoning,
    known_replies,
    raw_replies,
)
from evenhand.study.store.schema import lead_events, threshold_events
from evenhand.study.tables.formats import write_table
from evenhand.study.tables.ratings import ATTACKED_COLUMNS, attacked_text, read_attacked
from harness.studies import label_all, upgraded_without

# Acts


def test_every_act_says_who_and_what_the_latest_first(make_study):
    study = make_study()
    assert acts(study.store).empty
    assert tuple(acts(study.store)) == ACT_COLUMNS
    label_all(AnnotationDesk(study), "ann", most=1)
    open_link(study.store, new_link_token(study.store))  # which is none
    exclude(study.store, "ann", "too fast", "ada")
    note_act(study.store, "export", "ratings.csv", "120 bytes", "ben")
    readmit(study.store, "ann", "it was a slip", "ada")
    pause(study.store, "lunch", "ada")
    found = acts(study.store)
    assert found["kind"].tolist() == ["pause", "readmit", "export", "exclude"]
    assert found["done_by"].tolist() == ["ada", "ada", "ben", "ada"]
    assert found.loc[2, ["about", "detail"]].tolist() == ["ratings.csv", "120 bytes"]
    assert found["created_at"].is_monotonic_decreasing
    # What is noted decides nothing, and is no decision.
    assert oversight(study.store).paused
    assert not oversight(study.store).exclusions
    assert decisions_table(study.store)["kind"].tolist() == ["exclude", "readmit", "pause"]


def test_what_was_noted_stays_as_it_was(make_study):
    study = make_study()
    before: list[tuple[object, ...]] = []
    for number in range(3):
        note_act(study.store, "account", f"name{number}", "set: lead", "ada")
        now = list(study.store.table(sa.select(lead_events)).itertuples(index=False, name=None))
        assert now[:number] == before
        before = now


def test_settings_are_noted_once_they_are_others(make_study):
    study = make_study()
    for text in ("one", "one", "two", "two", "one"):
        note_settings(study.store, text)
    found = acts(study.store)
    assert found["kind"].tolist() == ["settings"] * 3
    assert found["detail"].nunique() == 2


# Looks: counted by what people had labelled, and never forgotten


def test_the_same_labels_are_the_same_look_and_who_does_not_look_leaves_no_trace(make_study):
    store = make_study().store
    for digests, record, numbers in (
        ({"refusal": "first"}, True, {"refusal": 1}),
        ({"refusal": "first"}, True, {"refusal": 1}),
        ({"refusal": "second"}, False, {"refusal": 0}),
        ({"refusal": "second", "hedging": "first"}, True, {"refusal": 2, "hedging": 1}),
        ({"refusal": "first"}, True, {"refusal": 1}),
    ):
        assert look_numbers(store, digests, record=record) == numbers
    for _ in range(2):  # to ask for the number of a look is none
        present = {"refusal": "third", "hedging": "first"}
        assert coming_looks(store, present) == {"refusal": 3, "hedging": 1}


def test_looks_outlive_the_program(database, make_study):
    folder = make_study(**database).folder
    with open_study(folder) as study:
        look_numbers(study.store, {"refusal": "first"}, record=True)
    with open_study(folder) as study:
        assert look_numbers(study.store, {"refusal": "next"}, record=True) == {"refusal": 2}


def test_the_hash_knows_peoples_labels_and_nothing_else():
    given = [
        ("u1", "ann", "human", "1"),
        ("u2", "ann", "human", "2"),
        ("u1", "model", "model", "1"),
    ]
    columns = ["unit_id", "rater_id", "rater_kind", "label"]
    rows = pd.DataFrame(given, columns=columns).assign(order="", draw=0)
    same = labels_hash(rows)
    assert labels_hash(rows.iloc[::-1]) == same
    assert labels_hash(rows[rows["rater_kind"] == "human"]) == same
    assert labels_hash(rows.replace({"label": {"2": "3"}})) != same


# Tuned thresholds


@pytest.mark.slow
def test_what_was_tuned_is_kept_to_the_last_digit(make_study, database):
    study = make_study(**database)
    about = {"rubric": "refusal", "grader": "g", "reference": "humans", "instead_of": 0.1 + 0.2}
    first = TunedThreshold(threshold=1 / 3, objective="kappa", clusters=["p1", "p2"], **about)
    second = TunedThreshold(threshold=0.1314, objective="f1", clusters=["p9"], **about)
    with upgraded_without(study, threshold_events) as again:
        assert TUNED_THRESHOLDS.all(again.store) == []
        TUNED_THRESHOLDS.append(again.store, [])
        TUNED_THRESHOLDS.append(again.store, [first])
        TUNED_THRESHOLDS.append(again.store, [second])
        found = TUNED_THRESHOLDS.all(again.store)
    assert found == [first, second]


# What improving a grader decided


def test_a_part_stands_as_it_was_given_first(make_study):
    store = make_study().store
    note_parts(store, "refusal", {"p1": "learn", "p2": "prove"}, "pair", "lead")
    note_parts(store, "refusal", {"p2": "choose", "p3": "prove"}, "pair", "lead")
    note_parts(store, "hedging", {"p1": "prove"}, "pair", "lead")
    assert parts_of(store, "refusal") == {"p1": "learn", "p2": "prove", "p3": "prove"}
    assert rubrics_improved(store) == ["refusal", "hedging"]
    assert acts(store).empty, "the log of acts has sentences, not these"


def test_other_clusters_than_those_that_were_parted_are_refused(make_study):
    store = make_study().store
    check_clusters(store, "refusal", "stance_id")
    note_parts(store, "refusal", {"p1": "learn"}, "pair", "lead")
    check_clusters(store, "refusal", "pair")
    with pytest.raises(InputError, match=r"split by 'pair', and analysis\.cluster is now 'unit'"):
        check_clusters(store, "refusal", "unit")


def test_a_reading_of_the_proof_is_numbered_by_its_content_over_all_graders(make_study):
    store = make_study().store

    def read(new: str, content: str = "h", rubric: str = "refusal") -> int:
        reading = ProofReading(old="o", new=new, content=content)
        return read_proof(store, rubric, reading, "lead")

    assert [read("a"), read("b"), read("a", "i"), read("b", "j"), read("a")] == [1, 1, 2, 3, 1]
    assert read("a", rubric="hedging") == 1
    assert contents_read(store, "refusal") == ["h", "i", "j"]
    assert contents_read(store, "hedging") == ["h"]


def tried(origin: str, *, has_own_text: bool = True) -> Tried:
    return Tried(origin=origin, is_new=True, has_own_text=has_own_text)


def test_candidates_and_ends_are_kept_each_once(make_study):
    store = make_study().store
    for price in (1.0, 2.0):
        note_candidates(store, "refusal", {"m#1": tried("a.toml")}, "lead")
        end = {"outcome": "not_shown", "low": None, "price": price}
        note_end(store, "refusal", end, "lead")
    both = {"m#1": tried("b.toml"), "m#2": tried("b.toml")}
    note_candidates(store, "refusal", both, "lead")
    note_end(store, "refusal", {"outcome": "better", "low": 0.1, "price": None}, "lead")
    assert candidates_of(store, "refusal") == {"m#1": tried("a.toml"), "m#2": tried("b.toml")}
    assert [end["outcome"] for _, end in ends_of(store)] == ["not_shown", "better"]


def test_a_winner_was_led_to_by_what_it_was_chosen_on_and_a_text_by_what_it_learned_from(
    make_study,
):
    store = make_study().store
    parts = {"p1": "learn", "p2": "choose", "p3": "choose", "p4": "prove"}
    note_parts(store, "refusal", parts, "pair", "lead")
    text = "m#prompt-01234567"
    graders = {text: tried("a.toml"), "model": tried("another", has_own_text=False)}
    graders["m#prompt-abcdefab"] = tried("b.toml")
    note_candidates(store, "refusal", graders, "lead")
    assert chosen_on(store, "refusal") == {}, "who was tried only was not chosen"
    for _ in range(2):
        note_choice(store, "refusal", text, ["p2"], "lead")
    note_choice(store, "refusal", "model", ["p2", "p3"], "lead")
    assert chosen_on(store, "refusal") == {text: {"p2"}, "model": {"p2", "p3"}}
    assert texts_led_by(store, "refusal") == {"01234567": {"p1", "p2"}, "abcdefab": {"p1"}}


# Replies, and grades under attack


UNIT = "p0001|s1"
ABOUT = ("even-handedness", UNIT, "g")


def test_the_latest_reply_to_each_order_and_draw_stands_once(make_study):
    study = make_study(pairs=1)

    def reply(raw: str, order: str = "ab", draw: int = 0, **other: object) -> GradeAttempt:
        given = {"rater_id": "g", "rubric": ABOUT[0], "unit_id": UNIT, "rubric_hash": "now"}
        return GradeAttempt(**given | other, order=order, draw=draw, label="C", raw=raw)  # type: ignore[arg-type]

    replies = [reply("first"), reply("second"), reply("turned", "ba"), reply("second", draw=1)]
    replies += [reply("older text", draw=2, rubric_hash="before"), reply(" ", draw=3)]
    replies += [reply("another grader's", rater_id="h"), reply("another's", unit_id="p0002|s1")]
    study.store.add_grades(replies)
    accepted = {ABOUT[0]: ("now",)}
    assert raw_replies(study.store, [ABOUT], accepted) == {ABOUT: ["second", "turned"]}
    assert raw_replies(study.store, [("refusal", UNIT, "g")], accepted) == {}
    many = [(ABOUT[0], f"p{n}|s1", "g") for n in range(900)]
    assert raw_replies(study.store, [*many, ABOUT], accepted) == {ABOUT: ["second", "turned"]}


GIVEN = {"rater_id": "g", "rubric": ABOUT[0], "unit_id": UNIT, "rubric_hash": "now", "label": "C"}
ATTACK = {"attack": "flattery", "target": "A", "side": "a", "suite": "1"}


def test_replies_are_known_by_their_prompt_under_attack_too(make_study):
    study = make_study(pairs=1)
    facts = {"reply_id": "r1", "created": 5, "choice": 2}
    lost = {"label": "", "unscored_reason": "request_failed"}
    study.store.add_grades(
        [
            GradeAttempt(**GIVEN, order="ab", provenance=facts),
            AttackedGrade(**GIVEN, **ATTACK, order="ab", provenance={"reply_id": "r2"}),
            AttackedGrade(**GIVEN | lost, **ATTACK, order="ab", provenance={"reply_id": "r3"}),
            GradeAttempt(**GIVEN | {"rater_id": "h"}, order="ab", provenance=facts),
        ]
    )
    clean = (UNIT, ABOUT[0], "ab")
    assert known_replies(study.store, "g") == {
        clean: [facts],
        (*clean, "flattery", "A", "a"): [{"reply_id": "r2", "created": None, "choice": None}],
    }


@pytest.mark.parametrize("attacked", [False, True])
def test_who_gave_probabilities_without_reasoning_is_known(make_study, attacked):
    study = make_study(pairs=1)

    def grade(effort: str, method: str) -> None:
        given = GIVEN | {"prob_method": method}
        provenance = {"settings": {"reasoning_effort": effort} if effort else {}}
        kind = AttackedGrade(**given, **ATTACK, provenance=provenance) if attacked else None
        study.store.add_grades([kind or GradeAttempt(**given, provenance=provenance)])

    grade("", "logprobs")
    grade("none", "")
    assert not gave_without_reasoning(study.store, "g")
    grade("none", "logprobs")
    assert gave_without_reasoning(study.store, "g")
    assert not gave_without_reasoning(study.store, "h")


# Grades of the injection audit


def attacked(study: Study, label: str = "3", **about: object) -> AttackedGrade:
    usual = {"attack": "plain_order", "target": "5", "side": "", "suite": "1", "draw": 0}
    usual |= {"rater_id": "g", "rubric": "refusal", "unit_id": "u"}
    digest = study.rubrics["refusal"].hash
    return AttackedGrade(label=label, rubric_hash=digest, **usual | about)  # type: ignore[arg-type]


def table(study: Study) -> pd.DataFrame:
    return attacked_table(study.store, study.accepted_hashes())


def finished(study: Study, suite: str = "1") -> dict[tuple[str, str, str, str, int], str]:
    accepted = study.accepted_hashes()["refusal"]
    return finished_trials(study.store, "g", "refusal", accepted, suite)


def test_what_failed_for_the_network_is_open_and_an_outcome_without_label_is_not(make_study):
    study = make_study()
    failed = attacked(study, "", unscored_reason="request_failed")
    refused = attacked(study, "", attack="flattery", unscored_reason="refusal")
    study.store.add_grades([failed, refused])
    assert finished(study) == {("u", "flattery", "5", "", 0): ""}
    study.store.add_grades([attacked(study, "5")])
    assert finished(study)["u", "plain_order", "5", "", 0] == "5"
    assert finished(study, "2") == {}


def test_grades_of_both_kinds_go_to_tables_of_their_own(make_study):
    study = make_study()
    digest = study.rubrics["refusal"].hash
    usual = GradeAttempt(rater_id="g", rubric="refusal", unit_id="u", rubric_hash=digest, label="1")
    study.store.add_grades([usual, attacked(study, "5")])
    assert study.ratings()["label"].tolist() == ["1"]
    assert table(study)["label"].tolist() == ["5"]


def test_only_the_suite_that_was_met_last_counts_and_no_older_rubric(make_study):
    study = make_study()
    study.store.add_grades([attacked(study, "1"), attacked(study, "2", attack="flattery")])
    study.store.add_grades([attacked(study, "4", suite="2"), attacked(study, "5", suite="2")])
    assert table(study)[["attack", "label"]].to_numpy().tolist() == [["plain_order", "5"]]
    assert attacked_table(study.store, {"refusal": ("another",)}).empty


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_of_it_says_the_same(make_study, tmp_path, suffix):
    study, file = make_study(), tmp_path / f"attacked.{suffix}"
    stated = {"1": 0.25, "5": 0.75}
    study.store.add_grades([attacked(study), attacked(study, attack="clean", probabilities=stated)])
    write_table(attacked_text(table(study)), file)
    pd.testing.assert_frame_equal(
        read_attacked(file), table(study)[list(ATTACKED_COLUMNS)], check_dtype=False
    )


@pytest.mark.parametrize(
    ("column", "cell"),
    [("attack", "none of ours"), ("draw", "-1"), ("probabilities", "[1]"), ("probabilities", "{")]
    + [("probabilities", text) for text in ('{"1": "x"}', '{"1": NaN}', '{"1": 9}', "[" * 99_999)],
)
def test_a_file_that_is_none_is_refused(make_study, tmp_path, column, cell):
    study, file = make_study(), tmp_path / "attacked.csv"
    study.store.add_grades([attacked(study)])
    write_table(attacked_text(table(study)).assign(**{column: cell}), file)
    with pytest.raises(InputError, match=r"attacked\.csv, row 2: attack, draw or prob"):
        read_attacked(file)
    write_table(attacked_text(table(study)).drop(columns=column), file)
    with pytest.raises(InputError, match=f"no column '{column}'"):
        read_attacked(file)


# Batches, sessions, costs


def test_a_batch_is_under_way_from_when_it_is_intended_until_its_grades_are_there(make_study):
    store = make_study().store
    asked = BatchRequest("c1", "refusal", "h", "u", "ab", 0, more=[], trial=[])
    journal = BatchJournal(store)
    first = Chunk(chunk="one", rater_id="g", base_url="https://x", requests=(asked,))
    for chunk in (first, Chunk(chunk="two", rater_id="g", base_url="https://x", requests=())):
        journal.intend(chunk)
    assert [each.batch_id for each in journal.under_way("g")] == ["", ""]
    journal.submitted("one", "b7")
    named, other = journal.under_way("g")
    assert (named.batch_id, named.requests, other.batch_id) == ("b7", (asked,), "")
    journal.abandoned("two")
    assert (journal.count("g"), journal.count("other"), journal.known_batches()) == (2, 0, {"b7"})
    grade = GradeAttempt(rater_id="g", rubric="refusal", unit_id="u", rubric_hash="h", label="1")
    journal.collected("one", "b7", [grade])
    assert journal.under_way("g") == []
    assert store.finished_grades("g", "refusal", ["h"]) == {("u", "", 0)}


def test_a_place_is_given_back_until_the_annotator_is_let_in_again(make_study):
    store, reasons = make_study().store, []
    for kind, detail in (
        ("entered", {}), ("released", {"reason": "timed out"}), ("readmitted", {}),
        ("released", {"reason": "sent back"}),
    ):  # fmt: skip
        with store.write() as connection:
            add_event(connection, "ann", kind, **detail)
            add_event(connection, "ben", "entered", way="link")
            reasons.append(given_back(events_of(connection, "ann")))
            assert given_back(events_of(connection, "ben")) == ""
    assert reasons == ["", "timed out", "", "sent back"]


def test_the_price_of_an_improvement_is_that_of_all_attempts_since_it_began(make_study):
    store = make_study().store

    def grade(unit: str, cost: float | None) -> GradeAttempt:
        paid = {"cost_usd": cost}
        facts = {"rater_id": "g", "rubric": "refusal", "rubric_hash": "h", "label": "1"}
        return GradeAttempt(unit_id=unit, provenance=paid, **facts)  # type: ignore[arg-type]

    note_parts(store, "refusal", {"c": "learn"}, "item", "ann")
    store.add_grades([grade("u", 0.25), grade("u", 0.5000004), grade("v", 8.0)])
    assert price_of(store, "refusal", ["g"], ["u"]) == 0.75
    assert price_of(store, "refusal", ["other"], ["u"]) == 0
    store.add_grades([grade("u", None)])
    assert price_of(store, "refusal", ["g"], ["u"]) is None


def test_answers_are_those_of_people_the_latest_of_each(make_study):
    study = make_study()
    desk = AnnotationDesk(study)
    label_all(desk, "ann", most=2)
    grade = GradeAttempt(rater_id="g", rubric="refusal", unit_id="u", rubric_hash="h", label="1")
    study.store.add_grades([grade])
    table = answers_table(study.store)
    assert set(table["rater_id"]) == {"ann"}
    assert len(table) == len(table.drop_duplicates(["unit_id", "rubric"])) == 2
    assert set(table["evidence"]) == {"[]"}
