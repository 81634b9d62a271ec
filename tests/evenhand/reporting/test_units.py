"""Rows that repeat an item are no more evidence than one of them, whatever the column is called."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.library import Check
from evenhand.reporting.load import item_column, load
from evenhand.reporting.ratings_file.declared import ScaleOptions
from tests.cases import one_in

ITEMS, TIMES = 60, 6
PEOPLE = ["ann", "ben", "cy"]
SCALE = {"human": PEOPLE, "model": "g", "categories": ["yes", "no"], "affirmative": "yes"}


def sixty() -> pd.DataFrame:
    """Three people and a grader as good as they, too few for a verdict."""
    rng = np.random.default_rng(7)
    truth = rng.random(ITEMS) < 0.5
    table = pd.DataFrame({"item": [f"i{k}" for k in range(ITEMS)]})
    for rater, right in (("ann", 0.93), ("ben", 0.93), ("cy", 0.93), ("g", 0.92)):
        said = np.where(rng.random(ITEMS) < right, truth, ~truth)
        table[rater] = np.where(said, "yes", "no")
    return table


def six_times() -> pd.DataFrame:
    """The same rows, pasted again and again."""
    return pd.concat([sixty()] * TIMES, ignore_index=True)


def long_of(wide: pd.DataFrame) -> pd.DataFrame:
    """A row for each rating, every row of the wide table a unit of its own."""
    wide = wide.assign(unit_id=[f"u{n}" for n in range(len(wide))])
    about = [name for name in wide if name not in (*PEOPLE, "g")]
    rows = wide.melt(about, var_name="rater_id", value_name="label")
    return rows.assign(rater_kind=np.where(rows["rater_id"] == "g", "model", "human"))


def verdict(found: Check) -> tuple[str, int]:
    """The verdict, and how many clusters it rests on."""
    rows = found.results.query("statistic == 'non_inferiority' and subset == 'all'")
    return found.verdicts[0]["verdict"], int(rows["n_clusters"].iloc[0])


def test_sixty_items_are_too_few() -> None:
    assert verdict(eh.check(sixty(), **SCALE)) == ("inconclusive", ITEMS)


NAMES = ["Prompt ID", "id", "item", "prompt", "question", "exampleId", "passage"]


@pytest.mark.parametrize("name", one_in(4, NAMES))
def test_pasting_rows_again_changes_no_verdict(name: str) -> None:
    found = eh.check(six_times().rename(columns={"item": name}), **SCALE)
    assert verdict(found) == ("inconclusive", ITEMS)
    (note,) = [note for note in found.notes if "independent" in note]
    assert note.startswith(f"The column {name} names 60 items in 360 rows")
    assert "cluster=" in note
    assert "independent=True" in note


@pytest.mark.slow
def test_the_figures_are_those_of_the_cluster_that_is_named() -> None:
    one = eh.check(six_times(), **SCALE).results
    other = eh.check(six_times(), **SCALE, cluster="item").results
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.slow
def test_whoever_says_so_has_independent_rows() -> None:
    for says in ({"independent": True}, {"cluster": "unit"}):
        found = eh.check(six_times(), **SCALE, **says)
        assert verdict(found) == ("can_replace", ITEMS * TIMES)
        assert not re.search("--independent|independent=", " ".join(found.notes))
    with pytest.raises(InputError, match="exclude each other"):
        eh.check(six_times(), **SCALE, independent=True, cluster="item")


def test_a_long_table_whose_units_are_rows_is_read_alike() -> None:
    scale = {name: SCALE[name] for name in ("categories", "affirmative")}
    found = eh.check(long_of(six_times()), **scale)
    assert verdict(found) == ("inconclusive", ITEMS)


@pytest.mark.slow
def test_a_table_that_is_copies_of_itself_counts_once() -> None:
    table = six_times().drop(columns="item")
    assert len(table.drop_duplicates()) < 20, "of so few patterns, copies may be chance"
    table["words"] = np.tile(np.arange(ITEMS) * 7 % 41, TIMES)
    table["topic"] = np.tile(np.array(list("abc"))[np.arange(ITEMS) % 3], TIMES)
    found = eh.check(table, **SCALE)
    assert verdict(found) == ("inconclusive", ITEMS)
    assert any("the same 60 rows 6 times" in note for note in found.notes)
    # The order of rows says nothing.
    mixed = eh.check(table.sample(frac=1, random_state=3, ignore_index=True), **SCALE)
    assert mixed.verdicts == found.verdicts


def test_empty_cells_are_items_of_their_own() -> None:
    table = six_times()
    table.loc[table["item"] == "i0", "item"] = ""
    assert verdict(eh.check(table, **SCALE))[1] == ITEMS - 1 + TIMES


@pytest.mark.parametrize("ending", one_in(3, ["csv", "jsonl", "parquet"]))
def test_files_are_read_alike_by_every_verb(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"labels.{ending}"
    table = six_times().rename(columns={"item": "id"})
    if ending == "csv":
        table.to_csv(file, index=False)
    elif ending == "jsonl":
        table.to_json(file, orient="records", lines=True)
    else:
        table.to_parquet(file)
    kinds = dict.fromkeys(PEOPLE, "human") | {"g": "model"}
    options = ScaleOptions(categories=("yes", "no"), kinds=kinds)
    analysis, context = analyse_file(file, options)
    assert analysis.settings.cluster == "id"
    assert analysis.verdicts[0]["verdict"] == "inconclusive"
    assert any("--independent" in note for note in context.notes)
    found = load(file, options)
    assert (found.settings.cluster, found.notes) == ("id", tuple(context.notes))
    assert load(file, replace(options, settings={"cluster": "unit"})).settings.cluster == "unit"


@pytest.mark.slow
def test_a_sidecar_that_names_no_cluster_hides_no_items(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    long_of(six_times()).to_csv(file, index=False)
    beside = tmp_path / "labels.scales.toml"
    beside.write_text('[scales.""]\ncategories = ["yes", "no"]\n')
    analysis, _ = analyse_file(file)
    assert analysis.settings.cluster == "item"
    beside.write_text('[analysis]\ncluster = "unit"\n[scales.""]\ncategories = ["yes", "no"]\n')
    analysis, _ = analyse_file(file)
    assert analysis.settings.cluster == "unit"


def units(**columns: object) -> pd.DataFrame:
    """A table of 300 units."""
    return pd.DataFrame({"unit_id": [f"u{n}" for n in range(300)], **columns})


UNRATED = pd.DataFrame({"unit_id": [], "label": []})
NUMBERS = np.arange(300)


@pytest.mark.parametrize(
    "columns",
    [
        {"model": [f"model-{n % 6}" for n in NUMBERS]},
        {"topic": [f"a rather long name of topic {n % 9}" for n in NUMBERS]},
        {"split": ["train" if n % 3 else "test" for n in NUMBERS]},
        {"words": [str(n % 97) for n in NUMBERS]},
        {"date": [f"2024-{n % 12 + 1:02}-{n % 25 + 1:02}" for n in NUMBERS]},
        {"answer": ["I cannot help with that, sorry." if n < 90 else f"{n}" for n in NUMBERS]},
        {"id": [f"i{n}" for n in NUMBERS]},
        {"prompt": ["Rate this answer."] * 300},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_columns_that_name_no_items(columns: dict[str, list[str]]) -> None:
    assert item_column(units(**columns), UNRATED) is None


def test_of_several_columns_the_coarsest_counts() -> None:
    prompts, texts = ([f"{name}{n % of}" for n in NUMBERS] for name, of in (("p", 50), ("t", 150)))
    found = units(prompt=prompts, item_no=NUMBERS, text=texts)
    assert item_column(found, UNRATED) == "prompt"
    assert item_column(found.drop(columns="prompt"), UNRATED) == "text"
