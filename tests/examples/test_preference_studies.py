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
from harness.studies import with_labels

pytestmark = pytest.mark.slow


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
    frame = pd.DataFrame(rows)
    own = frame[frame["judge"] == "gpt4_pair"]
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
    best = row(results, "win_rate", "humans", at="gpt-4")
    assert best["low"] > 0.6
    assert list(verdicts) == ["winner"]
    page = (here / "study" / "report" / "report.md").read_text("utf-8")
    assert "Annotators prefer gpt-4 most: its win rate is" in page


PUBLISHED = {"claude-v1": (19, 60, 0, 1), "gpt-3.5-turbo": (37, 40, 1, 2), "gpt-4": (52, 24, 4, 0)}
"""Of 80 comparisons in both orders, how often the judge was consistent, favoured the first, the
second, or gave no verdict: Zheng et al. (2023), Table 2, default prompt, where they are shares."""


def test_the_published_position_bias_of_three_judges(tmp_path: Path) -> None:
    """In the form in which FastChat writes a judge's votes in both orders."""
    rows = []
    for judge, (consistent, first, second, failed) in PUBLISHED.items():
        outcomes = (
            *[("model_1", "model_1"), ("model_2", "model_2")] * consistent,
            *[("model_1", "model_2")] * first,
            *[("model_2", "model_1")] * second,
            *[("error", "error")] * failed,
        )
        outcomes = outcomes[consistent:]  # the first were two for one
        for question, (g1, g2) in enumerate(outcomes):
            models = {"model_1": "llama-13b", "model_2": "vicuna-13b"}
            said = {"question_id": question, "turn": 1, "g1_winner": g1, "g2_winner": g2}
            rows.append({"judge": [judge, "pair-v2"], **models, **said})
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
