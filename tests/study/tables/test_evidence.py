"""Marks in a text: what is read, what is refused, and how a text is cut by them."""

from typing import Any

import pytest

from evenhand.study.tables.ratings import (
    MOST_MARKS,
    Mark,
    lie_within,
    other_way_round,
    pieces,
    read_marks,
    written_marks,
)


def mark(start: Any = 0, end: Any = 1, text: Any = "response", **more: Any) -> dict[str, Any]:
    return {"text": text, "start": start, "end": end} | more


def test_marks_are_read_in_their_order_and_written_again():
    given = [mark(5, 7), mark(0, 5), mark(1, 2, "a")]
    read = read_marks(given)
    assert read == (Mark("a", 1, 2), Mark("response", 0, 5), Mark("response", 5, 7))
    assert read_marks(written_marks(read)) == read
    assert read_marks([]) == ()
    most = read_marks([mark(2 * n, 2 * n + 1) for n in range(MOST_MARKS)])
    assert len(most) == MOST_MARKS


@pytest.mark.parametrize(
    "wrong",
    [
        *(None, {}, "text", [None], [[0, 1]]),
        *([mark(start)] for start in (2, -1, 0.0, "0", False)),
        *([mark(**{part: each})] for part, each in (("end", 0), ("end", True), ("text", 3))),
        [mark(more=1)],
        *([mark(0, end), mark(2, 4)] for end in (3, 9)),
        [mark(0, 3), mark(0, 3)],
        [mark(2 * n, 2 * n + 1) for n in range(MOST_MARKS + 1)],
    ],
)
def test_what_is_no_list_of_marks_is_refused(wrong):
    assert read_marks(wrong) is None


@pytest.mark.parametrize(
    ("name", "end", "within"),
    [
        ("response_a", 3, True),  # the code points of "a\N{GRINNING FACE}b", not bytes or UTF-16
        ("response_a", 4, False),
        ("response_b", 1, False),
        ("prompt_a", 1, False),
        ("response", 1, False),
    ],
)
def test_marks_lie_within_a_response(name, end, within):
    texts = {"response_a": "a\N{GRINNING FACE}b", "response_b": "", "prompt_a": "Why?"}
    assert lie_within([Mark(name, 0, end)], texts) == within


def test_sides_change_places_and_back():
    marks = (Mark("response_a", 0, 1), Mark("response_b", 2, 3))
    assert other_way_round(marks) == (Mark("response_a", 2, 3), Mark("response_b", 0, 1))
    assert other_way_round(other_way_round(marks)) == marks
    assert other_way_round([Mark("response", 0, 1)]) == (Mark("response", 0, 1),)


def test_pieces_make_the_text_again():
    text = "One \N{GRINNING FACE} two."
    cut = pieces(text, [("b", Mark("r", 4, 9)), ("a", Mark("r", 0, 5)), ("a", Mark("r", 6, 99))])
    assert "".join(part for part, _ in cut) == text
    assert cut[1] == ("\N{GRINNING FACE}", ("b", "a"))
    assert pieces("", []) == []
