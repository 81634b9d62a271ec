"""What is added to a correct file by mistake - an invisible character, another spelling, a code for
a missing label, a helper column - changes no verdict without a word; nor does the kind of file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand import check
from evenhand.errors import InputError

ITEMS = 120
WHO = {"human": ["ann", "ben"], "model": "gpt"}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Two annotators and a grader on 120 items, wide: labels good, bad and mixed."""
    rng = np.random.default_rng(7)
    truth = rng.choice(["good", "bad", "mixed"], ITEMS)
    labels = {}
    for rater in ("ann", "ben", "gpt"):
        other = rng.choice(["good", "bad", "mixed"], ITEMS)
        labels[rater] = np.where(rng.random(ITEMS) < 0.85, truth, other)
    return pd.DataFrame({"item": [f"café {n}" for n in range(ITEMS)], **labels})


def verdict(table: object, **options: object) -> tuple[str, str]:
    found = check(table, **WHO, resamples=50, **options).verdicts[0]
    return found["verdict"], found["sentence"]


def with_cells(table: pd.DataFrame, column: str, change: Callable[[str], str], share: float):
    rows = np.random.default_rng(1).random(len(table)) < share
    return table.assign(**{column: table[column].where(~rows, table[column].map(change))})


UNSEEN = ("{}\u200b", " {}", "{}\u00a0", "{}\ufe0f", "\u2060{}", "{}  ")
LOOK_ALIKE = ("{}.", "{}_", "'{}'")
CODES = ("99", "-", "?", "skip", "unknown", "None", "nan", "NULL", "n/a", "no answer", "garbage")


@pytest.mark.parametrize("column", ["item", "ben", "gpt"])
@pytest.mark.parametrize("form", UNSEEN)
def test_what_nobody_sees_changes_nothing(table: pd.DataFrame, column: str, form: str) -> None:
    usual = verdict(table)
    assert verdict(with_cells(table, column, form.format, 0.5)) == usual


@pytest.mark.parametrize("column", ["ben", "gpt"])
@pytest.mark.parametrize("share", [0.02, 0.5])
@pytest.mark.parametrize("form", [*LOOK_ALIKE, "capitals"])
def test_another_spelling_is_asked_about(
    table: pd.DataFrame, column: str, form: str, share: float
) -> None:
    change = str.upper if form == "capitals" else form.format
    spelled = with_cells(table, column, change, share)
    with pytest.raises(InputError, match="normalise=True"):
        verdict(spelled)
    assert verdict(spelled, normalise=True) == verdict(table)


@pytest.mark.parametrize("column", ["ben", "gpt"])
@pytest.mark.parametrize("share", [0.02, 0.3])
@pytest.mark.parametrize("code", CODES)
def test_a_code_for_no_label_is_asked_about_or_reported(
    table: pd.DataFrame, column: str, code: str, share: float
) -> None:
    coded = with_cells(table, column, lambda _: code, share)
    blank = with_cells(table, column, lambda _: "", share)
    try:
        words = " ".join(check(coded, **WHO, resamples=50).notes)
    except InputError as refusal:
        words = str(refusal)
    assert code in words
    assert verdict(coded, missing=[code])[0] == verdict(blank)[0]


def test_helper_columns_are_no_items(table: pd.DataFrame) -> None:
    people = table[["ann", "ben"]]
    helpers = table.assign(
        soft_label=[
            str({each: list(row).count(each) / 2 for each in set(row)}) for row in people.to_numpy()
        ],
        votes=people.agg(lambda row: ",".join(sorted(row)), axis=1),
        majority_text=people.agg(lambda row: f"most said {sorted(row)[0]}, it seems", axis=1),
        annotators="ann,ben",
        response=[
            "I do not know what to say to that." if n % 3 else f"It is {n}." for n in range(ITEMS)
        ],
        label="good",
        order="ab",
    )
    assert verdict(helpers) == verdict(table)


@pytest.mark.parametrize("name", ["label", "order", "draw", "seconds", "copies", "rater_kind"])
def test_names_with_a_meaning_of_their_own_may_be_raters(table: pd.DataFrame, name: str) -> None:
    renamed = table.rename(columns={"ben": name})
    found = check(renamed, human=["ann", name], model="gpt", resamples=50).verdicts[0]
    assert (found["verdict"], found["sentence"]) == verdict(table)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "xlsx", "parquet", "dict", "frame"])
def test_every_kind_of_file_gives_the_same(table: pd.DataFrame, tmp_path: Path, kind: str) -> None:
    """Numbers with gaps, spaces and a capital where nobody minds, in every door."""
    labels = {"good": 1.0, "bad": 0.0, "mixed": 2.0}
    numbers = table.assign(**{rater: table[rater].map(labels) for rater in ("ann", "ben", "gpt")})
    numbers.loc[5, "ben"] = np.nan
    usual = check(numbers, **WHO, resamples=50)
    file = tmp_path / f"labels.{kind}"
    given: object = file
    if kind in ("csv", "tsv"):
        numbers.to_csv(file, index=False, sep="," if kind == "csv" else "\t")
    elif kind == "jsonl":
        numbers.to_json(file, orient="records", lines=True)
    elif kind == "xlsx":
        numbers.to_excel(file, index=False)
    elif kind == "parquet":
        numbers.to_parquet(file)
    else:
        given = numbers if kind == "frame" else {name: numbers[name].tolist() for name in numbers}
    found = check(given, **WHO, resamples=50)
    columns = ["statistic", "rater_a", "rater_b", "subset", "at", "n_units", "estimate", "low"]
    pd.testing.assert_frame_equal(found.results[columns], usual.results[columns])
    assert [each["verdict"] for each in found.verdicts] == [
        each["verdict"] for each in usual.verdicts
    ]
