"""What the case studies say is what their command computes, on the labels as published."""

import json
import re
import runpy
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
import pytest

from evenhand.cli.main import main
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
        found = those[[{*pair} - {""} == named for pair in zip(*_raters(those), strict=True)]]
        assert len(found) == 1, (statistic, raters, part, len(found))
        return found.iloc[0]


def _raters(rows: pd.DataFrame) -> tuple[list[str], list[str]]:
    return rows["rater_a"].tolist(), rows["rater_b"].tolist()


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
def test_every_verdict_of_the_table_is_given(case: CaseStudy) -> None:
    given = [[each["grader"], each["verdict"]] for each in case.verdicts]
    assert case.table("grader") == given


@pytest.mark.slow
def test_every_figure_of_the_text_is_in_the_table_or_its_row(case: CaseStudy) -> None:
    told = case.page.split("## What it teaches")[1].split("## The figures")[0]
    numbers = {
        text: float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
        for text in re.findall(
            r"-?\d+(?:\.\d+)?%?", re.sub(r"GPT-4|95%\s+interval|`[^`]+`", "", told)
        )
    }
    known = {float(each) for each in re.findall(r"-?\d+\.\d+", str(case.table("statistic")))}
    for statistic, raters, part, _, units in case.table("statistic"):
        note = str(case.row(statistic, raters, part)["note"])
        known |= {float(units), *map(float, re.findall(r"\d+(?:\.\d+)?", note))}
    for sentence in (each["sentence"] for each in case.verdicts):
        percentages = re.findall(r"(\d+(?:\.\d+)?)%", sentence)
        known |= {float(share) / 100 for share in percentages}
        known |= {float(count) for count in re.findall(r"(?<![.\d])\d+(?![.\d%])", sentence)}
    verdicts = [each["verdict"] for each in case.verdicts]
    known |= {float(verdicts.count(each)) for each in verdicts}
    unknown = {
        text
        for text, number in numbers.items()
        if all(abs(number - each) > 1e-9 for each in known)
        and not (text.endswith("%") and any(abs(number - each) < 0.0051 for each in known))
    }
    assert not unknown


def test_published_llmbar_grades_become_ratings(tmp_path: Path) -> None:
    labels = runpy.run_path(str(ROOT / "examples" / "llmbar" / "labels.py"))
    unit = {"input": "i", "output_1": "a", "output_2": "b", "label": 2}

    def answered(*winners: object) -> dict[str, object]:
        swaps = ("swap = False", "swap = True")
        return {swap: {"winner": each} for swap, each in zip(swaps, winners, strict=True)}

    for subset in labels["SUBSETS"]:
        folder = tmp_path / "Dataset" / "LLMBar" / subset
        for grader in labels["GRADERS"]:
            steps = [["metrics", "stop"], ["reference", "stop"]]
            before = steps if "Metrics" in grader else []
            (folder / "evaluators" / grader).mkdir(parents=True)
            graded = [{**unit, "results": [*before, answered("1", None)]}]
            (folder / "evaluators" / grader / "result.json").write_text(json.dumps(graded))
        (folder / "dataset.json").write_text(json.dumps([unit]))
    labels["main"](str(tmp_path), str(tmp_path / "llmbar.csv"))
    lines = (tmp_path / "llmbar.csv").read_text().splitlines()
    assert len(lines) == 1 + 5 * (1 + 14 * 2)
    assert lines[:4] == [
        "item_id,rater_id,rater_kind,label,order,slice",
        "Natural/0,gold,human,2,,Natural",
        "Natural/0,ChatGPT-0301/CoT,model,1,ab,Natural",
        "Natural/0,ChatGPT-0301/CoT,model,,ba,Natural",
    ]
    assert "Natural/0,GPT-4/Metrics_Reference#run2,model,1,ab,Natural" in lines


def test_published_dices_labels_become_ratings(tmp_path: Path) -> None:
    labels = runpy.run_path(str(ROOT / "examples" / "dices" / "labels.py"))
    file = tmp_path / labels["FILE"]
    file.parent.mkdir()
    file.write_text("rater_id,item_id,safety_gold,Q_overall\n7,0,Yes,No\n8,0,Yes,Unsure\n")
    labels["main"](str(tmp_path), str(tmp_path / "dices350.csv"))
    assert (tmp_path / "dices350.csv").read_text().splitlines() == [
        "item_id,rater_id,rater_kind,label",
        "0,r7,human,No",
        "0,r8,human,Unsure",
        "0,expert,model,Yes",
    ]
