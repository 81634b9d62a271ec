"""The verdicts of benchmarks/results/real-data.md are those that evenhand gives on these data."""

from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from benchmarks.documents import RESULTS
from evenhand.reporting.library import Check

pytestmark = pytest.mark.slow

PAGE = (RESULTS / "real-data.md").read_text("utf-8")
TITLES = {"may stand in": "can_replace", "cannot tell": "inconclusive", "do not use": "do_not_use"}
QUICK = 10  # resamples, which no bound of a verdict uses


def _table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading of the page, without its header."""
    lines = PAGE.split(f"### {heading}\n")[1].split("\n### ")[0].splitlines()
    rows = [line for line in lines if line.startswith("|")][2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def _read(shared_data: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(shared_data / "real" / f"{name}.csv", dtype=str, keep_default_na=False)


def _beside(ratings: pd.DataFrame, people: list[str], graders: list[str]) -> pd.DataFrame:
    """These raters' labels, some of them taken for graders."""
    own = ratings[ratings["rater_id"].isin([*people, *graders])]
    return own.assign(rater_kind=own["rater_id"].isin(graders).map({True: "model", False: "human"}))


def _shown(check: Check, grader: str) -> tuple[str, str, str]:
    """Of a grader: annotators' kappa, the difference, and the verdict, as the page writes them."""

    def figure(number: float) -> str:
        return f"{number:.3f}".replace("0.", ".", 1)

    rows = check.results.query("rater_b == @grader and subset == 'all' and at == ''")
    own = rows.set_index("statistic")[["estimate", "low", "high"]]
    kappa, apart = (own.loc[name].map(figure) for name in ("people_kappa", "non_inferiority"))
    (verdict,) = (each["verdict"] for each in check.verdicts if each["grader"] == grader)
    difference = f"{apart.iloc[0]} [{apart.iloc[1]}, {apart.iloc[2]}]"
    return f"{kappa.iloc[0]} [{kappa.iloc[1]}]", difference, verdict


@pytest.mark.parametrize("size", [pytest.param("four", marks=pytest.mark.thorough), "nine"])
def test_dices(shared_data: Path, size: str) -> None:
    ratings = _read(shared_data, "dices350")
    table = _table(f"DICES, panels of {size}")

    @cache
    def check(people: str, graders: tuple[str, ...]) -> Check:
        labels = _beside(ratings, people.split(", "), list(graders))
        return eh.check(labels, categories=["Yes", "No", "Unsure"], resamples=QUICK)

    for people, grader, kappa, apart, _, now, _ in table:
        found = _shown(check(people, tuple(row[1] for row in table if row[0] == people)), grader)
        assert found == (kappa, apart, TITLES[now]), (people, grader)


def test_newsroom(shared_data: Path) -> None:
    ratings = _read(shared_data, "newsroom")
    raters = sorted(set(ratings["rater_id"]))
    for units, grader, kappa, apart, _, now, _ in _table("Newsroom"):
        own = ratings[(ratings["slice"] == units) | (units == "all")]
        labels = _beside(own, [each for each in raters if each != grader], [grader])
        check = eh.check(labels, level="ordinal", categories=list("12345"), resamples=QUICK)
        assert _shown(check, grader) == (kappa, apart, TITLES[now]), (units, grader)


@pytest.mark.parametrize("orders", ["both orders", "order ab"])
def test_llmbar(shared_data: Path, orders: str) -> None:
    ratings = _read(shared_data, "llmbar")
    if orders == "order ab":
        ratings = ratings[ratings["order"].isin(["", "ab"])]
    check = eh.check(ratings, categories=["1", "2"], resamples=QUICK)
    table = _table("LLMBar")
    now = 3 if orders == "both orders" else 5
    verdicts = {each["grader"]: each["verdict"] for each in check.verdicts}
    assert verdicts == {row[0]: TITLES[row[now]] for row in table}
    if orders == "both orders":
        rows = check.results.query("statistic == 'coverage' and rater_a == '' and subset == 'all'")
        answered = rows.set_index("rater_b")["estimate"]
        assert [row[1] for row in table] == [f"{answered[row[0]]:.0%}" for row in table]
