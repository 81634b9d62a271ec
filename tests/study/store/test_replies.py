"""Replies as graders gave them: the latest to each order and draw, under a text that counts."""

from __future__ import annotations

import pytest

from evenhand.study.store.grades import AttackedGrade, GradeAttempt
from evenhand.study.store.logs.replies import gave_without_reasoning, known_replies, raw_replies

UNIT = "p0001|s1"
ABOUT = ("even-handedness", UNIT, "g")


def test_the_latest_reply_to_each_order_and_draw_stands_once(make_study) -> None:
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


def test_replies_are_known_by_their_prompt_under_attack_too(make_study) -> None:
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
def test_who_gave_probabilities_without_reasoning_is_known(make_study, attacked: bool) -> None:
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
