"""The next step that the Overview leads to, at the end of a study."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evenhand.annotate_app.lead.overview_page import after_the_verdicts, is_over
from evenhand.study.lead.progress import Forecast

TITLES = {"r": "Refusal", "s": "Style"}
IDLE, BUSY = Forecast(10, 20), Forecast(10, 20, hours=3, recent=5, at=datetime.now(UTC))


def verdicts(**given: str) -> list[Any]:
    return [
        {"rubric": rubric, "grader": n, "verdict": verdict}
        for rubric, each in given.items()
        for n, verdict in enumerate(each.split())
    ]


@pytest.mark.parametrize(
    ("ends", "given", "over"),
    [
        (IDLE, verdicts(r="do_not_use may_stand_in"), True),
        (IDLE, verdicts(r="do_not_use cannot_tell"), False),
        (IDLE, [], False),
        (BUSY, verdicts(r="do_not_use may_stand_in"), False),
    ],
)
def test_labelling_is_over_where_nobody_labels_and_every_grader_has_a_verdict(ends, given, over):
    assert is_over(ends, given) is over


def test_the_end_is_the_report_which_names_a_rubric_without_a_grader():
    assert after_the_verdicts([], TITLES).title == "Export"
    some = verdicts(r="do_not_use only_with_correction", s="may_stand_in")
    assert after_the_verdicts(some, TITLES).title == "Export"
    way = after_the_verdicts(verdicts(r="may_stand_in", s="do_not_use"), TITLES)
    assert way.title == "Export"
    assert "No grader may be used on Style" in way.said
