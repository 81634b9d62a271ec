"""Lengths of the responses in words, to detect labels that follow length."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

LENGTH_COLUMNS = ("response_words", "response_a_words", "response_b_words")


def with_response_words(units: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """The `units` table with its responses' numbers of words, "" where there is no response.

    `response_words` on a unit of one side, `response_a_words` and `response_b_words` on a pair.
    `responses` has the columns `pair_id, subject, side, response`; words are parted by white space.
    """
    keys = zip(responses["pair_id"], responses["subject"], responses["side"], strict=True)
    words = dict(zip(keys, (str(len(text.split())) for text in responses["response"]), strict=True))
    rows = list(zip(units["cluster_id"], units["subject"], units["side"], strict=True))
    of_pair = [row[:2] if not row[2] else ("", "") for row in rows]
    cells = (rows, [(*pair, "a") for pair in of_pair], [(*pair, "b") for pair in of_pair])
    counted = ([words.get(key, "") for key in keys] for keys in cells)
    return units.assign(**dict(zip(LENGTH_COLUMNS, counted, strict=True)))
