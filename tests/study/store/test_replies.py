"""The logs of replies, and of grades under attack."""

from __future__ import annotations

import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.store.grades import AttackedGrade, GradeAttempt
from evenhand.study.store.logs.replies import (
    attacked_table,
    finished_trials,
    gave_without_reasoning,
    known_replies,
    raw_replies,
)
from evenhand.study.tables.attacks import COLUMNS, as_text, read_attacked
from evenhand.study.tables.formats import write_table

UNIT = "p0001|s1"
ABOUT = ("even-handedness", UNIT, "g")


def test_the_latest_reply_to_each_order_and_draw_stands_once(make_study):
    study = make_study(pairs=1)

    def reply(raw: str, order: str = "ab", draw: int = 0, **other: object) -> GradeAttempt:
        given = {"rater_id": "g", "rubric": ABOUT[0], "unit_id": UNIT, "rubric_hash": "now"}
        return GradeAttempt(**given | other, order=order, draw=draw, label="C", raw=raw)  # type: ignore[arg-type]

    study.store.add_grades(
        [
            reply("first"),
            reply("second"),
            reply("turned", "ba"),
            reply("second", draw=1),
            reply("older text", draw=2, rubric_hash="before"),
            reply(" ", draw=3),
            reply("another grader's", rater_id="h"),
            reply("another unit's", unit_id="p0002|s1"),
        ]
    )
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
    return AttackedGrade(
        rater_id="g",
        rubric="refusal",
        unit_id="u",
        rubric_hash=study.rubrics["refusal"].hash,
        label=label,
        **usual | about,  # type: ignore[arg-type]
    )


def table(study: Study) -> pd.DataFrame:
    return attacked_table(study.store, study.accepted_hashes())


def finished(study: Study, suite: str = "1") -> dict[tuple[str, str, str, str, int], str]:
    accepted = study.accepted_hashes()["refusal"]
    return finished_trials(study.store, "g", "refusal", accepted, suite)


def test_what_failed_for_the_network_is_open_and_an_outcome_without_label_is_not(make_study):
    study = make_study()
    study.store.add_grades(
        [
            attacked(study, "", unscored_reason="request_failed"),
            attacked(study, "", attack="flattery", unscored_reason="refusal"),
        ]
    )
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
    write_table(as_text(table(study)), file)
    pd.testing.assert_frame_equal(
        read_attacked(file), table(study)[list(COLUMNS)], check_dtype=False
    )


@pytest.mark.parametrize(
    ("column", "cell"),
    [("attack", "none of ours"), ("draw", "-1"), ("probabilities", "[1]"), ("probabilities", "{")]
    + [("probabilities", text) for text in ('{"1": "x"}', '{"1": NaN}', '{"1": 9}', "[" * 99_999)],
)
def test_a_file_that_is_none_is_refused(make_study, tmp_path, column, cell):
    study, file = make_study(), tmp_path / "attacked.csv"
    study.store.add_grades([attacked(study)])
    write_table(as_text(table(study)).assign(**{column: cell}), file)
    with pytest.raises(InputError, match=r"attacked\.csv, row 2: attack, draw or prob"):
        read_attacked(file)
    write_table(as_text(table(study)).drop(columns=column), file)
    with pytest.raises(InputError, match=f"no column '{column}'"):
        read_attacked(file)
