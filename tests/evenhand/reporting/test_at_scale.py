"""`check` by an engine: the ordinary check's rows, byte for byte the same, in whatever pieces
ratings come and to whatever parts they are at_scale.scattered.
"""

import os
import re
import signal
import sys
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from evenhand.analysis.labels.encoding import Reduced, by_kind
from evenhand.analysis.labels.scale import Scale
from evenhand.errors import InputError
from evenhand.reporting import at_scale
from evenhand.reporting.analysing import analyse_file
from evenhand.reporting.at_scale import Facts, Reading, analyse_at_scale, facts_of, reduce_part
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study.tables import formats as limits
from evenhand.study.tables.formats import pieces_of, read_table
from harness.many_ratings import CATEGORIES, RATERS, many_ratings
from tests.cases import refused
from tests.conftest import ROOT

SCALE = ScaleOptions(categories=CATEGORIES, level="ordinal", affirmative=("3",))
SETTINGS = {"resamples": 20}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ratings in six files, a unit's rows all over them, and the same in one file."""
    frame = pd.concat(
        [many_ratings(150, 3, seed=n).assign(rubric=name) for n, name in enumerate(["one", "two"])]
    )
    frame.to_csv(tmp_path / "whole.csv", index=False)
    shuffled = frame.sample(frac=1.0, random_state=2)
    (tmp_path / "parts").mkdir()
    for n in range(6):
        shuffled[n::6].to_parquet(tmp_path / "parts" / f"{n}.parquet", index=False)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("rubric", [None, "one"])
@pytest.mark.parametrize(
    "more", [{}, {"across_rubrics": "holm", "margin": 0.05, "ordered": "quadratic"}]
)
def test_an_engine_has_the_rows_and_verdicts_of_the_ordinary_check(folder, engine, more, rubric):
    settings, scale = SETTINGS | more, replace(SCALE, rubric=rubric)
    whole, _ = analyse_file(folder / "whole.csv", replace(scale, settings=settings))
    found, context = analyse_at_scale(folder / "parts", scale, engine=engine, **settings)
    keys = list(whole.results.columns[:6])
    both = found.results.merge(whole.results, on=keys, suffixes=("", "_whole"), validate="1:1")
    assert len(both) == len(found.results) > 500
    for name in ("n_units", "n_clusters", "estimate", "low", "high"):
        np.testing.assert_allclose(both[name], both[f"{name}_whole"], rtol=1e-9, atol=1e-12)
    assert (both["note"] == both["note_whole"]).all()
    chances = [[each.pop("chance") for each in one.verdicts] for one in (found, whole)]
    assert chances[0] == pytest.approx(chances[1], rel=1e-9)
    assert found.verdicts == whole.verdicts
    assert context.facts["ratings"] == len(pd.read_csv(folder / "whole.csv"))
    assert "left out what needs each rating" in context.notes[-1]


@pytest.mark.thorough
def test_a_worker_that_is_killed_costs_time_and_no_result(folder: Path, engine: str) -> None:
    distributed = pytest.importorskip("distributed")
    check = partial(lambda *a, **k: analyse_at_scale(*a, **k)[0], options=SCALE, **SETTINGS)
    undisturbed = check(folder / "whole.csv", engine=engine)
    killed = []
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:

        def kill(stage: str) -> None:
            """One of two workers, which holds half of the ratings, before they are reduced."""
            if stage == "counting patterns of labels":
                _, pid = sorted(client.run(os.getpid).items())[0]
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        found = check(folder / "parts", engine=f"dask:{cluster.scheduler_address}", on_stage=kill)
        pd.testing.assert_frame_equal(found.results, undisturbed.results, check_exact=True)
    assert len(killed) == 1


@pytest.mark.slow
def test_a_piece_that_a_worker_cannot_hold_is_refused(tmp_path: Path, monkeypatch) -> None:
    """Each batch fits, but a worker holds all of them."""
    monkeypatch.setattr(limits, "MOST_DECODED", 10_000_000)
    table = pa.table({"unit_id": ["u"] * 500_000, "label": ["y" * 30] * 500_000})
    parquet.write_table(table, tmp_path / "large.parquet")
    reading = Reading("large.parquet", {})
    (piece,) = pieces_of(str(tmp_path / "large.parquet"), reading.columns, reading.theirs)
    assert sum(len(part) for part in at_scale.read_piece(piece, reading)) == 500_000
    with pytest.raises(InputError, match=r"large.parquet holds more than .* in 1,000,000 rows"):
        at_scale.read_parts(piece, reading, 2)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    many_ratings(20).to_csv(file := tmp_path_factory.mktemp("small") / "r.csv", index=False)
    return file


