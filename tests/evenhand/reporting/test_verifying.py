"""The libraries that estimates are held against, loaded beside."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.process import BaseProcess

import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, analyse
from evenhand.analysis.verification import Libraries
from evenhand.reporting.report import libraries_beside


@pytest.fixture
def started() -> Callable[[], list[BaseProcess]]:
    """The processes that the test has started and that are still there."""
    before = multiprocessing.active_children()
    return lambda: [each for each in multiprocessing.active_children() if each not in before]


def _analysed(verify: bool | Libraries) -> Analysis:
    """Two rubrics, each with two readings, so that several answers are waited for in turn."""
    given = {"ann": "yyynnnyy", "ben": "yynnnyyn"}
    rows = [
        {"rubric": name, "unit_id": f"u{n}", "rater_id": who, "rater_kind": "human", "label": label}
        for name, step in (("calm", 1), ("kind", 3))
        for who, labels in given.items()
        for n, label in enumerate((labels * 3)[::step])
    ]
    scales = [Scale(name, ("y", "n"), affirmative=frozenset("y")) for name in ("calm", "kind")]
    return analyse(pd.DataFrame(rows), None, scales, resamples=50, verify=verify)


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_libraries_beside_say_what_they_say_here(started: Callable[[], list[BaseProcess]]) -> None:
    waited: list[str] = []
    with libraries_beside(meanwhile=lambda: waited.append("meanwhile")) as libraries:
        beside = _analysed(libraries).verification
    assert beside == _analysed(True).verification
    assert beside is not None
    assert beside.compared == 20
    assert waited  # to load them takes longer than this analysis
    assert not started()


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_a_process_that_is_killed_costs_time_and_nothing_else(
    started: Callable[[], list[BaseProcess]],
) -> None:
    def kill() -> None:
        for process in started():
            process.kill()

    with libraries_beside(meanwhile=kill) as libraries:
        assert _analysed(libraries).verification == _analysed(True).verification


@pytest.mark.slow
@pytest.mark.usefixtures("two_cores")
def test_an_error_here_leaves_nobody_behind(started: Callable[[], list[BaseProcess]]) -> None:
    def fail() -> None:
        with libraries_beside(meanwhile=lambda: None):
            raise ValueError("of the analysis")

    with pytest.raises(ValueError, match="of the analysis"):
        fail()
    assert not started()


def test_a_single_core_loads_them_itself() -> None:
    with libraries_beside(meanwhile=lambda: None) as libraries:
        assert libraries is True
