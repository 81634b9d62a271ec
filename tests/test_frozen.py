"""What `harness.frozen` takes out of a text, and what it notices between two folders."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness import frozen
from harness.frozen import ROOT, differences, freeze, main, normalised

REPORT = "# Labels\n\nkappa 0.71\n"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders that hold the same."""
    before, after = tmp_path / "before", tmp_path / "after"
    (before / "demo").mkdir(parents=True)
    (before / "demo" / "report.md").write_text(REPORT, "utf-8")
    (before / "demo" / "figure.png").write_bytes(b"\x89PNG\xff")
    shutil.copytree(before, after)
    return before, after


def test_a_changed_byte_is_named_with_its_line(folders, capsys):
    before, after = folders
    assert main(["--compare", str(before), str(after)]) == 0
    assert capsys.readouterr().out.strip() == ""
    (after / "demo" / "report.md").write_text(REPORT.replace("0.71", "0.72"), "utf-8")
    assert main(["--compare", str(before), str(after)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "demo/report.md, line 3:",
        "  before 'kappa 0.71'",
        "  after  'kappa 0.72'",
    ]
    (after / "demo" / "report.md").write_text(REPORT + "more", "utf-8")
    (before / "left-out.txt").touch()
    for folder, digit in zip(folders, "12", strict=True):
        (folder / "demo" / "report.json").write_text("x" * 9000 + digit + "y" * 9000, "utf-8")
    for content in (b"\x89PNG\xfe", b"\x89PNG\xff\n", b""):
        (after / "demo" / "figure.png").write_bytes(content)
        figure, long_line, report, left_out = sorted(differences(*folders))
        assert figure.startswith("demo/figure.png, line ")
        assert report.startswith("demo/report.md, line 4:")
        assert left_out == "left-out.txt: only before"
        assert {"x1y" in long_line, "x2y" in long_line, len(long_line) < 500} == {True}
    with pytest.raises(SystemExit, match="is not empty"):
        freeze(before, ["readme"])


def test_only_what_changes_by_its_nature_is_taken_out() -> None:
    text = (
        f"Wrote /tmp/f-1/demo/out, of {ROOT}/evenhand, made 2026-11-23T07:04:15.123+00:00; labels "
        '2026-03-02 to 2026-11-23; {"evenhand": "0.2.0"}; kappa 0.2.0; on 2026-11-24 08:30'
    )
    assert normalised(text, "/tmp/f-1", ["2026-11-23", "2026-11-24"]) == (  # noqa: S108
        "Wrote HOME/demo/out, of CHECKOUT/evenhand, made NOW; labels "
        '2026-03-02 to NOW; {"evenhand": "VERSION"}; kappa 0.2.0; on NOW'
    )


@pytest.mark.thorough
def test_two_runs_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the library, and of the first command of the README."""
    (readme,) = (case for case in frozen.CASES if case.name == "readme")
    first = replace(readme, commands=readme.commands.strip().splitlines()[0])
    monkeypatch.setattr(frozen, "CASES", [first])
    for name in ("before", "after"):
        freeze(tmp_path / name, ["readme", "library"])
    assert differences(tmp_path / "before", tmp_path / "after") == []
    said = (tmp_path / "before" / "readme" / "check.txt").read_text("utf-8")
    assert said.startswith("$ evenhand check labels.csv --human ann,ben --model my-grader")
    assert "\nexit 0\n" in said
