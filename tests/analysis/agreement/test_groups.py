"""Published examples of many raters, and other libraries on random labels with gaps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.groups import group_panel, groups
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.scale import Scale

# Fleiss (1971), Psychological Bulletin 76:378-382: 30 patients, 6 psychiatrists, 5 diagnoses.
FLEISS = """
0 0 0 6 0|0 3 0 0 3|0 1 4 0 1|0 0 0 0 6|0 3 0 3 0|2 0 4 0 0|0 0 4 0 2|2 0 3 1 0|2 0 0 4 0|0 0 0 0 6
1 0 0 5 0|1 1 0 4 0|0 3 3 0 0|1 0 0 5 0|0 2 0 3 1|0 0 5 0 1|3 0 0 1 2|5 1 0 0 0|0 2 0 4 0|1 0 2 0 3
0 0 0 0 6|0 1 0 5 0|0 2 0 1 3|2 0 0 4 0|1 0 0 4 1|0 5 0 1 0|4 0 0 0 2|0 2 0 4 0|1 0 5 0 0|0 0 0 0 6
"""
# Krippendorff (2011), example C: four raters, twelve units, "-" missing. Gwet (2014), p. 120, has
# the same labels as raw4raters (but for the order of the units).
KRIPPENDORFF = {"a": "123321412---", "b": "1233224125--", "c": "-33323422513", "d": "12332441251-"}
FIVE = ("1", "2", "3", "4", "5")


def _panel(matrix, members=None):
    coded = matrix.on_categories()
    resamples = Resamples(np.ones(matrix.n_clusters), 3, np.random.default_rng(1))
    counts = label_counts(coded, members or range(len(coded.raters)))
    return {name: values[0] for name, values in group_panel(counts, coded, resamples).items()}


def test_fleiss_1971(make_matrix: Callable) -> None:
    counts = [
        [int(n) for n in cell.split()] for cell in FLEISS.strip().replace("\n", "|").split("|")
    ]
    labels = [[str(k + 1) for k in range(5) for _ in range(row[k])] for row in counts]
    raters = {f"r{j}": [row[j] for row in labels] for j in range(6)}
    panel = _panel(make_matrix(raters, Scale("", FIVE)))
    assert panel["observed_agreement"] == pytest.approx(0.5555555556)
    assert panel["fleiss_kappa"] == pytest.approx(0.4302445201)


def test_krippendorff_2011_example_c(make_matrix: Callable) -> None:
    panel = _panel(make_matrix(KRIPPENDORFF, Scale("", FIVE, "interval")))
    assert panel["krippendorff_alpha_nominal"] == pytest.approx(0.743421052632)
    assert panel["krippendorff_alpha_ordinal"] == pytest.approx(0.815387503755)
    assert panel["krippendorff_alpha_interval"] == pytest.approx(0.849107142857)


def test_gwet_2014_raw4raters(make_matrix: Callable) -> None:
    """Unequal numbers of raters, and a unit with one label that counts towards the shares only."""
    panel = _panel(make_matrix(KRIPPENDORFF, Scale("", FIVE, "ordinal")))
    assert panel["fleiss_kappa"] == pytest.approx(0.7611692754)
    assert panel["gwet_ac1"] == pytest.approx(0.7754440681)
    assert panel["gwet_ac2"] == pytest.approx(0.9140007236)
    assert panel["brennan_prediger"] == pytest.approx(0.7727272727)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_alpha_is_that_of_the_krippendorff_package(
    make_matrix: Callable, noisy: Callable, rng: np.random.Generator, missing: float
) -> None:
    import krippendorff

    truth = rng.integers(0, 4, 80)
    raters = {name: noisy(rng, truth, 4, keep=0.6, missing=missing) for name in "abcde"}
    values = [[np.nan if x == "-" else float(x) for x in given] for given in raters.values()]
    panel = _panel(make_matrix(raters, Scale("", FIVE[:4], "interval")))
    for level in ("nominal", "ordinal", "interval"):
        theirs = krippendorff.alpha(
            reliability_data=values, level_of_measurement=level, value_domain=[1, 2, 3, 4]
        )
        assert panel[f"krippendorff_alpha_{level}"] == pytest.approx(theirs)


def test_fleiss_is_that_of_statsmodels(
    make_matrix: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    truth = rng.integers(0, 3, 60)
    raters = {name: noisy(rng, truth, 3, keep=0.5) for name in "abcd"}
    table, _ = aggregate_raters(np.array([list(map(int, given)) for given in raters.values()]).T)
    panel = _panel(make_matrix(raters, Scale("", FIVE[:3])))
    assert panel["fleiss_kappa"] == pytest.approx(fleiss_kappa(table, method="fleiss"))


def test_adjudicators_belong_to_no_group(make_matrix: Callable) -> None:
    from dataclasses import replace

    matrix = make_matrix({"ann": "112", "ben": "122", "chair": "112"}, Scale("", ("1", "2")))
    coded = replace(matrix.on_categories(), kinds=("human", "human", "adjudicator"))
    assert groups(coded) == {"humans": (0, 1), "all": (0, 1)}
