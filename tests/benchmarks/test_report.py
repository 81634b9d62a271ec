"""How long reports take and how large they are."""

from pathlib import Path

import pytest

from benchmarks import report


@pytest.mark.thorough
@pytest.mark.browser
def test_the_report_benchmark_measures_pages(tmp_path: Path, monkeypatch) -> None:
    rows = [
        f"{unit},{rater},human,{(unit + len(rater)) % 3}"
        for unit in range(20)
        for rater in ("a", "bb", "ccc")
    ]
    (tmp_path / "data" / "real").mkdir(parents=True)
    real = tmp_path / "data" / "real" / "newsroom.csv"
    real.write_text("\n".join(["item_id,rater_id,rater_kind,label", *rows, ""]), "utf-8")
    monkeypatch.setenv("EVENHAND_SHARED", str(tmp_path))
    out = tmp_path / "sizes.md"
    report.main(["--pages", "--studies", "0", "--out", str(out)])
    [line] = [line for line in out.read_text("utf-8").splitlines() if "Newsroom" in line]
    _, _, before, after, *_ = line.split("|")
    assert before.strip() == "5,592"
    assert 900 < int(after.replace(",", "")) < 4_000
