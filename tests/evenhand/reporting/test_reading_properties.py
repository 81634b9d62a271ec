"""What must not matter in a ratings file, or only in the known way, for whatever is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study.tables.formats import write_table
from evenhand.study.tables.spellings import folded

RATERS = {"ann": "human", "ben": "human", "cem": "human", "gpt": "model"}
LABELS = ("77", "No", "yes")
KEYS = ["statistic", "rater_a", "rater_b", "subset", "at"]
FIGURES = ["n_units", "n_clusters", "estimate", "low", "high"]
SYMMETRIC = ("observed_agreement", "cohen_kappa", "scott_pi", "gwet_ac1", "brennan_prediger")

few = settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # to shrink a failure would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


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
    again = table.assign(
        unit_id="again " + table["unit_id"], cluster_id="again " + table["cluster_id"]
    )
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


DIRT = (
    str.upper,
    str.lower,
    lambda label: f" {label}\t",
    lambda label: label.replace("77", "77.00"),
)


@pytest.mark.slow
@few
@given(table=ratings(), data=st.data())
def test_normalised_dirt_changes_nothing_and_dirt_is_never_taken_for_a_label(
    figures, table, data
) -> None:
    wash = data.draw(st.lists(st.sampled_from(DIRT), min_size=len(table), max_size=len(table)))
    cells = [smear(label) for smear, label in zip(wash, table["label"], strict=True)]
    dirty = table.assign(label=cells)
    expected = figures(table, categories=LABELS)
    cleaned = figures(dirty, categories=LABELS, normalise=True)
    pd.testing.assert_frame_equal(cleaned, expected)
    if set(map(folded, cells)) - set(LABELS):
        with pytest.raises(InputError, match="--normalise reads them as one"):
            figures(dirty, categories=LABELS)
