"""What the case studies say is what their command computes, on the labels as published; and
preference studies from the file to the verdict, where published effects of the order are found.
"""

import json
import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.reporting.library import check, read
from evenhand.study import open_study
from examples import public
from harness.studies import with_labels
from tests.conftest import ROOT

pytestmark = pytest.mark.slow
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


def test_every_figure_of_the_table_is_computed(case: CaseStudy) -> None:
    for statistic, raters, part, shown, units in case.table("statistic"):
        row = case.row(statistic, raters, part)
        estimate, *ends = map(float, re.findall(r"-?\d+\.\d+", shown))
        assert f"{row['estimate']:.2f}".replace("-0.00", "0.00") == f"{estimate:.2f}", shown
        assert [row["low"], row["high"]][: len(ends)] == pytest.approx(ends, **HARDLY), shown
        assert bool(ends) == pd.notna(row["low"])
        assert row["n_units"] == int(units)


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


def test_labels_without_a_grader_have_their_human_agreement(shared_data, tmp_path, monkeypatch):
    monkeypatch.setattr(public, "PUBLISHED", [])
    (tmp_path / "newsroom.csv").symlink_to(shared_data / "real" / "newsroom.csv")
    (row,) = [line for line in public_page(tmp_path, tmp_path) if line.startswith("| Newsroom")]
    assert "| Newsroom | — | 0.09 \\[0.06, 0.12\\] | — |" in row


def public_page(place: Path, *folder: Path) -> list[str]:
    public.main([*map(str, folder), "--out", str(place / "page.md")])
    return (place / "page.md").read_text("utf-8").splitlines()


def results_of(study: Path) -> tuple[pd.DataFrame, dict[str, str]]:
    """The figures of a study's report, and the verdict on each grader."""
    assert main(["report", str(study)]) == 0
    table = pd.read_csv(study / "report" / "results.csv", dtype={"at": str})
    report = json.loads((study / "report" / "report.json").read_text("utf-8"))
    verdicts = {each["grader"]: each["verdict"] for each in report["verdicts"]}
    return table.fillna(dict.fromkeys(("rater_a", "rater_b", "at", "note"), "")), verdicts