@pytest.mark.slow
def test_without_dask_or_a_scheduler_one_sentence_says_so(small, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(at_scale, "_TIMEOUT", 0.2)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1:"):
        analyse_at_scale(small, SCALE, engine="dask:tcp://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r'needs Dask: pip install "evenhand\[scale\]"'):
        analyse_at_scale(small, SCALE, engine="dask")


@pytest.mark.parametrize(
    ("scale", "changes", "said"),
    [
        (SCALE, {"engine": "spark"}, "write dask, or dask:tcp"),
        (SCALE, {"cluster": "stance"}, "no column 'stance' to cluster by"),
        (ScaleOptions(kinds={"ann": "model"}), {}, "--model names 'ann', whose rater_kind"),
        (ScaleOptions(kinds={"zoe": "human"}), {}, "no rater 'zoe'; it has ann, ben"),
        (ScaleOptions(categories=("1", "2")), {}, "the label '3' of rater"),
        (ScaleOptions(columns={"unit_id": "item"}), {}, "has no column 'item'"),
        (SCALE, {"reference": "anne"}, "'anne', which is no annotator .* are ann, ben, cy"),
        (replace(SCALE, thresholds={"g": 0.9}), {}, "no rating of 'g' has a probability"),
    ],
)
def test_what_cannot_be_analysed_is_refused(small, engine, scale, changes, said):
    refused(said, analyse_at_scale, small, scale, **{"engine": engine, **changes})


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("rater_kind", ["human", "model"], "rater 'ann' has ratings of two kinds"),
        ("rater_id", ["ann", "Ann"], "the rater 'ann' looks like 'Ann'"),
        ("prob_method", ["draws", "logprobs"], "of two kinds of probabilities"),
        ("rubric_hash", ["aa", "bb"], "has ratings of more versions"),
        ("points", ["5", "-1"], "the column points is not read with --engine"),
        ("label", [], "has a header but no ratings"),
    ],
)
def test_what_single_parts_cannot_see_is_refused(column, values, said, tmp_path, engine):
    frame = many_ratings(20).query("rater_id == 'ann'").head(100 * len(values))
    frame = frame.assign(**{column: [values[n % 2] for n in range(len(frame))]})
    frame.to_csv(tmp_path / "r.csv", index=False)
    refused(said, analyse_at_scale, tmp_path / "r.csv", SCALE, engine=engine)


def test_codes_for_no_label_are_exact(tmp_path, engine):
    frame = many_ratings(60).replace({"label": dict(zip(CATEGORIES, "NYn", strict=False))})
    frame[frame["label"].isin(["N", "Y", "n"])].to_csv(tmp_path / "r.csv", index=False)
    options = ScaleOptions(categories=("N", "Y"), settings={"missing": ("n",), **SETTINGS})
    found = analyse_at_scale(tmp_path / "r.csv", options, engine=engine, **SETTINGS)[0].results
    whole = analyse_file(tmp_path / "r.csv", options)[0].results
    assert found["estimate"][:10].tolist() == whole["estimate"][:10].tolist()


def test_labels_are_written_as_declared_and_a_line_of_json_names_items_its_way(tmp_path, engine):
    frame = many_ratings(60).rename(columns={"unit_id": "item_id"})
    frame["label"] = frame["label"].replace({label: f"{label}.0" for label in CATEGORIES})
    frame.to_json(tmp_path / "r.jsonl", orient="records", lines=True)
    written = tuple(f"{label}.0" for label in CATEGORIES)
    options = ScaleOptions(categories=written, affirmative=written[-1:])
    found = analyse_at_scale(tmp_path / "r.jsonl", options, engine=engine, **SETTINGS)[0].results
    whole = analyse_file(tmp_path / "r.jsonl", replace(options, settings=SETTINGS))[0].results
    assert found["estimate"][:10].tolist() == whole["estimate"][:10].tolist()


@pytest.mark.journey
def test_raters_that_are_named_are_the_only_ones_and_check_says_what_it_left_out(
    tmp_path, engine, run
):
    many_ratings(60).drop(columns="rater_kind").to_csv(tmp_path / "r.csv", index=False)
    words = ["check", tmp_path / "r.csv", "--human", "ann,cy", "--model", "g1"]
    words += ["--resamples", "20", "--engine", engine, "--out", tmp_path / "out"]
    said = " ".join(run.ok(*words).split())
    for told in (said, (tmp_path / "out" / "report.md").read_text("utf-8")):
        assert "It left out what needs each rating" in told
    found = read_table(tmp_path / "out" / "results.csv")
    named = {*found["rater_a"], *found["rater_b"]}
    assert named >= {"ann", "cy", "g1"}
    assert not named & {"ben", "g2"}


