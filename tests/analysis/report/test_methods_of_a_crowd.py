"""The figures of a crowd are the same wherever a report has them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from evenhand.cli.main import main


def test_one_pair_of_kappas_and_everybody_counted(
    shared_data: Path, tmp_path: Path, capsys
) -> None:
    file, out = shared_data / "reading" / "92_crowd.csv", tmp_path / "report"
    assert main(["check", str(file), "--resamples", "200", "--out", str(out)]) == 0
    said, text = capsys.readouterr().out, (out / "report.md").read_text("utf-8")
    (verdict,) = json.loads((out / "report.json").read_text("utf-8"))["verdicts"]
    assert "kappa 0.42 vs 0.32" in verdict["sentence"]
    assert verdict["sentence"] in text
    assert "κ 0.42 vs 0.32" in text
    pairs = set(re.findall(r"(?:kappa|κ) (-?\d\.\d\d) vs (-?\d\.\d\d)", said + text))
    assert pairs == {("0.42", "0.32")}
    assert "agree with one another at kappa 0.32" in text
    assert "20 human raters labelled 200 units" in text
    assert "margin was 0.1, or a quarter of the latter where that is less" in text
