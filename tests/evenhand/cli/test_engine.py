"""`check` and `gate` with --engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.study.tables.formats import read_table
from harness.many_ratings import many_ratings
from tests.evenhand.cli.commands import Run

OPTIONS = ("--categories", "1,2,3", "--level", "ordinal", "--affirmative", "3", "--resamples", "20")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ratings").mkdir()
    frame = many_ratings(150, 3)
    for n in range(2):
        frame[n::2].to_parquet(tmp_path / "ratings" / f"{n}.parquet", index=False)
    return tmp_path / "ratings"


@pytest.mark.slow
def test_check_prints_what_it_left_out_and_writes_the_report(
    run: Run, folder: Path, engine: str
) -> None:
    out = folder.parent / "out"
    done = run("check", folder, *OPTIONS, "--engine", engine, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "It left out what needs each rating" in " ".join(done.stdout.split())
    results = read_table(out / "results.csv")
    assert {"cohen_kappa", "krippendorff_alpha_ordinal", "human_ceiling_difference"} <= set(
        results["statistic"]
    )
    assert "It left out what needs each rating" in (out / "report.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("least", "status"), [("0.2", 0), ("0.99", 1)])
def test_the_gate_opens_or_not(
    run: Run, folder: Path, engine: str, least: str, status: int
) -> None:
    rule = ("--grader", "g1", "--require", f"weighted_kappa_quadratic.low > {least}")
    assert run("gate", folder, *OPTIONS, *rule, "--engine", engine).returncode == status


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check", "s3://bucket/ratings"), "which check and gate read with --engine dask"),
        (("check", "nowhere.parquet", "--engine", "dask"), "there is no file nowhere.parquet"),
        (("check", "nope://x", "--engine", "dask"), "nope:// cannot be opened"),
    ],
)
def test_what_is_wrong_is_one_sentence(run: Run, words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
