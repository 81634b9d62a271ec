"""The grader's side less people's, scaled: against plain loops over the units."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis.bias.shift import NOT_SCALED, BesidePeople, Calls
from evenhand.analysis.bootstrap.resamples import Resamples


def _calls(values: np.ndarray) -> Calls:
    n, raters = values.shape
    return Calls(
        raters=tuple(f"r{k}" for k in range(raters)),
        kinds=("human",) * (raters - 1) + ("model",),
        values=values,
        clusters=np.arange(n),
        subjects=(),
        subject=np.full(n, -1),
        unit=np.arange(n),
        subset="all",
    )


def _plain(values: np.ndarray) -> float:
    """The level by the definition, unit by unit."""
    people, grader = values[:, :-1], values[:, -1]
    units = [u for u in range(len(values)) if not np.isnan(grader[u]) and (people[u] >= 0).any()]
    person = {u: np.nanmean(people[u]) for u in units}
    twice = [u for u in units if (~np.isnan(people[u])).sum() >= 2]
    both = []
    for u in twice:
        own = people[u][~np.isnan(people[u])]
        products = [own[i] * own[j] for i in range(len(own)) for j in range(len(own)) if i != j]
        both.append(np.mean(products))
    mean_p = np.mean([person[u] for u in twice])
    mean_g = np.mean([grader[u] for u in twice])
    with_person = np.mean([grader[u] * person[u] for u in twice]) - mean_g * mean_p
    r = with_person / (np.mean(both) - mean_p**2)
    return float(np.mean(grader[units]) - r * np.mean([person[u] for u in units]))


def test_the_level_is_the_definition(rng: np.random.Generator) -> None:
    truth = rng.random(90) < 0.4
    values = np.where(rng.random((90, 4)) < 0.8, truth[:, None], rng.random((90, 4)) < 0.5)
    values = values.astype(float)
    values[rng.random((90, 4)) < 0.2] = np.nan
    beside = BesidePeople(_calls(values), 3, Resamples(np.ones(90), 50, rng))
    assert beside.level()[0] == pytest.approx(_plain(values))
    assert beside.note == ""


def test_with_one_person_nothing_is_scaled(rng: np.random.Generator) -> None:
    values = (rng.random((60, 2)) < [0.5, 0.7]).astype(float)
    beside = BesidePeople(_calls(values), 1, Resamples(np.ones(60), 20, rng))
    assert beside.note == NOT_SCALED
    assert beside.level()[0] == pytest.approx(values[:, 1].mean() - values[:, 0].mean())


def test_people_who_never_vary_need_no_scale(rng: np.random.Generator) -> None:
    """Nobody favours a side, the grader does: its level stands as it is."""
    values = np.zeros((50, 4))
    values[:10, 3] = 1.0
    beside = BesidePeople(_calls(values), 3, Resamples(np.ones(50), 20, rng))
    assert beside.level()[0] == pytest.approx(0.2)


def test_people_who_agree_by_chance_only_leave_it_open(rng: np.random.Generator) -> None:
    """Two people who always contradict each other: no scale, no figure."""
    one = (np.arange(60) % 2).astype(float)
    values = np.column_stack([one, 1 - one, one])
    values[0, :2] = 1.0
    beside = BesidePeople(_calls(values), 2, Resamples(np.ones(60), 20, rng))
    assert np.isnan(beside.level()[0])
    assert beside.reason == "people_agree_by_chance"