def row(results: pd.DataFrame, statistic: str, a: str, b: str = "", at: str = "") -> pd.Series:
    wanted = {"statistic": statistic, "rater_a": a, "rater_b": b, "subset": "all", "at": at}
    found = results[(results[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    assert len(found) == 1, wanted
    return found.iloc[0]


MODELS = ("alpaca-13b", "claude-v1", "gpt-3.5-turbo", "gpt-4", "llama-13b", "vicuna-13b-v1.2")
QUALITY = (-0.6, 0.7, 0.6, 1.2, -1.6, -0.3)


def votes(questions: int) -> list[dict[str, object]]:
    """Votes with the columns of lmsys/mt_bench_human_judgments, *synthetic*: two annotators,
    and GPT-4 with its two orders already taken together.
    """
    rows, rng = [], np.random.default_rng(20)
    for question in range(questions):
        quality = dict(zip(MODELS, QUALITY + rng.normal(0, 0.4, len(MODELS)), strict=True))
        for pair in combinations(MODELS, 2):
            first, second = pair if rng.random() < 0.5 else pair[::-1]
            chance = 1 / (1 + np.exp(quality[second] - quality[first]))
            both = {
                f"conversation_{side}": [
                    {"role": "user", "content": f"Question {question}"},
                    {"role": "assistant", "content": f"{MODELS.index(model)}: {question}"},
                ]
                for side, model in (("a", first), ("b", second))
            }
            both |= {"model_a": first, "model_b": second, "turn": 1, "question_id": 81 + question}
            for judge in ("expert_1", "expert_2", "gpt4_pair"):
                won = "model_a" if rng.random() < chance else "model_b"
                if rng.random() < 0.2:
                    won = "tie (inconsistent)" if judge == "gpt4_pair" else "tie"
                rows.append({"winner": won, "judge": judge, **both})
    return rows


def test_votes_are_checked_and_rank_the_models(tmp_path: Path) -> None:
    rows, path = votes(80), tmp_path / "votes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    scale = {"categories": ["a", "tie", "b"], "level": "ordinal", "sides": ["a", "b"]}
    found = check(read(path), **scale, resamples=200)
    # The judge's vote of a unit, again from the rows as they are.
    own = pd.DataFrame(rows).query("judge == 'gpt4_pair'")
    worth = own["winner"].map({"model_a": 1.0, "model_b": 0.0}).fillna(0.5)
    for model in MODELS:
        won = [worth[own["model_a"] == model], 1 - worth[own["model_b"] == model]]
        rate = row(found.results, "win_rate", "gpt4_pair", at=model)
        assert rate["estimate"] == pytest.approx(pd.concat(won).mean())
        assert rate["n_clusters"] == 80
    strengths = [row(found.results, "strength", "humans", at=each)["estimate"] for each in MODELS]
    assert np.argsort(strengths).tolist() == np.argsort(QUALITY).tolist()
    assert [each["grader"] for each in found.verdicts] == ["gpt4_pair"]


def test_votes_become_a_study(here: Path) -> None:
    """A file of the judge's votes is rated by people, here those whose votes are published."""
    rows = votes(40)
    judged = [each | {"winner": each["winner"].partition(" ")[0]} for each in rows[2::3]]
    Path("judged.jsonl").write_text("\n".join(map(json.dumps, judged)))
    words = ["--sample", str(len(judged)), "--judge", "winner"]
    assert main(["new", "study", "--items", "judged.jsonl", *words]) == 0
    key = {"model_a": "A", "model_b": "B", "tie": "tie"}
    with open_study(here / "study") as study:
        (rubric,) = study.rubrics.values()
        assert [block.kind for block in rubric.blocks] == ["conversation"]
        assert study.config.analysis.cluster == "question_id"
        units = sorted(study.units().query("side == ''")["unit_id"])
        given = {f"expert_{n + 1}": [key[each["winner"]] for each in rows[n::3]] for n in (0, 1)}
        with_labels(study, given, rubric.name, units=units)
    results, verdicts = results_of(here / "study")
    assert row(results, "win_rate", "humans", at="gpt-4")["low"] > 0.6
    assert list(verdicts) == ["winner"]
    page = (here / "study" / "report" / "report.md").read_text("utf-8")
    assert "Annotators prefer gpt-4 most: its win rate is" in page


PUBLISHED = {"claude-v1": (19, 60, 0, 1), "gpt-3.5-turbo": (37, 40, 1, 2), "gpt-4": (52, 24, 4, 0)}
"""Of 80 comparisons in both orders, how often the judge was consistent, favoured the first, the
second, or gave no verdict: Zheng et al. (2023), Table 2, default prompt, where they are shares."""

ANSWERING = {"model_1": "llama-13b", "model_2": "vicuna-13b"}


def test_the_published_position_bias_of_three_judges(tmp_path: Path) -> None:
    """A row for each vote, and so two for each question: in both orders."""
    rows = []
    for judge, (consistent, first, second, failed) in PUBLISHED.items():
        outcomes = (
            *[("model_1", "model_1"), ("model_2", "model_2")] * consistent,
            *[("model_1", "model_2")] * first,
            *[("model_2", "model_1")] * second,
            *[("error", "error")] * failed,
        )
        outcomes = outcomes[consistent:]  # the first were two for one
        for question, votes in enumerate(outcomes):
            for vote, (first_model, second_model) in zip(
                votes, permutations(ANSWERING), strict=True
            ):
                models = {"model_a": ANSWERING[first_model], "model_b": ANSWERING[second_model]}
                winner = {first_model: "model_a", second_model: "model_b"}.get(vote, vote)
                about = {"question_id": question, "turn": 1, "judge": [judge, "pair-v2"]}
                rows.append({**about, **models, "winner": winner})
    path = tmp_path / "votes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = check(read(path), categories=["a", "tie", "b"], sides=["a", "b"], resamples=200)
    results = found.results
    for judge, (consistent, first, second, failed) in PUBLISHED.items():
        name, answered = f"{judge}:pair-v2", 80 - failed
        flips = row(results, "bias_order_flips", name)
        assert flips["n_units"] == answered
        assert flips["estimate"] == pytest.approx(1 - consistent / answered)
        share = row(results, "bias_order_first", name)["estimate"]
        assert share == pytest.approx(first / (first + second))
        gain = row(results, "bias_order", name)
        assert gain["estimate"] == pytest.approx((first - second) / answered)
        assert gain["low"] > 0.1
    strongest = row(results, "bias_order", "claude-v1:pair-v2")
    assert strongest["low"] > row(results, "bias_order", "gpt-4:pair-v2")["high"]
