"""Whatever pieces ratings come in, and whatever parts they are scattered to: one table."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis.labels.reduced import Reduced, by_kind
from evenhand.analysis.labels.scale import Scale
from evenhand.errors import InputError
from evenhand.reporting.at_scale import (
    Facts,
    Reading,
    Reduction,
    add_up,
    facts_of,
    reduce_part,
    scattered,
)
from harness.many_ratings import CATEGORIES, RATERS, many_ratings

READING = Reading("ratings", {}, "cluster_id")


def repeated(units: int, per_cluster: int) -> pd.DataFrame:
    """Ratings in which graders answered three times, with a probability."""
    frame = many_ratings(units, per_cluster)
    drawn = [
        frame.assign(draw=str(draw), p_positive=[f"0.{(n * 7 + draw) % 10}" for n in frame.index])
        for draw in range(3)
    ]
    by_model = frame["rater_kind"] == "model"
    first = frame.assign(draw="0", p_positive="")
    return pd.concat([first[~by_model], *(each[by_model] for each in drawn)], ignore_index=True)


def reduction(facts: Facts) -> Reduction:
    scale = Scale("", CATEGORIES, "ordinal", frozenset({"3"}))
    return Reduction(READING, {"": scale}, {"": by_kind(RATERS)}, facts.filled, RATERS)


def reduced(frame: pd.DataFrame, cuts: list[int], parts: int) -> tuple[Reduced, Facts]:
    """By way of pieces that end at `cuts`, and so many parts."""
    ends = [0, *sorted({min(cut, len(frame)) for cut in cuts}), len(frame)]
    rows = pa.Table.from_pandas(frame.assign(row=range(len(frame))), preserve_index=False)
    pieces = [rows.slice(start, end - start) for start, end in pairwise(ends)]
    facts = Facts.all_of([facts_of(piece) for piece in pieces if len(piece)])
    by_part = zip(*(scattered(piece, parts) for piece in pieces), strict=True)
    return add_up([reduce_part(tables, reduction(facts)) for tables in by_part])[""], facts


def contents(table: Reduced) -> tuple[object, ...]:
    cells = table.cells.toarray().tolist()
    return (table.clusters.to_pylist(), table.patterns.tolist(), cells, table.reasons)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    units=st.integers(2, 25),
    cuts=st.lists(st.integers(0, 200), max_size=4),
    parts=st.integers(1, 7),
    order=st.randoms(use_true_random=False),
)
def test_any_partitioning_and_row_order_gives_the_same_table(
    units: int, cuts: list[int], parts: int, order
) -> None:
    frame = repeated(units, 2)
    places = list(range(len(frame)))
    order.shuffle(places)
    shuffled = frame.iloc[places].reset_index(drop=True)
    whole, facts = reduced(frame, [], 1)
    found, same_facts = reduced(shuffled, cuts, parts)
    assert contents(found) == contents(whole)
    assert {*same_facts.cells.itertuples(index=False)} == {*facts.cells.itertuples(index=False)}
    assert (same_facts.filled, same_facts.rows) == (facts.filled, len(frame))


def test_facts_say_where_a_cell_stands_first() -> None:
    table = pa.table({"rater_id": ["b", "a", "b"], "label": ["1", "2", "1"], "row": [4, 2, 3]})
    found = Facts.all_of([facts_of(table)]).cells
    assert found.index.tolist() == [2, 3]
    assert found[["rater_id", "label"]].to_numpy().tolist() == [["a", "2"], ["b", "1"]]


def test_a_broken_row_is_named_by_its_number_in_the_file() -> None:
    frame = many_ratings(6, 2).assign(row=range(40, 40 + len(many_ratings(6, 2))))
    frame.loc[3, "label"] = "9"
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pytest.raises(InputError, match=r"ratings, row 45: the label '9'"):
        reduce_part([table], reduction(facts_of(table)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cluster_id": ""}, "every unit needs a cluster"),
        ({"cluster_id": "another"}, "a unit lies in one cluster"),
    ],
)
def test_a_unit_lies_in_one_cluster(change: dict[str, str], said: str) -> None:
    frame = many_ratings(6, 2)
    at = frame.index[frame["unit_id"] == "u00002"]
    for name, value in change.items():
        frame.loc[at if value == "" else at[:1], name] = value
    table = pa.Table.from_pandas(frame.assign(row=frame.index), preserve_index=False)
    with pytest.raises(InputError, match=said):
        reduce_part([table], reduction(facts_of(table)))
