"""Tables of any library: the same labels give the same figures, a bad table is one sentence, and
what must not matter in a ratings file does not.
"""

import sys
from collections.abc import Callable
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
from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.ratings_file.dataframes import frame_of
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study.tables.columns import folded
from evenhand.study.tables.formats import read_table, write_table
from evenhand.study.tables.ratings import texts
from tests.cases import refused
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
        table[rater] = np.array(["no", "yes"])[np.where(rng.random(60) < 0.85, truth, 1 - truth)]
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


FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas by index": lambda t: t.set_index("unit_id"),
    "pandas, two levels": lambda t: t.set_index(["topic", "unit_id"]),
    "pandas, categories": lambda t: t.astype("category"),
    "pandas on Arrow": lambda t: t.convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda t: pl.from_pandas(t),
    "polars, an enumeration": lambda t: pl.from_pandas(t).with_columns(
        pl.col(*PEOPLE, "gpt").cast(pl.Enum(["no", "yes"]))
    ),
    "pyarrow, a batch": lambda t: pa.RecordBatch.from_pandas(t, preserve_index=False),
    "pyarrow, dictionaries": lambda t: pa.Table.from_pandas(t.astype("category")),
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
    eh.check(FORMS[form](wide), **WHO, name="wide.csv").report(tmp_path)
    assert (tmp_path / "results.csv").read_bytes() == expected


def test_units_and_columns_in_any_form(wide):
    """A time with a zone describes a unit."""
    times = pd.date_range("2026-01-01", periods=60, freq="h", tz="Europe/Berlin")
    long = wide.drop(columns="topic").melt("unit_id", var_name="who", value_name="said").dropna()
    units = FORMS["polars"](wide[["unit_id", "topic"]].assign(at=times))
    table = FORMS["records"](long.rename(columns={"unit_id": "item"}))
    columns = {"unit": "item", "rater": "who", "label": "said"}
    options = WHO | {"resamples": 10, "columns": columns, "units": units}
    found = eh.check(table, **options, cluster="topic")
    people = found.results.query("statistic == 'cohen_kappa' and subset == 'all'")
    assert people["n_clusters"].max() == 3


@pytest.mark.slow
def test_columns_of_lists_are_sets_of_options():
    said = {"ann": [["rude"], ["rude", "long"], [], ["long"]] * 15}
    said |= {"ben": said["ann"], "gpt": [["rude"], ["long", "rude"], [], []] * 15}
    options = WHO | {"several": True, "categories": ["long", "rude"], "resamples": 10}
    expected = eh.check(pl.DataFrame(said), **options)
    assert {verdict["rubric"] for verdict in expected.verdicts} == {"labels/long", "labels/rude"}
    for form in (list, frozenset, lambda each: ";".join(each) or "none"):
        cells = {who: [form(each) for each in sets] for who, sets in said.items()}
        pd.testing.assert_frame_equal(eh.check(cells, **options).results, expected.results)


def test_what_is_missing_stays_missing_and_numbers_stay_whole() -> None:
    table = pl.DataFrame({
        "number": [2**53 + 1, None], "text": ["NA", None], "yes": [True, None],
        "several": [["a", "b"], None], "share": [0.5, None],
        "code": pl.Series(["x", None], dtype=pl.Categorical),
    })  # fmt: skip
    for frame in (table, table.to_arrow(), table.to_dict(as_series=False), table.to_dicts()):
        found = frame_of(frame)
        assert found.iloc[1].isna().all()
        assert (found.loc[0, "number"], found.loc[0, "text"]) == (2**53 + 1, "NA")
        assert list(found.loc[0, "several"]) == ["a", "b"]
    assert texts(pd.Series(["x", None], dtype="string")).tolist() == ["x", ""]
    short = pl.DataFrame({"share": [0.1]}, {"share": pl.Float32})
    assert frame_of(short)["share"].tolist() == [0.1]


def test_a_named_index_is_a_column(wide, tmp_path):
    wide.set_index("topic").to_parquet(file := tmp_path / "r.parquet")
    for found in (frame_of(wide.set_index("topic")), read_table(file)):
        assert {*found} == {*wide}


def test_without_pyarrow(wide, monkeypatch):
    """An installation for `check` alone reads tables of polars."""
    expected, table = frame_of(wide), pl.from_pandas(wide)
    only_arrow = type("OnlyArrow", (), {"__arrow_c_stream__": lambda self, schema=None: None})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = frame_of(table)
    refused("reading a OnlyArrow takes pyarrow; run pip install py", frame_of, only_arrow())
    monkeypatch.undo()
    assert (found.fillna("") == expected.fillna("")).all(None)
    absent = "import sys; sys.modules['pyarrow'] = None; import evenhand.reporting.library"
    python("-c", absent, check=True)


