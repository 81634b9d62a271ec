"""Lists, arrays and Series are the same to the public functions, and to a type checker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from evenhand import analysis
from evenhand.analysis import Bootstrap, cohen_kappa, ppi_plus_plus, rogan_gladen, tune_threshold

FIRST, SECOND = list("yynnynyn") * 5, list("yynnnnyy") * 5
CLUSTERS = [f"c{unit // 4}" for unit in range(len(FIRST))]
FEW = Bootstrap(resamples=40)
FRAME = pd.DataFrame({"first": FIRST, "second": SECOND}, index=range(40, 0, -1))


def test_names_of_clusters_and_categories() -> None:
    told = cohen_kappa(FIRST, SECOND, categories="yn", clusters=CLUSTERS, bootstrap=FEW)
    array, series = np.array(CLUSTERS), pd.Series(CLUSTERS, index=FRAME.index)
    names = pd.Series(["y", "n"], index=[7, 3])
    for found in (
        cohen_kappa(FIRST, SECOND, categories=np.array(["y", "n"]), clusters=array, bootstrap=FEW),
        cohen_kappa(FIRST, SECOND, categories=names, clusters=series, bootstrap=FEW),
        cohen_kappa(FIRST, SECOND, categories=pd.Index(["y", "n"]), clusters=series, bootstrap=FEW),
        cohen_kappa(FIRST, SECOND, categories=pd.unique(names), clusters=array, bootstrap=FEW),
    ):
        assert found == told
    ceilings = [
        analysis.human_ceiling(FRAME, FIRST, categories=names, clusters=each, bootstrap=FEW).low
        for each in (CLUSTERS, array, series)
    ]
    assert len(set(ceilings)) == 1
    assert list(analysis.specific_agreement(FRAME, categories=names, bootstrap=FEW)) == ["y", "n"]
    plain = analysis.majority(list(zip(FIRST, SECOND, strict=True)), categories=["y", "n"])
    assert analysis.majority(FRAME, categories=names).labels == plain.labels


def test_verdicts_and_probabilities() -> None:
    people, grader, rest = [1, 1, 0, 0, 1, 0] * 9, [1, 0, 0, 0, 1, 1] * 9, [1, 0] * 20
    told = rogan_gladen(people, grader, rest, bootstrap=FEW)
    columns = [pd.Series(each, index=range(len(each), 0, -1)) for each in (people, grader, rest)]
    assert rogan_gladen(*columns, bootstrap=FEW) == told
    assert rogan_gladen(np.array(people), columns[1], rest, bootstrap=FEW) == told
    weighed = ppi_plus_plus(people, grader, rest, method="normal")
    assert ppi_plus_plus(*columns, method="normal").low == pytest.approx(weighed.low)
    positive = [0.1, 0.2, 0.35, 0.6, 0.3, 0.4, 0.7, 0.9] * 5
    reference = np.array(positive) > 0.25
    first = tune_threshold(positive, list(reference), bootstrap=FEW)
    assert tune_threshold(np.array(positive), pd.Series(reference), bootstrap=FEW) == first
    scores = analysis.score_probabilities(positive, reference.astype(int).tolist())
    assert analysis.score_probabilities(pd.Series(positive), reference) == scores


@pytest.mark.thorough
def test_a_type_checker_takes_them_and_refuses_what_has_no_order() -> None:
    """Strictly, so that what is refused below has to be refused."""
    from mypy import api

    said, broken, _ = api.run([str(Path(__file__).resolve()), "--no-error-summary"])
    assert (said, broken) == ("", "")


if TYPE_CHECKING:
    cohen_kappa(FIRST, SECOND, categories={"y", "n"})  # type: ignore[arg-type]
    cohen_kappa(FIRST, SECOND, categories="yn", clusters=3)  # type: ignore[arg-type]
    rogan_gladen(FIRST, [1], [0])  # type: ignore[arg-type]
