"""Tables of any library: the same labels give the same figures, a bad table is one sentence, and
what must not matter in a ratings file does not.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.ratings_file.dataframes import frame_of
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study.tables.columns import folded
from evenhand.study.tables.formats import write_table
from tests.commands import python
from tests.peers import pl

PEOPLE = ["ann", "ben"]
WHO: dict[str, Any] = {"human": PEOPLE, "model": "gpt", "resamples": 50}


@pytest.fixture(scope="module")
def wide() -> pd.DataFrame:
    """Two people and a grader on 60 items with numbers for ids; two labels are missing."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 2, 60)
    table = pd.DataFrame({"unit_id": np.arange(60) + 1000})
    for rater in (*PEOPLE, "gpt"):
        said = np.where(rng.random(60) < 0.85, truth, 1 - truth)
        table[rater] = np.array(["no", "yes"])[said]
    table.loc[3, "ben"] = table.loc[9, "gpt"] = None
    table["topic"] = ["tax", "war", "law"] * 20
    return table


@pytest.fixture(scope="module")
def expected(wide: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """results.csv of `evenhand check` on the same labels in a file."""
    place = tmp_path_factory.mktemp("check")
    wide.to_csv(place / "wide.csv", index=False)
    words = ["check", str(place / "wide.csv"), "--human", "ann,ben", "--model", "gpt"]
    assert main([*words, "--resamples", "50", "--out", str(place / "out")]) == 0
    return (place / "out" / "results.csv").read_bytes()


def coded(table: pd.DataFrame) -> pa.Table:
    """All texts as dictionary columns."""
    found = pa.Table.from_pandas(table, preserve_index=False)
    for at, column in enumerate(found.columns):
        if not pa.types.is_integer(column.type):
            found = found.set_column(at, found.field(at).name, column.dictionary_encode())
    return found


FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda t: t,
    "pandas by index": lambda t: t.set_index("unit_id"),
    "pandas, two levels": lambda t: t.set_index(["topic", "unit_id"]),
    "pandas, categories": lambda t: t.astype("category"),
    "pandas on Arrow": lambda t: t.convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda t: pl.from_pandas(t),
    "polars, categories": lambda t: pl.from_pandas(t).with_columns(
        pl.col(pl.String).cast(pl.Categorical)
    ),
    "polars, an enumeration": lambda t: pl.from_pandas(t).with_columns(
        pl.col(*PEOPLE, "gpt").cast(pl.Enum(["no", "yes"]))
    ),
    "pyarrow": lambda t: pa.Table.from_pandas(t, preserve_index=False),
    "pyarrow, a batch": lambda t: pa.RecordBatch.from_pandas(t, preserve_index=False),
    "pyarrow, dictionaries": coded,
    "columns": lambda t: t.where(t.notna(), None).to_dict("list"),
    "arrays": lambda t: {name: t[name].to_numpy() for name in t},
    "records": lambda t: t.where(t.notna(), None).to_dict("records"),
    "records without what is missing": lambda t: [
        {name: cell for name, cell in row.items() if cell == cell and cell is not None}
        for row in t.to_dict("records")
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_bytes_of_the_command(wide, expected, tmp_path, form):
    found = eh.check(FORMS[form](wide), **WHO, name="wide.csv")
    found.report(tmp_path)
    assert (tmp_path / "results.csv").read_bytes() == expected


@pytest.mark.slow
def test_names_that_say_who_is_who(wide: pd.DataFrame, expected: bytes, tmp_path: Path) -> None:
    """As for a file: a person and a model by their names alone."""
    named = wide.rename(columns={"ann": "human_1", "ben": "human_2", "gpt": "gpt-5"})
    path = tmp_path / "named.csv"
    named.drop(columns="topic").to_csv(path, index=False)
    given = (path, named.drop(columns="topic"))
    of_file, of_table = (eh.check(ratings, resamples=20) for ratings in given)
    pd.testing.assert_frame_equal(of_table.results, of_file.results)
    assert of_table.notes == of_file.notes


@pytest.mark.parametrize("form", ["polars", "columns", "records"])
def test_units_and_columns_in_any_form(wide: pd.DataFrame, form: str) -> None:
    long = wide.drop(columns="topic").melt("unit_id", var_name="who", value_name="said").dropna()
    units = FORMS[form](wide[["unit_id", "topic"]])
    table = FORMS[form](long.rename(columns={"unit_id": "item"}))
    columns = {"unit": "item", "rater": "who", "label": "said"}
    found = eh.check(table, **WHO, columns=columns, units=units, cluster="topic")
    people = found.results.query("statistic == 'cohen_kappa' and subset == 'all'")
    assert people["n_clusters"].max() == 3


def test_what_is_missing_stays_missing_and_numbers_stay_whole() -> None:
    table = pl.DataFrame({
        "number": [2**53 + 1, None], "text": ["NA", None], "yes": [True, None],
        "several": [["a", "b"], None], "share": [0.5, None],
        "code": pl.Series(["x", None], dtype=pl.Categorical),
    })  # fmt: skip
    for frame in (table, table.to_arrow(), table.to_dict(as_series=False), table.to_dicts()):
        found = frame_of(frame)
        assert found.iloc[1].isna().all()
        assert found.loc[0, "number"] == 2**53 + 1
        assert found.loc[0, "text"] == "NA"
        assert list(found.loc[0, "several"]) == ["a", "b"]


@pytest.mark.parametrize(
    "cells",
    [
        lambda sets: sets,
        lambda sets: pl.Series(sets).to_list(),
        lambda sets: [tuple(each) for each in sets],
        lambda sets: [frozenset(each) for each in sets],
        lambda sets: [";".join(each) or "none" for each in sets],
    ],
)
@pytest.mark.slow
def test_columns_of_lists_are_sets_of_options(cells: Callable[[Any], Any]) -> None:
    ann = [["rude"], ["rude", "long"], [], ["long"]] * 15
    gpt = [["rude"], ["long", "rude"], [], []] * 15
    wide = {"ann": cells(ann), "ben": cells(ann), "gpt": cells(gpt)}
    options: dict[str, Any] = {"several": True, "categories": ["long", "rude"]}
    expected = eh.check(pl.DataFrame({"ann": ann, "ben": ann, "gpt": gpt}), **WHO, **options)
    found = eh.check(wide, **WHO, **options)
    pd.testing.assert_frame_equal(found.results, expected.results)
    assert {verdict["rubric"] for verdict in found.verdicts} == {"labels/long", "labels/rude"}


def test_a_time_with_a_zone_describes_a_unit(wide: pd.DataFrame) -> None:
    times = pd.date_range("2026-01-01", periods=60, freq="h", tz="Europe/Berlin")
    for table in (wide.assign(at=times), pl.from_pandas(wide.assign(at=times))):
        assert eh.check(table, **WHO).verdicts[0]["grader"] == "gpt"


WITHOUT_PYARROW = """
import sys
class NoPyarrow:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, NoPyarrow())
import polars, evenhand as eh
table = polars.read_csv("wide.csv")
found = eh.check(table, human=["ann", "ben"], model="gpt", resamples=50, name="wide.csv")
found.results.to_csv("results.csv", index=False)
class OnlyArrow:
    def __arrow_c_stream__(self, requested_schema=None): ...
try:
    eh.check(OnlyArrow())
except eh.InputError as error:
    print(error)
"""


@pytest.mark.slow
def test_without_pyarrow(wide: pd.DataFrame, tmp_path: Path) -> None:
    """An installation for `check` alone reads tables of polars."""
    wide.to_csv(tmp_path / "wide.csv", index=False)
    done = python("-W", "error", "-c", WITHOUT_PYARROW, cwd=tmp_path)
    assert not done.stderr
    assert done.stdout == (
        "ratings: reading a OnlyArrow takes pyarrow; run pip install pyarrow, or give a DataFrame "
        "of pandas\n"
    )
    expected = eh.check(wide, **WHO).results.to_csv(index=False)
    assert (tmp_path / "results.csv").read_text() == expected


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t[:0], "ratings has a header but no ratings"),
        (lambda t: pl.from_pandas(t[:0]), "ratings has a header but no ratings"),
        (lambda t: pd.DataFrame(), "ratings has no column"),
        (lambda t: pl.DataFrame(), "ratings has no column"),
        (lambda t: {}, "ratings has no column"),
        (lambda t: [], "ratings has no column"),
        (lambda t: pa.table([pa.array([1])] * 2, names=["ann", "ann"]),
         "ratings: two columns are called 'ann'; rename one"),
        (lambda t: t.set_axis(pd.MultiIndex.from_product([["a"], list(t)]), axis=1),
         "the columns have names of 2 levels; give each one name"),
        (lambda t: t.set_axis(pd.MultiIndex.from_product([[1, 2], range(30)])),
         "its rows are named by an index of 2 levels; name the levels"),
        (lambda t: pl.from_pandas(t).lazy(), "this LazyFrame is not computed yet; write .collec"),
        (lambda t: t["ann"], "a Series is one column; a table of ratings has several"),
        (lambda t: pl.from_pandas(t)["ann"], "a Series is one column"),
        (lambda t: t.to_numpy(), "a ndarray is no table; give a DataFrame"),
        (lambda t: 3, "a int is no table; give a DataFrame"),
        (lambda t: None, "a NoneType is no table; give a DataFrame"),
        (lambda t: {"ann": "yes"}, "the column 'ann' must be a list of cells, not a str"),
        (lambda t: {"ann": ["yes"], "ben": []},
         "the columns differ in length (ann 1, ben 0); each row needs a cell"),
        (lambda t: [["yes", "no"]], "record 0 is a list; give each row as a dict"),
        (lambda t: "nothing.csv", "there is no file nothing.csv"),
        (lambda t: t.assign(unit_id=[None, None, *range(58)]), "row 0: unit_id is ''"),
        (lambda t: t.assign(gpt=[["yes"]] * 60), "the label '[\"yes\"]' is nested JSON"),
    ],
)  # fmt: skip
def test_a_bad_table_is_one_sentence(wide, change, says):
    with pytest.raises(eh.InputError) as error:
        eh.check(change(wide), **WHO)
    assert says in str(error.value)
    assert len(str(error.value).splitlines()) == 1


