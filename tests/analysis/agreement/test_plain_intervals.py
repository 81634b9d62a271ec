"""The functions on plain labels: their intervals are those of the panel, over clusters or units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand.analysis as a
from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.groups import group_panel
from evenhand.analysis.agreement.pairs import pair_statistics, pair_tables
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.shares import share_interval
from evenhand.errors import InputError


@pytest.fixture
def clustered(make_matrix: Callable, noisy: Callable, rng: np.random.Generator):
    """Three raters with gaps on 300 units, five to a cluster, on four ordered categories."""
    truth = rng.integers(0, 4, 300)
    labels = {name: noisy(rng, truth, 4, 0.6, missing=0.1) for name in "abc"}
    clusters = [f"c{n // 5:03d}" for n in range(300)]
    matrix = make_matrix(labels, a.Scale("", tuple("1234"), "ordinal"), clusters=clusters)
    return matrix.on_categories()


def _plain(coded) -> list[list[str | None]]:
    return [[None if code < 0 else str(code + 1) for code in row] for row in coded.codes]


def test_intervals_are_those_of_the_panel(clustered) -> None:
    """The same clusters drawn in the same order give the same bounds, to the last digit or two."""
    resamples = Resamples(np.ones(60), 400, np.random.default_rng(7))
    panel = group_panel(label_counts(clustered, [0, 1, 2]), clustered, resamples)
    labels = _plain(clustered)
    how: dict[str, Any] = {
        "categories": "1234",
        "clusters": clustered.clusters.tolist(),
        "bootstrap": a.Bootstrap(resamples=400, seed=7),
    }
    found = {
        "observed_agreement": a.observed_agreement(labels, **how),
        "fleiss_kappa": a.fleiss_kappa(labels, **how),
        "gwet_ac1": a.gwet_ac1(labels, **how),
        "gwet_ac2": a.gwet_ac2(labels, **how),
        "brennan_prediger": a.brennan_prediger(labels, **how),
        "krippendorff_alpha_ordinal": a.krippendorff_alpha(labels, level="ordinal", **how),
        "krippendorff_alpha_nominal": a.krippendorff_alpha(labels, level="nominal", **how),
    }
    expected = {name: resamples.interval(panel[name], 60) for name in found}
    share, several = panel["observed_agreement"], (label_counts(clustered, [0, 1, 2]).sum(1) >= 2)
    expected["observed_agreement"] = share_interval(
        expected["observed_agreement"], share[1:], int(several.sum()), 60
    )
    tables = pair_tables(clustered, [(0, 1)], resamples)
    pair = pair_statistics(clustered)
    first, second, _ = zip(*labels, strict=True)
    for name, weights in (("cohen_kappa", "identity"), ("weighted_kappa_linear", "linear")):
        found[name] = a.cohen_kappa(first, second, weights=weights, **how)
        expected[name] = resamples.interval(pair[name](tables)[:, 0], 60)
    found["scott_pi"] = a.scott_pi(first, second, **how)
    expected["scott_pi"] = resamples.interval(pair["scott_pi"](tables)[:, 0], 60)
    for name, each in found.items():
        bounds = (expected[name].estimate, expected[name].low, expected[name].high)
        assert (each.estimate, each.low, each.high) == pytest.approx(bounds, abs=1e-12), name
        assert each.low < each.estimate < each.high
        assert (each.n_clusters, each.reason) == (60, "")


def test_without_clusters_units_are_drawn(clustered) -> None:
    """Like units are folded into one; drawn one by one the interval is the same but for chance."""
    labels = _plain(clustered)
    first, second, _ = zip(*labels, strict=True)
    single = list(range(300))
    for function, given_labels in (
        (a.cohen_kappa, (first, second)),
        (a.scott_pi, (first, second)),
        (a.fleiss_kappa, (labels,)),
        (a.gwet_ac2, (labels,)),
    ):
        folded = function(*given_labels, categories="1234")
        drawn = function(*given_labels, categories="1234", clusters=single)
        assert folded.estimate == pytest.approx(drawn.estimate)
        assert (folded.low, folded.high) == pytest.approx((drawn.low, drawn.high), abs=0.02)
        assert (folded.n, folded.n_clusters) == (drawn.n, drawn.n_clusters) == (folded.n,) * 2
        assert folded.se == pytest.approx(drawn.se)
        # On independent units the bootstrap's width is that of the large-sample error.
        assert folded.high - folded.low == pytest.approx(2 * 1.96 * folded.se, rel=0.15)


def test_categories_have_intervals_of_their_own(clustered) -> None:
    labels = _plain(clustered)
    clusters = clustered.clusters.tolist()
    found = a.specific_agreement(labels, categories="12345", clusters=clusters)
    for category in "1234":
        each = found[category]
        several = [row for row in labels if sum(x is not None for x in row) > 1]
        assert each.n == sum(category in row for row in several)
        assert each.low < each.estimate < each.high
    assert (found["5"].n, found["5"].reason) == (0, "category_not_used")


def test_what_an_interval_needs(clustered) -> None:
    labels = _plain(clustered)
    few = a.fleiss_kappa(labels, categories="1234", clusters=[n // 100 for n in range(300)])
    assert (few.n_clusters, few.reason) == (3, "too_few_clusters")
    assert not math.isnan(few.estimate)
    alone = a.fleiss_kappa(labels, categories="1234", bootstrap=a.Bootstrap(resamples=0))
    assert (alone.reason, alone.estimate) == ("not_resampled", pytest.approx(few.estimate))
    moved = a.fleiss_kappa(labels, categories="1234", bootstrap=a.Bootstrap(method="bca"))
    plain = a.fleiss_kappa(labels, categories="1234")
    assert (moved.low, moved.high) != (plain.low, plain.high)
    assert (moved.low, moved.high) == pytest.approx((plain.low, plain.high), abs=0.05)
    with pytest.raises(InputError, match="a cluster for each of the 300 units"):
        a.fleiss_kappa(labels, categories="1234", clusters=[1, 2])
    with pytest.raises(InputError, match="2 and 3 units"):
        a.cohen_kappa("ab", "aba", categories="ab")


def test_an_array_of_codes_needs_no_look_up(clustered) -> None:
    """What is recognised as codes, and what is not, means the same."""
    codes = np.abs(clustered.codes)
    expected = a.fleiss_kappa(codes.tolist(), categories=range(4))
    for labels, categories in (
        (codes, range(4)),
        (codes + 1, [1, 2, 3, 4]),
        (codes.astype(np.uint16), [0, 1, 2, 3]),
        (codes.astype(float), [0, 1, 2, 3]),
        (pd.DataFrame(codes), [0, 1, 2, 3]),
    ):
        assert a.fleiss_kappa(labels, categories=categories) == expected
    with pytest.raises(InputError, match=r"row 0, column 1 \(from 0\): -1 is none of the"):
        a.fleiss_kappa(np.array([[0, -1]]), categories=range(4))


def test_perfect_agreement_is_known_as_far_as_its_units_reach() -> None:
    """60 units without a disagreement, half of each category: 6% might differ."""
    labels = [0, 1] * 30
    share = 1 - 0.025 ** (1 / 60)
    pair = [labels, labels]
    for found, by_chance in (
        (a.cohen_kappa(*pair, categories=[0, 1]), 0.5),
        (a.scott_pi(*pair, categories=[0, 1]), 0.5),
        (a.fleiss_kappa(np.transpose(pair), categories=[0, 1]), 0.5),
        (a.gwet_ac1(np.transpose(pair), categories=[0, 1]), 0.5),
        (a.brennan_prediger(np.transpose(pair), categories=[0, 1]), 0.5),
        (a.krippendorff_alpha(np.transpose(pair), categories=[0, 1], level="ordinal"), 0.5),
        (a.observed_agreement(np.transpose(pair), categories=[0, 1]), 1.0),
        (a.specific_agreement(np.transpose(pair), categories=[0, 1])[1], None),
    ):
        assert (found.estimate, found.high) == (1.0, 1.0)
        # Half of the units have the category: their own number counts.
        expected = 0.025 ** (1 / 30) if by_chance is None else 1 - share / by_chance
        assert found.low == pytest.approx(expected)
    # Weighted kappa by its own weights: of three steps, the middle one is never used.
    found = a.cohen_kappa(*pair, categories=[0, 0.5, 1], weights="quadratic")
    assert found.low == pytest.approx(1 - share / 0.5)
