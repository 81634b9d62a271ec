"""Replies as graders gave them: the latest to each order and draw, under a text that counts."""

from __future__ import annotations

from evenhand.study.store.grades import GradeAttempt
from evenhand.study.store.replies import raw_replies

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