RATERS = {"ann": "human", "ben": "human", "cem": "human", "gpt": "model"}
LABELS = ("77", "No", "yes")
KEYS = ["statistic", "rater_a", "rater_b", "subset", "at"]
FIGURES = ["n_units", "n_clusters", "estimate", "low", "high"]
SYMMETRIC = ("observed_agreement", "cohen_kappa", "scott_pi", "gwet_ac1", "brennan_prediger")

few = settings(
    max_examples=3, deadline=None, derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # to shrink a failure would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip


@st.composite
def ratings(draw: st.DrawFn) -> pd.DataFrame:
    """Up to 14 units, labelled by most raters each."""
    rows = [
        (f"u{unit}", rater, kind, label, f"c{unit // 2}")
        for unit in range(draw(st.integers(4, 14)))
        for rater, kind in RATERS.items()
        if (label := draw(st.sampled_from((*LABELS, *LABELS, ""))))
    ]
    rows.append(("u0x", "ann", "human", "yes", "c0"))  # at least one label
    return pd.DataFrame(rows, columns=["unit_id", "rater_id", "rater_kind", "label", "cluster_id"])


@pytest.fixture
def figures(tmp_path: Path) -> Callable[..., pd.DataFrame]:
    """figures(table, suffix, **declared): all rows that come out of a file of these ratings."""

    def figures(table: pd.DataFrame, suffix: str = "csv", **declared: object) -> pd.DataFrame:
        file = tmp_path / f"r.{suffix}"
        write_table(table, file)
        options = ScaleOptions(**declared)  # type: ignore[arg-type]
        analysis, _ = analyse_file(file, replace(options, settings={"resamples": 10}))
        results = analysis.results[[*KEYS, *FIGURES]]
        return results.sort_values(KEYS, ignore_index=True)

    return figures


def renamed(results: pd.DataFrame, columns: list[str], names: dict[str, str]) -> pd.DataFrame:
    """The rows under other names; in `at` a cell of two raters' categories reads "a>b"."""

    def name(cell: str) -> str:
        return ">".join(names.get(part, part) for part in cell.split(">"))

    changed = results.assign(**{column: results[column].map(name) for column in columns})
    return changed.sort_values(KEYS, ignore_index=True)


@pytest.mark.slow
@few
@given(table=ratings(), seed=st.integers(0, 9), suffix=st.sampled_from(("csv", "jsonl", "parquet")))
def test_neither_the_order_of_rows_nor_the_format_matters(figures, table, seed, suffix) -> None:
    shuffled = table.sample(frac=1, random_state=seed).sample(frac=1, axis=1, random_state=seed)
    expected = figures(table, categories=LABELS)
    pd.testing.assert_frame_equal(figures(shuffled, suffix, categories=LABELS), expected)


@pytest.mark.slow
@few
@given(table=ratings(), names=st.permutations(("w", "x 1", "ÿ", "z,")))
def test_names_of_raters_matter_to_nothing_but_the_order_of_a_pair(figures, table, names) -> None:
    expected = figures(table)
    # In the same order of names everything stays, to the last bit of each interval.
    ordered = dict(zip(RATERS, sorted(names), strict=True))
    found = figures(table.replace({"rater_id": ordered}))
    back = renamed(found, ["rater_a", "rater_b"], {new: old for old, new in ordered.items()})
    pd.testing.assert_frame_equal(back, expected)
    # In another order two raters change places, which a symmetric coefficient does not see.
    mixed = {new: old for old, new in zip(RATERS, names, strict=True)}
    found = figures(table.replace({"rater_id": {old: new for new, old in mixed.items()}}))
    assert symmetric(found.replace({"rater_a": mixed, "rater_b": mixed})) == symmetric(expected)


@pytest.mark.slow
@few
@given(table=ratings())
def test_every_unit_twice_leaves_the_coefficients(figures, table) -> None:
    names = ["unit_id", "cluster_id"]
    again = table.assign(**{name: "again " + table[name] for name in names})
    found, expected = figures(pd.concat([table, again])), figures(table)
    assert symmetric(found) == symmetric(expected)
    assert found["n_units"].max() == 2 * expected["n_units"].max()


def symmetric(results: pd.DataFrame) -> dict[tuple[str, frozenset[str], str], float]:
    """The coefficients that do not know which rater of a pair comes first."""
    chosen = results[results["statistic"].isin(SYMMETRIC)]
    return {
        (row["statistic"], frozenset((row["rater_a"], row["rater_b"])), row["subset"]): (
            -9 if row["estimate"] != row["estimate"] else round(row["estimate"], 12)
        )
        for row in chosen.to_dict("records")
    }


@pytest.mark.slow
@few
@given(table=ratings(), names=st.permutations(("a, b", "Ö", "zz")))
def test_names_of_categories_matter_only_where_a_row_names_one(figures, table, names) -> None:
    words = dict(zip(LABELS, names, strict=True))
    found = figures(table.replace({"label": words}), categories=tuple(names))
    back = renamed(found, ["at"], {new: old for old, new in words.items()})
    pd.testing.assert_frame_equal(back, figures(table, categories=LABELS))


DIRT = (str.upper, str.lower, " {}\t".format, lambda label: label.replace("77", "77.00"))


@pytest.mark.slow
@few
@given(table=ratings(), data=st.data())
def test_normalised_dirt_changes_nothing_and_dirt_is_never_taken_for_a_label(figures, table, data):
    wash = data.draw(st.lists(st.sampled_from(DIRT), min_size=len(table), max_size=len(table)))
    cells = [smear(label) for smear, label in zip(wash, table["label"], strict=True)]
    dirty = table.assign(label=cells)
    expected = figures(table, categories=LABELS)
    cleaned = figures(dirty, categories=LABELS, normalise=True)
    pd.testing.assert_frame_equal(cleaned, expected)
    if set(map(folded, cells)) - set(LABELS):
        with pytest.raises(InputError, match="--normalise reads them as one"):
            figures(dirty, categories=LABELS)
