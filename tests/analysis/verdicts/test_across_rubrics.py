"""The error of a wrong pass over several rubrics: Holm's procedure, on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, analyse
from evenhand.analysis.bootstrap.influence import ALPHA, level_of_look
from evenhand.analysis.bootstrap.significance import holm
from evenhand.analysis.one_rubric import judge_across_rubrics
from evenhand.analysis.report.sections import methods
from evenhand.analysis.report.sections.methods import methods_text
from evenhand.analysis.report.source import ReportContext, Source
from evenhand.analysis.results import ResultRow
from evenhand.analysis.verdicts.evidence import NON_INFERIORITY
from tests.analysis.make import noisy, people_of, ratings_of


@dataclass
class OfGraders:
    """A rubric whose graders pass where their p is at most the error; stands in for an analysis."""

    p: Sequence[float]
    error: float = ALPHA
    judging: bool = True
    verdicts: list[dict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.verdicts = [{"grader": str(n), "sentence": ""} for n in range(len(self.p))]

    def judge(self, error: float) -> None:
        self.error = error

    @property
    def passing(self) -> set[str]:
        return {str(n) for n, p in enumerate(self.p) if p <= self.error}


def test_with_one_grader_each_it_is_holm_s_procedure(rng):
    for _ in range(300):
        p = rng.beta(0.4, 8.0, rng.integers(2, 7))
        found = [OfGraders([each]) for each in p]
        judge_across_rubrics(found)
        assert [bool(each.passing) for each in found] == (holm(p) <= ALPHA).tolist()


def by_closed_testing(p: Sequence[Sequence[float]]) -> list[set[str]]:
    """What is rejected where every intersection of hypotheses is tested by Bonferroni over the
    rubrics in it, each by its smallest p (Marcus, Peritz & Gabriel 1976).
    """
    names = [(rubric, n) for rubric, own in enumerate(p) for n in range(len(own))]
    kept: set[tuple[int, int]] = set()
    for chosen in product([False, True], repeat=len(names)):
        inside = [name for name, is_in in zip(names, chosen, strict=True) if is_in]
        rubrics = {rubric for rubric, _ in inside}
        if inside and min(p[r][n] for r, n in inside) > ALPHA / len(rubrics):
            kept |= set(inside)
    return [{str(n) for n in range(len(own)) if (r, n) not in kept} for r, own in enumerate(p)]


def test_with_several_graders_nothing_passes_that_a_closed_test_keeps(rng):
    """Bounds hold for all graders of a rubric at once, so each p counts once for a rubric."""
    for _ in range(150):
        p = [rng.beta(0.3, 8.0, rng.integers(1, 3)) for _ in range(rng.integers(2, 5))]
        found = [OfGraders(each) for each in p]
        judge_across_rubrics(found)
        assert all(
            own.passing <= closed for own, closed in zip(found, by_closed_testing(p), strict=True)
        )


SCALES = [Scale(name, ("1", "2")) for name in ("clear", "close", "poor")]


@pytest.fixture
def ratings(rng: np.random.Generator) -> pd.DataFrame:
    """Three rubrics on which the grader is clearly good, nearly as good, and useless."""

    def of(scale: Scale, units: int, keep: float) -> pd.DataFrame:
        truth = rng.integers(0, 2, units)
        labels = people_of(rng, truth, 0.9)
        labels["g"] = noisy(rng, truth, 2, keep)
        return ratings_of(labels).assign(rubric=scale.name)

    sizes = ((600, 0.97), (300, 0.9), (200, 0.3))
    return pd.concat([of(scale, *size) for scale, size in zip(SCALES, sizes, strict=True)])


def judged(ratings: pd.DataFrame, names: str, **more: object) -> Analysis:
    scales = [each for each in SCALES if each.name in names.split()]
    own = ratings[ratings["rubric"].isin(names.split())]
    return analyse(own, None, scales, resamples=50, **more)


def deciding(found: Analysis) -> Mapping[str, ResultRow]:
    return {row["rubric"]: row for row in found.rows if row["statistic"] == NON_INFERIORITY}


def verdicts(found: Analysis) -> dict[str, str]:
    return {each["rubric"]: each["verdict"] for each in found.verdicts}


@pytest.mark.slow
def test_rubrics_that_do_not_survive_are_inconclusive(ratings):
    alone = deciding(judged(ratings, "close"))["close"]
    neither = judged(ratings, "close poor", across_rubrics="holm", margin=0.001)
    half = deciding(neither)["close"]
    assert half["deciding"].alpha == level_of_look(1, 0, ALPHA / 2)
    margin = -(alone["low"] + half["low"]) / 2
    assert half["low"] < -margin < alone["low"], "it passes at one level and not at the other"

    plain = judged(ratings, "clear close poor", margin=margin)
    assert verdicts(plain)["close"] == "may_stand_in"
    assert {row["deciding"].alpha for row in deciding(plain).values()} == {level_of_look(1)}

    # The clear one passes at half of the error, so that the close one has it whole.
    both = judged(ratings, "clear close", margin=margin, across_rubrics="holm")
    assert verdicts(both) == {"clear": "may_stand_in", "close": "may_stand_in"}
    assert deciding(both)["close"]["low"] == alone["low"]

    # The poor one does not pass, so that two count once the clear one has passed at a third.
    every = judged(ratings, "clear close poor", margin=margin, across_rubrics="holm")
    assert verdicts(every)["clear"] == "may_stand_in"
    assert verdicts(every)["close"] == "cannot_tell"
    row, sentence = deciding(every)["close"], every.verdicts[1]["sentence"]
    assert (row["low"], row["deciding"].alpha) == (half["low"], half["deciding"].alpha)
    assert "98.8% CI" in sentence
    assert "At the level of one rubric it would pass. Over 3 rubrics together (Holm)" in sentence
    assert "(Holm)" not in every.verdicts[0]["sentence"] + every.verdicts[2]["sentence"]
    keys = ["rubric", "statistic", "rater_a", "rater_b", "subset", "at"]
    order = every.results[keys].merge(plain.results[keys].reset_index(), on=keys)["index"]
    assert order.is_monotonic_increasing, "rows stay in their places"


@pytest.mark.slow
def test_a_verdict_against_a_reference_is_held_to_it_too(ratings):
    bars = {"reference": "h0", "reference_kappa": 0.99}
    found = judged(ratings, "close poor", across_rubrics="holm", **bars)
    levels = {
        row["rubric"]: row["deciding"].alpha
        for row in found.rows
        if row["statistic"] == "reference_kappa"
    }
    assert set(levels.values()) == {level_of_look(1, 0, ALPHA / 2)}


def test_one_rubric_is_judged_as_without(ratings):
    found = judged(ratings, "close", across_rubrics="holm")
    assert deciding(found)["close"]["deciding"].alpha == level_of_look(1)
    assert "error held over all rubrics together (Holm)" in found.rule


@pytest.mark.parametrize(
    ("across", "said", "cited"),
    [
        ("none", "at most 2.5% for each rubric", "a family-wise error of 2.5% for each rubric"),
        (
            "holm",
            "at most 2.5% for all rubrics together",
            "a family-wise error of 2.5% over rubrics by Holm's procedure (Holm 1979)",
        ),
    ],
)
def test_methods_say_what_the_level_is_of(ratings, across, said, cited):
    found = judged(ratings, "close", across_rubrics=across)
    source = Source.of(found, ReportContext("study"))
    paragraph, about = methods_text(source), " ".join(methods.section(source).about)
    assert said in about
    assert "flat prior" in about
    assert cited in paragraph.text
    assert "assume a flat prior" in paragraph.text
    assert ("holm1979" in paragraph.bibtex) == (across == "holm")
