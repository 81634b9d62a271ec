"""Labels that are sets of options, in every way in which files write them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import InputError
from evenhand.reporting.load import load
from evenhand.reporting.ratings_file.declared import ScaleOptions
from tests.evenhand.cli.commands import Run

PEOPLE = ("ann", "ben")
OPTIONS = ("rude", "off-topic", "spam")
SETS = [
    [option for option, is_on in zip(OPTIONS, chosen, strict=True) if is_on]
    for chosen in product((True, False), repeat=3)
]
Written = Callable[[Sequence[str]], str]
WAYS: dict[str, Written] = {
    "semicolons": lambda chosen: ";".join(chosen) or "none",
    "commas": lambda chosen: ", ".join(chosen) or "none",
    "hashes": lambda chosen: "#".join(chosen) or "none",
    "bars": lambda chosen: "|".join(chosen) or "none",
    "JSON": lambda chosen: json.dumps(list(chosen)),
    "Python": lambda chosen: repr(list(chosen)),
    "NumPy": lambda chosen: "[" + " ".join(map(repr, chosen)) + "]",
    "backwards": lambda chosen: ";".join(reversed(chosen)) or "none",
}


def table(write: Written) -> pd.DataFrame:
    """Forty units with every set, on which ben differs from ann in every fifth."""
    own = [SETS[n % 8] for n in range(40)]
    others = [SETS[(n + (n % 5 == 0)) % 8] for n in range(40)]
    cells = {name: list(map(write, sets)) for name, sets in zip(PEOPLE, (own, others), strict=True)}
    return pd.DataFrame({"unit_id": [f"u{n}" for n in range(40)], **cells})


def figures(given: pd.DataFrame | Path, **declared: object) -> pd.DataFrame:
    kinds = dict.fromkeys(PEOPLE, "human")
    found = load(given, ScaleOptions(kinds=kinds, several=True, **declared))  # type: ignore[arg-type]
    return found.changed(resamples=20).analyse().results


@pytest.fixture(scope="module")
def of_lists() -> pd.DataFrame:
    return figures(table(WAYS["JSON"]))


@pytest.mark.parametrize("way", list(WAYS))
def test_the_way_in_which_sets_are_written_changes_no_figure(
    of_lists: pd.DataFrame, tmp_path: Path, way: str
) -> None:
    table(WAYS[way]).to_csv(tmp_path / "r.csv", index=False)
    names = {"labels"} | {f"labels/{option}" for option in OPTIONS}
    assert set(of_lists["rubric"]) == names
    pd.testing.assert_frame_equal(figures(tmp_path / "r.csv"), of_lists)


def test_lists_in_a_table_are_read(of_lists: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(figures(table(list)), of_lists)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", [way for way in WAYS if way != "NumPy"])
def test_sets_are_no_categories_unless_declared(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table(WAYS[way]).to_csv("r.csv", index=False)
    command = "check r.csv --resamples 20 --human ann,ben"
    done = run(*command.split())
    assert done.returncode == 2
    assert "r.csv, row 2, column 'ann': the label" in done.stderr
    assert "looks like a set of options (off-topic, rude, spam); add --several" in done.stderr
    done = run(*command.split(), "--several")
    assert (done.returncode, done.stderr) == (0, "")
    assert "labels: read as sets of 3 options (off-topic, rude, spam)" in done.stdout


def test_joined_labels_may_be_declared_as_they_are(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(WAYS["bars"]).to_csv("r.csv", index=False)
    command = ["check", "r.csv", "--resamples", "20", "--human", "ann,ben"]
    advised = run(*command).stderr.split("or --categories ")[1].split(" to take")[0]
    done = run(*command, "--categories", *shlex.split(advised))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "labels",
    [
        ("agree, weakly", "agree, strongly", "disagree"),  # the comma is part of the names
        ("C#", "Java", "C"),
        ("yes", "no; see note", "unsure"),
        ("1/2", "1", "2"),
    ],
)
def test_marks_within_names_are_no_sets(labels: Sequence[str]) -> None:
    named = pd.DataFrame({"ann": labels * 4, "ben": labels * 4})
    dataset = load(named, ScaleOptions(kinds=dict.fromkeys(PEOPLE, "human")))
    assert dataset.scales[""].categories == tuple(sorted(labels))


def test_numbers_with_a_decimal_comma_may_be_meant() -> None:
    labels = ["1", "1,5", "2", "5", "2,5", "2"]
    table = pd.DataFrame({"ann": labels, "ben": labels})
    with pytest.raises(InputError, match=r"; if the labels are numbers, write a decimal point"):
        load(table, ScaleOptions(kinds=dict.fromkeys(PEOPLE, "human")))


def test_labels_with_commas_are_kept_where_a_scale_beside_the_file_has_them(tmp_path: Path) -> None:
    table(WAYS["commas"]).to_csv(tmp_path / "r.csv", index=False)
    every = sorted({WAYS["commas"](each) for each in SETS})
    scale = {"level": "nominal", "categories": every}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in scale.items())
    (tmp_path / "r.scales.toml").write_text(f"[scales.topics]\n{lines}")
    options = ScaleOptions(kinds=dict.fromkeys(PEOPLE, "human"))
    assert load(tmp_path / "r.csv", options).scales["topics"].categories == tuple(every)


def test_a_mix_of_marks_is_refused_with_a_proposal_that_works(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mixed = table(WAYS["semicolons"])
    mixed["ben"] = mixed["ben"].str.replace(";", ",")
    mixed.to_csv("r.csv", index=False)
    command = ["check", "r.csv", "--resamples", "20", "--human", "ann,ben"]
    both = "--several --categories off-topic,rude,spam"
    assert f"add {both} to read sets" in run(*command).stderr
    done = run(*command, "--several")
    assert done.returncode == 2
    assert "it cannot be told whether ; or , stands between options" in done.stderr
    assert "--categories off-topic,rude,spam" in done.stderr
    assert run(*command, *both.split()).returncode == 0


def test_python_is_told_in_its_own_words() -> None:
    with pytest.raises(InputError, match=r"add several=True to read sets, or categories=\["):
        eh.check(table(WAYS["commas"]), human=list(PEOPLE))


@pytest.mark.slow
def test_commas_and_lists_of_published_sets_are_the_same(shared_data: Path) -> None:
    files = [shared_data / "reading" / f"shape_03_{way}_sets.jsonl" for way in ("comma", "list")]
    kinds = dict.fromkeys(("Ann1", "Ann2", "Ann3"), "human")
    options = ScaleOptions(kinds=kinds, several=True, settings={"resamples": 20})
    one, other = (load(file, options).analyse() for file in files)
    pd.testing.assert_frame_equal(one.results, other.results)
    alpha = one.results.query("statistic == 'krippendorff_alpha_masi'")
    assert not alpha["estimate"].isna().any()
