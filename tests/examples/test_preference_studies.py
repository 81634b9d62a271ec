"""Preference studies from the file to the verdict: LLMBar's labels as published, and votes with the
columns of MT-Bench. Published effects of the order are found again.
"""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.reporting.library import check, read
from evenhand.study import open_study
from evenhand.study.settings.study_toml import change_config

pytestmark = pytest.mark.slow


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


def results_of(study: Path) -> pd.DataFrame:
    assert main(["report", str(study)]) == 0
    table = pd.read_csv(study / "report" / "results.csv", dtype={"at": str})
    return table.fillna(dict.fromkeys(("rater_a", "rater_b", "at", "note"), ""))


def row(results: pd.DataFrame, statistic: str, a: str, b: str = "", at: str = "") -> pd.Series:
    wanted = {"statistic": statistic, "rater_a": a, "rater_b": b, "subset": "all", "at": at}
    found = results[(results[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    assert len(found) == 1, wanted
    return found.iloc[0]


def verdicts_of(study: Path) -> dict[str, str]:
    report = json.loads((study / "report" / "report.json").read_text("utf-8"))
    return {each["grader"]: each["verdict"] for each in report["verdicts"]}


def test_llmbar_as_a_study(shared_data: Path, here: Path) -> None:
    """The expert is the reference; the texts, which are not here, stand for themselves."""
    labels = pd.read_csv(shared_data / "real" / "llmbar.csv", dtype=str, keep_default_na=False)
    labels = labels[labels["rater_id"].isin(["gold", "ChatGPT/Vanilla", "GPT-4/Vanilla"])]
    items = labels.drop_duplicates("item_id")[["item_id", "slice"]]
    for column in ("instruction", "output_1", "output_2"):
        items[column] = f"{column} " + items["item_id"]
    items.to_csv("comparisons.csv", index=False)
    words = ["--sample", str(len(items)), "--question", "Which follows the instruction?"]
    assert main(["new", "study", "--items", "comparisons.csv", *words, "--steps", "2"]) == 0
    with open_study(here / "study") as study:
        units = study.units().query("side == ''").set_index("item_id")["unit_id"]
        rubric = next(iter(study.rubrics))
    ratings = labels.assign(
        unit_id=labels["item_id"].map(units),
        rubric=rubric,
        label=labels["label"].map({"1": "A", "2": "B", "": ""}),
        unscored_reason=np.where(labels["label"] == "", "unparsable", ""),
    ).drop(columns=["item_id", "slice"])
    ratings.to_csv("labels.csv", index=False)
    assert main(["import", "study", "labels.csv"]) == 0
    change_config(here / "study", {"decision": {"reference": "gold"}})
    results = results_of(here / "study")
    # As on the page of the case study, where a test holds them against its own command.
    for name, *figures in (
        ("ChatGPT/Vanilla", 0.66, 0.29, -0.31),
        ("GPT-4/Vanilla", 0.93, 0.02, 0.74),
    ):
        keys = (("coverage", "", name), ("bias_order", name), ("cohen_kappa", "humans", name))
        found = [row(results, *key)["estimate"] for key in keys]
        assert found == pytest.approx(figures, abs=0.005)
    found = row(results, "bias_order_first", "ChatGPT/Vanilla")
    assert found["note"].startswith("133 to the side shown first, 10 to the second")
    assert verdicts_of(here / "study")["ChatGPT/Vanilla"] == "disagrees_with_reference"
    # Nobody says whose outputs they are: there is nobody to rank, and no side to lean to.
    assert not {"win_rate", "strength", "direction_net"} & set(results["statistic"])


MODELS = ("alpaca-13b", "claude-v1", "gpt-3.5-turbo", "gpt-4", "llama-13b", "vicuna-13b-v1.2")
QUALITY = (-0.6, 0.7, 0.6, 1.2, -1.6, -0.3)


def votes(rng: np.random.Generator, questions: int) -> list[dict[str, object]]:
    """Votes with the columns of lmsys/mt_bench_human_judgments, *synthetic*: two annotators,
    and GPT-4 with its two orders already taken together.
    """
    rows = []
    for question in range(questions):
        quality = dict(zip(MODELS, QUALITY + rng.normal(0, 0.4, len(MODELS)), strict=True))
        for pair in combinations(MODELS, 2):
            first, second = pair if rng.random() < 0.5 else pair[::-1]
            chance = 1 / (1 + np.exp(quality[second] - quality[first]))
            for judge in ("expert_1", "expert_2", "gpt4_pair"):
                won = "model_a" if rng.random() < chance else "model_b"
                if rng.random() < 0.2:
                    won = "tie (inconsistent)" if judge == "gpt4_pair" else "tie"
                said = {"winner": won, "judge": judge, "turn": 1, "question_id": 81 + question}
                both: dict[str, object] = {"model_a": first, "model_b": second}
                for side, model in (("a", first), ("b", second)):
                    texts = {"user": "Question", "assistant": f"{MODELS.index(model)}:"}
                    told = [
                        {"role": key, "content": f"{text} {question}"}
                        for key, text in texts.items()
                    ]
                    both[f"conversation_{side}"] = told
                rows.append({**said, **both})
    return rows


def test_votes_are_checked_and_rank_the_models(tmp_path: Path, rng: np.random.Generator) -> None:
    rows = votes(rng, 80)
    path = tmp_path / "votes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    table = read(path)
    found = check(
        table, categories=["a", "tie", "b"], level="ordinal", sides=["a", "b"], resamples=200
    )
    results = found.results
    # The judge's vote of a unit, again from the rows as they are.
    frame = pd.DataFrame(rows)
    own = frame[frame["judge"] == "gpt4_pair"]
    worth = own["winner"].map({"model_a": 1.0, "model_b": 0.0}).fillna(0.5)
    for model in MODELS:
        won = [worth[own["model_a"] == model], 1 - worth[own["model_b"] == model]]
        score = pd.concat(won).mean()
        rate = row(results, "win_rate", "gpt4_pair", at=model)
        assert rate["estimate"] == pytest.approx(score)
        assert rate["n_clusters"] == 80
    strengths = [row(results, "strength", "humans", at=each)["estimate"] for each in MODELS]
    assert np.argsort(strengths).tolist() == np.argsort(QUALITY).tolist()
    assert [each["grader"] for each in found.verdicts] == ["gpt4_pair"]


def test_votes_become_a_study(here: Path, rng: np.random.Generator) -> None:
    """A file of the judge's votes is rated by people, here those whose votes are published."""
    rows = votes(rng, 40)
    judged = [each | {"winner": each["winner"].partition(" ")[0]} for each in rows[2::3]]
    Path("judged.jsonl").write_text("\n".join(map(json.dumps, judged)))
    words = ["--sample", str(len(judged)), "--judge", "winner"]
    assert main(["new", "study", "--items", "judged.jsonl", *words]) == 0
    with open_study(here / "study") as study:
        (rubric,) = study.rubrics.values()
        assert [block.kind for block in rubric.blocks] == ["conversation"]
        assert study.config.analysis.cluster == "question_id"
        units = study.units().query("side == ''")
        units = units.sort_values("unit_id")["unit_id"].tolist()
    key = {"model_a": "A", "model_b": "B", "tie": "tie"}
    said = [
        {"unit_id": unit, "rubric": rubric.name, "rater_id": each["judge"], "rater_kind": "human",
         "label": key[each["winner"]]}
        for at, unit in enumerate(units) for each in rows[3 * at : 3 * at + 2]
    ]  # fmt: skip
    pd.DataFrame(said).to_csv("people.csv", index=False)
    assert main(["import", "study", "people.csv"]) == 0
    results = results_of(here / "study")
    best = row(results, "win_rate", "humans", at="gpt-4")
    assert best["low"] > 0.6
    assert list(verdicts_of(here / "study")) == ["winner"]
    page = (here / "study" / "report" / "report.md").read_text("utf-8")
    assert "Annotators prefer gpt-4 most: its win rate is" in page


PUBLISHED = {"claude-v1": (19, 60, 0, 1), "gpt-3.5-turbo": (37, 40, 1, 2), "gpt-4": (52, 24, 4, 0)}
"""Of 80 comparisons in both orders, how often the judge was consistent, favoured the first, the
second, or gave no verdict: Zheng et al. (2023), Table 2, default prompt, where they are shares."""


def test_the_published_position_bias_of_three_judges(tmp_path: Path) -> None:
    rows = []
    label = {"model_1": "a", "model_2": "b", "error": ""}
    for judge, (consistent, first, second, failed) in PUBLISHED.items():
        outcomes = (
            *[("model_1", "model_1"), ("model_2", "model_2")] * consistent,
            *[("model_1", "model_2")] * first,
            *[("model_2", "model_1")] * second,
            *[("error", "error")] * failed,
        )
        outcomes = outcomes[consistent:]  # the first were two for one
        for question, (g1, g2) in enumerate(outcomes):
            vote = {"unit_id": f"q{question}", "rater_id": judge, "rater_kind": "model"}
            rows += [vote | {"order": "ab", "label": label[g1]}]
            rows += [vote | {"order": "ba", "label": label[g2]}]
    path = tmp_path / "votes.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    found = check(read(path), categories=["a", "tie", "b"], sides=["a", "b"], resamples=200)
    results = found.results
    for judge, (consistent, first, second, failed) in PUBLISHED.items():
        answered = 80 - failed
        flips = row(results, "bias_order_flips", judge)
        assert flips["n_units"] == answered
        assert flips["estimate"] == pytest.approx(1 - consistent / answered)
        share = row(results, "bias_order_first", judge)["estimate"]
        assert share == pytest.approx(first / (first + second))
        gain = row(results, "bias_order", judge)
        assert gain["estimate"] == pytest.approx((first - second) / answered)
        assert gain["low"] > 0.1
    strongest = row(results, "bias_order", "claude-v1")
    assert strongest["low"] > row(results, "bias_order", "gpt-4")["high"]
