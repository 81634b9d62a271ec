"""What the case studies say is what their command computes, on the labels as published."""

import json
import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
import pytest

from evenhand.cli.main import main
from examples import public
from tests.conftest import ROOT

QUICK = 500
"""Resamples, where the pages have 2,000: no estimate and no bound of a verdict depends on them, and
the ends of other intervals hardly."""
HARDLY = {"abs": 0.02, "rel": 0.03}


@dataclass(frozen=True)
class CaseStudy:
    """A page of examples/, and the folder in which its command has run."""

    name: str
    folder: Path

    @cached_property
    def page(self) -> str:
        return (ROOT / "examples" / self.name / "README.md").read_text("utf-8")

    @cached_property
    def results(self) -> pd.DataFrame:
        table = pd.read_csv(self.folder / f"{self.name}-report" / "results.csv", dtype={"at": str})
        return table.fillna(dict.fromkeys(("rater_a", "rater_b", "at", "note"), ""))

    @cached_property
    def verdicts(self) -> list[dict[str, str]]:
        report = self.folder / f"{self.name}-report" / "report.json"
        return list(json.loads(report.read_text("utf-8"))["verdicts"])

    def table(self, heading: str) -> list[list[str]]:
        """The rows of the page's table that begins with this column."""
        lines = self.page[self.page.index(f"| {heading} |") :].split("\n\n")[0].splitlines()
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]

    def row(self, statistic: str, raters: str, part: str) -> pd.Series:
        """The row of results.csv that one of the page's table speaks of."""
        subset, _, at = part.partition(" at ")
        wanted = {"statistic": statistic, "subset": subset, "at": at}
        those = self.results[(self.results[list(wanted)] == pd.Series(wanted)).all(axis=1)]
        named = {name for name in raters.split(", ") if name}
        pairs = those[["rater_a", "rater_b"]].to_numpy()
        found = those[[{*pair} - {""} == named for pair in pairs]]
        assert len(found) == 1, (statistic, raters, part, len(found))
        return found.iloc[0]


@pytest.fixture(
    scope="module", params=["llmbar", pytest.param("dices", marks=pytest.mark.thorough)]
)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CaseStudy:
    """Runs the two commands of the page: the first writes the labels, the second the report."""
    study = CaseStudy(request.param, tmp_path_factory.mktemp(request.param))
    (commands,) = re.findall(r"^```sh\n(.*?)\n```", study.page, re.MULTILINE | re.DOTALL)
    demo, check = map(shlex.split, commands.splitlines())
    assert [demo[0], check[0]] == ["evenhand", "evenhand"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(study.folder)
        assert main([*demo[1:], "--no-app"]) == 0
        assert main([*check[1:], "--resamples", str(QUICK)]) == 0
    return study


@pytest.mark.slow
def test_every_figure_of_the_table_is_computed(case: CaseStudy) -> None:
    for statistic, raters, part, shown, units in case.table("statistic"):
        row = case.row(statistic, raters, part)
        estimate, *ends = map(float, re.findall(r"-?\d+\.\d+", shown))
        assert f"{row['estimate']:.2f}".replace("-0.00", "0.00") == f"{estimate:.2f}", shown
        assert [row["low"], row["high"]][: len(ends)] == pytest.approx(ends, **HARDLY), shown
        assert bool(ends) == pd.notna(row["low"])
        assert row["n_units"] == int(units)


@pytest.mark.slow
def test_every_figure_of_the_text_is_in_the_table_or_its_row(case: CaseStudy) -> None:
    told = case.page.split("## What it teaches")[1].split("## The figures")[0]
    told = re.sub(r"GPT-4|95%\s+interval|`[^`]+`", "", told)
    numbers = {
        text: float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
        for text in re.findall(r"-?\d+(?:\.\d+)?%?", told)
    }
    known = {float(each) for each in re.findall(r"-?\d+\.\d+", str(case.table("statistic")))}
    for statistic, raters, part, _, units in case.table("statistic"):
        note = str(case.row(statistic, raters, part)["note"])
        known |= {float(units), *map(float, re.findall(r"\d+(?:\.\d+)?", note))}
    for sentence in (each["sentence"] for each in case.verdicts):
        known |= {float(share) / 100 for share in re.findall(r"(\d+(?:\.\d+)?)%", sentence)}
        known |= {float(count) for count in re.findall(r"(?<![.\d])\d+(?![.\d%])", sentence)}
    assert not {
        text
        for text, number in numbers.items()
        if min(abs(number - each) for each in known) > (0.0051 if text.endswith("%") else 1e-9)
    }


@pytest.mark.thorough
def test_the_page_of_public_judges_says_what_the_shipped_labels_give(tmp_path: Path) -> None:
    assert public_page(tmp_path) == public.PAGE.read_text("utf-8").splitlines()


def test_downloaded_data_sets_are_judged_or_named_with_the_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(public, "PUBLISHED", [])
    labels = {f"text{n // 2}__{n}": "yn"[n % 3 == 0] for n in range(400)}
    people, models = dict.fromkeys(("ann", "ben"), labels), {"good": labels}
    models["bad"] = dict.fromkeys(labels, "y")
    for name, human in (("framing", json.dumps(people)), ("mine", "[" * 99_999)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "human_annotations.json").write_text(human)
        (tmp_path / name / "llm_annotations.json").write_text(json.dumps(models))
    (tmp_path / "<b>|x.csv").write_text("a,b\n1,2\n")
    (tmp_path / "public.toml").write_text('[mine]\nLicence = "our own"\n')
    lines = public_page(tmp_path, tmp_path)
    table = [line for line in lines if line.startswith("| ")]
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in table[2:]]
    assert [row[0] for row in rows] == ["&lt;b&gt;\\|x", "framing", "framing", "mine"]
    judged = ["Do not use", "Can replace an annotator"]
    assert [row[-2] for row in rows] == ["Not judged", *judged, "Not judged"]
    assert [cell[:4] for cell in rows[2][2:5]] == ["1.00", "1.00", "0.00"]
    assert "is not a table; give it the form {rater: {item: label}}" in rows[3][-1]
    assert {"- Size: 2 annotators, 400 items, 200 clusters.", "- Licence: our own"} <= {*lines}
    assert sum("Calderon" in line for line in lines) == 1
    with pytest.raises(SystemExit, match="2"):
        public.main([str(tmp_path / "none"), "--out", str(tmp_path / "page.md")])
    assert "the page is not written" in capsys.readouterr().err


@pytest.mark.slow
def test_labels_without_a_grader_have_their_human_agreement(shared_data, tmp_path, monkeypatch):
    monkeypatch.setattr(public, "PUBLISHED", [])
    (tmp_path / "newsroom.csv").symlink_to(shared_data / "real" / "newsroom.csv")
    (row,) = [line for line in public_page(tmp_path, tmp_path) if line.startswith("| Newsroom")]
    assert "| Newsroom | — | 0.09 \\[0.06, 0.12\\] | — |" in row


def public_page(place: Path, *folder: Path) -> list[str]:
    public.main([*map(str, folder), "--out", str(place / "page.md")])
    return (place / "page.md").read_text("utf-8").splitlines()