@pytest.mark.parametrize(("change", "says"), [
    (lambda t: pl.from_pandas(t[:0]), "ratings has a header but no ratings"),
    (lambda t: {}, "ratings has no column"),
    (lambda t: pa.table([pa.array([1])] * 2, names=["ann", "ann"]),
     "ratings: two columns are called 'ann'; rename one"),
    (lambda t: t.set_axis(pd.MultiIndex.from_product([["a"], list(t)]), axis=1),
     "the columns have names of 2 levels; give each one name"),
    (lambda t: t.set_axis(pd.MultiIndex.from_product([[1, 2], range(30)])),
     "its rows are named by an index of 2 levels; name the levels"),
    (lambda t: pl.from_pandas(t).lazy(), "this LazyFrame is not computed yet; write .collec"),
    (lambda t: t["ann"], "a Series is one column; a table of ratings has several"),
    (lambda t: t.to_numpy(), "a ndarray is no table; give a DataFrame"),
    (lambda t: {"ann": "yes"}, "the column 'ann' must be a list of cells, not a str"),
    (lambda t: {"ann": ["yes"], "ben": []},
     "the columns differ in length (ann 1, ben 0); each row needs a cell"),
    (lambda t: [["yes", "no"]], "record 0 is a list; give each row as a dict"),
    (lambda t: "nothing.csv", "there is no file nothing.csv"),
    (lambda t: t.assign(unit_id=[None, None, *range(58)]), "row 0: unit_id is ''"),
    (lambda t: t.assign(gpt=[["yes"]] * 60), "the label '[\"yes\"]' is nested JSON"),
])  # fmt: skip
def test_a_bad_table_is_one_sentence(wide, change, says):
    said = refused("", eh.check, change(wide), **WHO)
    assert says in said
    assert len(said.splitlines()) == 1


RATERS = {"ann": "human", "ben": "human", "cem": "human", "gpt": "model"}
LABELS = ("77", "No", "yes")
SYMMETRIC = ("observed_agreement", "cohen_kappa", "scott_pi", "gwet_ac1", "brennan_prediger")
KEYS = ["statistic", "rater_a", "rater_b", "subset", "at"]
FIGURES = ["n_units", "n_clusters", "estimate", "low", "high"]


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


def figures(table: pd.DataFrame, file: Path, **declared: object) -> pd.DataFrame:
    """All rows that come out of a file of these ratings."""
    write_table(table, file)
    analysis, _ = analyse_file(file, ScaleOptions(**declared, settings={"resamples": 10}))
    return analysis.results[[*KEYS, *FIGURES]].sort_values(KEYS, ignore_index=True)


def renamed(results: pd.DataFrame, columns: list[str], names: dict[str, str]) -> pd.DataFrame:
    """The rows under other names; in `at` a cell of two raters' categories reads "a>b"."""

    def name(cell: str) -> str:
        return ">".join(names.get(part, part) for part in cell.split(">"))

    changed = results.assign(**{column: results[column].map(name) for column in columns})
    return changed.sort_values(KEYS, ignore_index=True)


def symmetric(results: pd.DataFrame) -> dict[tuple[str, frozenset[str], str], float]:
    """The coefficients that do not know which rater of a pair comes first."""
    chosen = results[results["statistic"].isin(SYMMETRIC)].fillna({"estimate": -9})
    return {
        (row.statistic, frozenset((row.rater_a, row.rater_b)), row.subset): round(row.estimate, 12)
        for row in chosen.itertuples()
    }


@pytest.mark.slow
@settings(
    max_examples=3, deadline=None, derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # to shrink a failure would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(table=ratings(), data=st.data())
def test_what_must_not_matter_does_not(tmp_path, table, data):
    same, file = pd.testing.assert_frame_equal, tmp_path / "r.csv"
    usual, declared = figures(table, file), figures(table, file, categories=LABELS)

    # Neither the order of rows and columns, nor the format.
    mixed = table.sample(frac=1, random_state=1).sample(frac=1, axis=1, random_state=2)
    suffix = data.draw(st.sampled_from(("csv", "jsonl", "parquet")))
    same(figures(mixed, tmp_path / f"r.{suffix}", categories=LABELS), declared)

    # Names of raters: in the same order everything stays, to the last bit of each interval.
    names = data.draw(st.permutations(("w", "x 1", "ÿ", "z,")))
    ordered = dict(zip(RATERS, sorted(names), strict=True))
    found = figures(table.replace({"rater_id": ordered}), file)
    same(renamed(found, ["rater_a", "rater_b"], {new: old for old, new in ordered.items()}), usual)
    # In another order two raters change places, which a symmetric coefficient does not see.
    back = {new: old for old, new in zip(RATERS, names, strict=True)}
    found = figures(table.replace({"rater_id": {old: new for new, old in back.items()}}), file)
    assert symmetric(found.replace({"rater_a": back, "rater_b": back})) == symmetric(usual)

    # Every unit twice leaves the coefficients.
    again = table.assign(**{name: "again " + table[name] for name in ("unit_id", "cluster_id")})
    found = figures(pd.concat([table, again]), file)
    assert symmetric(found) == symmetric(usual)
    assert found["n_units"].max() == 2 * usual["n_units"].max()

    # Names of categories matter only where a row names one.
    words = dict(zip(LABELS, data.draw(st.permutations(("a, b", "Ö", "zz"))), strict=True))
    found = figures(table.replace({"label": words}), file, categories=tuple(words.values()))
    same(renamed(found, ["at"], {new: old for old, new in words.items()}), declared)

    # Dirt that is normalised changes nothing, and none is taken for a label.
    wash = (str.upper, str.lower, " {}\t".format, lambda label: label.replace("77", "77.00"))
    cells = [data.draw(st.sampled_from(wash))(label) for label in table["label"]]
    dirty = table.assign(label=cells)
    same(figures(dirty, file, categories=LABELS, normalise=True), declared)
    if set(map(folded, cells)) - set(LABELS):
        refused("--normalise reads them as one", figures, dirty, file, categories=LABELS)