def test_what_is_refused_is_refused_with_its_remedy_as_documented(tmp_path, engine):
    page = (ROOT / "docs" / "millions.md").read_text("utf-8")
    many_ratings(6).to_csv(tmp_path / "r.csv", index=False)
    many_ratings(6).assign(inclusion_probability="0.5").to_csv(tmp_path / "w.csv", index=False)
    many_ratings(6).assign(points="5").to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "beside.scales.toml").write_text("format = 1\n", "utf-8")
    options = {"wide": "{rater}", "sheet": "S", "several": True, "normalise": True}
    files = {"sidecar": "beside.csv", "weights": "w.csv", "points": "p.csv"}
    for name, (what, instead) in at_scale.REFUSED.items():
        assert f"| {what} | {instead} |" in page.replace("`", "")
        scale = replace(SCALE, **{name: options[name]}) if name in options else SCALE
        scale = ScaleOptions(level="interval") if name == "numbers" else scale
        given = {name: ["topic"]} if name not in {*options, *files, "numbers"} else {}
        refusal = f"{what} is not read with --engine; {instead}, or leave --engine out"
        with pytest.raises(InputError, match=re.escape(refusal)):
            analyse_at_scale(tmp_path / files.get(name, "r.csv"), scale, engine=engine, **given)


READING = Reading("ratings", {}, "cluster_id")


def reduction(facts: Facts) -> at_scale.Reduction:
    scale = Scale("", CATEGORIES, "ordinal", frozenset({"3"}))
    return at_scale.Reduction(READING, {"": scale}, {"": by_kind(RATERS)}, facts.filled, RATERS)


def reduced(frame: pd.DataFrame, cuts: list[int], parts: int) -> tuple[Reduced, Facts]:
    """By way of pieces that end at `cuts`, and so many parts."""
    ends = [0, *sorted({min(cut, len(frame)) for cut in cuts}), len(frame)]
    rows = pa.Table.from_pandas(frame.assign(row=range(len(frame))), preserve_index=False)
    pieces = [rows.slice(start, end - start) for start, end in pairwise(ends)]
    facts = Facts.all_of([facts_of(piece) for piece in pieces if len(piece)])
    by_part = zip(*(at_scale.scattered(piece, parts) for piece in pieces), strict=True)
    return at_scale.add_up([reduce_part(tables, reduction(facts)) for tables in by_part])[""], facts


@pytest.mark.parametrize(
    ("column", "cells", "said"),
    [
        ("cluster_id", "", "every item needs a cluster"),
        ("cluster_id", "another", "an item lies in one cluster"),
        ("label", "9", r"ratings, row 44: the label '9'"),
    ],
)
def test_a_row_that_cannot_be_reduced_is_refused(column, cells, said):
    frame = many_ratings(6, 2).assign(row=range(40, 40 + len(many_ratings(6, 2))))
    at = frame.index[frame["unit_id"] == "u00002"]
    frame.loc[at[:1] if cells else at, column] = cells
    table = pa.Table.from_pandas(frame, preserve_index=False)
    refused(said, reduce_part, [table], reduction(facts_of(table)))
    assert reduce_part([None, table[:0]], reduction(facts_of(table))) == {}


def contents(table: Reduced) -> tuple[object, ...]:
    cells = table.cells.toarray().tolist()
    return table.clusters.to_pylist(), table.patterns.tolist(), cells, table.reasons


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(2, 25), st.lists(st.integers(0, 200), max_size=4), st.integers(1, 7))
def test_any_partitioning_and_row_order_gives_the_same_table(units, cuts, parts):
    """Graders answered three times, with a probability."""
    once = many_ratings(units, 2)
    by_model = once["rater_kind"] == "model"
    graded = once[by_model]
    drawn = [
        graded.assign(draw=str(draw), p_positive=[f"0.{(n * 7 + draw) % 10}" for n in graded.index])
        for draw in range(3)
    ]
    frame = pd.concat([once[~by_model].assign(draw="0", p_positive=""), *drawn], ignore_index=True)
    shuffled = frame.sample(frac=1, random_state=units + parts, ignore_index=True)
    whole, facts = reduced(frame, [], 1)
    found, same_facts = reduced(shuffled, cuts, parts)
    assert contents(found) == contents(whole)
    assert {*same_facts.cells.itertuples(index=False)} == {*facts.cells.itertuples(index=False)}
    assert (same_facts.filled, same_facts.rows) == (facts.filled, len(frame))
