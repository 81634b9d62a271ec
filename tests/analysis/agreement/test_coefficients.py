"""The functions on plain labels: published values, and other libraries on random labels.

Their intervals are those of the panel, over clusters or units. Inputs on which libraries disagree,
raise or return nan have one declared answer here.
"""

import math
import warnings

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand.analysis as a
from evenhand.analysis.agreement import coefficients as c
from evenhand.errors import InputError
from tests.analysis.make import analyse_labels, noisy, ratings_of, row_of
from tests.known_values import known_values
from tests.peers import inter_rater, metrics, stats


def _sequences(table):
    """Two raters' labels from a table of counts."""
    both = np.repeat(np.argwhere(np.ones_like(table)), np.rint(table).astype(int).ravel(), axis=0)
    return both[:, 0].tolist(), both[:, 1].tolist()


@pytest.mark.parametrize("name", ["cohen1960_1968", "fleiss_cohen_everitt1969"])
def test_kappa_and_its_standard_errors(name):
    known = known_values(name)
    data = known["data"]
    table = data.get("counts") or 200 * np.array(data["proportions"])
    weights = data.get("agreement_weights")
    if weights is None:
        weights = 1 - np.array(data["disagreement_weights"]) / 6
    for kind, given_weights in (("kappa", "identity"), ("weighted", weights)):
        found = a.cohen_kappa(*_sequences(table), categories=[0, 1, 2], weights=given_weights)
        expected = known["expected"][kind]
        assert found.estimate == pytest.approx(expected["kappa"], abs=known["tolerance"])
        assert found.se == pytest.approx(expected["ase"], abs=known["tolerance"])
        assert found.se_null == pytest.approx(expected["ase0"], abs=known["tolerance"])


@pytest.mark.parametrize("name", ["T1", "T2"])
def test_feinstein_and_cicchetti(name):
    known = known_values("feinstein_cicchetti1990_paradox")
    first, second = _sequences(known["data"][name])
    labels = list(zip(first, second, strict=True))
    expected = known["expected"][name]
    two = {"categories": [0, 1]}
    found = {
        "po": a.observed_agreement(labels, **two),
        "kappa": a.cohen_kappa(first, second, **two),
        "pi": a.scott_pi(first, second, **two),
        "ac1": a.gwet_ac1(labels, **two),
        "pabak": a.brennan_prediger(labels, **two),
        "alpha": a.krippendorff_alpha(labels, level="nominal", **two),
    }
    for statistic, each in found.items():
        assert each.estimate == pytest.approx(expected[statistic], abs=known["tolerance"])
        assert each.n == 100
    for of in (c.prevalence_index, c.bias_index):
        assert of(np.array(known["data"][name])) == pytest.approx(expected[of.__name__])


def test_fleiss_1971():
    known = known_values("fleiss1971")
    labels, expected = known["data"]["raw_items_x_raters"], known["expected"]
    scale = {"categories": known["data"]["levels"]}
    assert a.fleiss_kappa(labels, **scale).estimate == pytest.approx(expected["fleiss"])
    for name in ("gwet_ac1", "brennan_prediger"):
        assert getattr(a, name)(labels, **scale).estimate == pytest.approx(expected[name])
    alpha = a.krippendorff_alpha(labels, level="nominal", **scale)
    assert alpha.estimate == pytest.approx(expected["krippendorff_alpha_nominal"])
    columns = list(zip(*labels, strict=True))
    pairs = [(x, y) for k, x in enumerate(columns) for y in columns[k + 1 :]]
    light = np.mean([a.cohen_kappa(x, y, **scale).estimate for x, y in pairs])
    assert light == pytest.approx(expected["light"])
    for level, kappa in zip(scale["categories"], expected["category_kappa"], strict=True):
        alone = [[label == level for label in row] for row in labels]
        assert a.fleiss_kappa(alone, categories=[True, False]).estimate == pytest.approx(kappa)


def test_gwet_2014():
    known = known_values("gwet2014_raw4raters")
    labels, scale = known["data"]["items_x_raters"], {"categories": known["data"]["categories"]}
    plain, squared = known["expected"]["unweighted"], known["expected"]["quadratic"]
    for found, expected in (
        (a.fleiss_kappa(labels, **scale), plain["fleiss"]),
        (a.gwet_ac1(labels, **scale), plain["gwet"]),
        (a.brennan_prediger(labels, **scale), plain["bp"]),
        (a.krippendorff_alpha(labels, level="nominal", **scale), plain["alpha"]),
        (a.krippendorff_alpha(labels, level="interval", **scale), squared["alpha"]),
        (a.gwet_ac2(labels, **scale), squared["gwet"]),
        (a.gwet_ac2(labels, weights="linear", **scale), known["expected"]["linear"]["gwet"]),
    ):
        assert found.estimate == pytest.approx(expected["coeff"], abs=known["tolerance"])
        assert found.n == 11


def test_krippendorff_2011():
    known = known_values("krippendorff2011")
    labels = pd.DataFrame(known["data"]["C_raters_x_units"]).T
    for level in ("nominal", "ordinal", "interval"):
        found = a.krippendorff_alpha(labels, categories=[1, 2, 3, 4, 5], level=level)
        assert found.estimate == pytest.approx(known["expected"]["C"][level], abs=1e-12)
    for example, categories in (("A", [0, 1]), ("B", [1, 2, 3, 4, 5])):
        pairs = list(zip(*known["data"][f"{example}_raters_x_units"], strict=True))
        alpha = a.krippendorff_alpha(pairs, categories=categories, level="nominal")
        assert alpha.estimate == pytest.approx(known["expected"][f"{example}_nominal"], abs=1e-12)
    # In tenths the same labels have the same interval, also where all agree.
    agreed = [[number] * 2 for number in (0, 1, 2)] * 9
    whole, tenths = (
        a.krippendorff_alpha(np.multiply(agreed, k), categories=[0, k, 2 * k], level="interval")
        for k in (1, 0.1)
    )
    assert 0 < whole.low == pytest.approx(tenths.low)


def test_repeats_of_an_anaesthetist():
    known = known_values("dawid_skene1979")
    table = pd.DataFrame(known["data"]).query("rater == 1")
    readings = table.groupby("item")["rating"].apply(list).tolist()
    for weights, name in (("identity", "pairs_12_13_23"), ("quadratic", "quadratic")):
        found = a.intra_rater(readings, categories=[1, 2, 3, 4], weights=weights)
        kappas = [found.pairs[pair].estimate for pair in ((0, 1), (0, 2), (1, 2))]
        assert kappas == pytest.approx(known["expected"][f"intra_rater1_kappa_{name}"])
        assert found.kappa == pytest.approx(np.mean(kappas))


ROW = st.lists(st.sampled_from([None, 1, 2, 3, 4]), min_size=3, max_size=3)
LABELS = st.lists(ROW, min_size=4, max_size=30)
FOUR = (1, 2, 3, 4)


@given(LABELS, st.sampled_from(["nominal", "ordinal", "interval"]))
@settings(max_examples=30, deadline=None)
def test_alpha_is_that_of_the_krippendorff_package(labels, level):
    found = a.krippendorff_alpha(labels, categories=FOUR, level=level)
    values = np.array([[np.nan if x is None else x for x in row] for row in labels], dtype=float).T
    several = [[x for x in row if x is not None] for row in labels]
    if len({x for row in several if len(row) > 1 for x in row}) < 2:
        assert math.isnan(found.estimate)
        assert found.reason in ("no_variation", "no_pairable_units")
        return
    theirs = krippendorff.alpha(values, level_of_measurement=level, value_domain=list(FOUR))
    assert found.estimate == pytest.approx(theirs, abs=1e-9)


@pytest.mark.slow
@given(LABELS, st.sampled_from(["identity", "linear", "quadratic"]))
@settings(max_examples=30, deadline=None)
def test_kappa_is_that_of_scikit_learn_and_statsmodels(labels, weights):
    first, second = [row[0] for row in labels], [row[1] for row in labels]
    found = a.cohen_kappa(first, second, categories=FOUR, weights=weights)
    both = [(x, y) for x, y in zip(first, second, strict=True) if x is not None and y is not None]
    assert found.n == len(both)
    if math.isnan(found.estimate):
        assert found.reason == ("no_variation" if both else "no_pairable_units")
        assert len({x for pair in both for x in pair}) < 2
        return
    x, y = zip(*both, strict=True)
    named = None if weights == "identity" else weights
    theirs = metrics.cohen_kappa_score(x, y, labels=list(FOUR), weights=named)
    assert found.estimate == pytest.approx(theirs, abs=1e-9)
    table = a.confusion_matrix(first, second, categories=FOUR)
    steps = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    distance = {"identity": (steps > 0) * 1.0, "linear": steps, "quadratic": steps**2}[weights]
    with warnings.catch_warnings():
        # Under a variance of 0 statsmodels takes the root of a rounding error below it.
        warnings.simplefilter("ignore")
        other = inter_rater.cohens_kappa(table, weights=distance / distance.max())
    assert np.nan_to_num(other.std_kappa) == pytest.approx(found.se, abs=1e-6)


@given(LABELS)
@settings(max_examples=20, deadline=None)
def test_fleiss_is_that_of_statsmodels_where_nothing_is_missing(labels):
    full = [[1 if x is None else x for x in row] for row in labels]
    table = np.array([[row.count(k) for k in FOUR] for row in full])
    found = a.fleiss_kappa(full, categories=FOUR)
    if len({x for row in full for x in row}) < 2:
        assert (found.reason, math.isnan(found.estimate)) == ("no_variation", True)
    else:
        theirs = inter_rater.fleiss_kappa(table, method="fleiss")
        assert found.estimate == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("refused", "message"), [
    (lambda: a.observed_agreement([["a", "b"], ["c", "b"]], categories="ab"),
     r"row 1, column 0 \(from 0\): 'c' is none of the"),
    (lambda: a.fleiss_kappa([["a", "b"], ["a"]], categories="ab"), "must be a table"),
    (lambda: a.fleiss_kappa([["a", "b"]], categories="aa"), "must all be different"),
    (lambda: a.alt_test([["a", "b"]] * 40, ["a"] * 39, categories="ab"), "40 and 39 items"),
    (lambda: a.krippendorff_alpha([["a", "b"]], categories="ab", level="interval"),
     "categories that are numbers"),
    (lambda: a.fleiss_kappa([["a", "b"]] * 3, categories="ab", clusters=[1, 2]),
     "a cluster for each of the 3 items"),
    (lambda: a.cohen_kappa("ab", "aba", categories="ab"), "2 and 3 items"),
    (lambda: a.fleiss_kappa(np.array([[0, -1]]), categories=range(4)),
     r"row 0, column 1 \(from 0\): -1 is none of the"),
    (lambda: a.tune_threshold([0.1, 0.9], [True, True]), "both verdicts"),
    (lambda: a.tune_threshold([0.1, 0.9, 0.5], [0, 1, np.nan]), "must be 0 or 1, none missing"),
    (lambda: a.tune_threshold([0.1, 2.5], [0, 1]), "each between 0 and 1"),
    (lambda: a.score_probabilities([0.1, 0.9], [0, None]), "must be 0 or 1, none missing"),
])  # fmt: skip
def test_bad_input_is_refused_by_its_place(refused, message):
    with pytest.raises(InputError, match=message):
        refused()


def test_the_scale_is_declared():
    """On 1, 4, 5 of a declared 1-5 scale quadratic kappa is not that of three categories."""
    pair, how = ([1, 4, 5, 5, 4, 1], [1, 5, 5, 4, 4, 4]), {"weights": "quadratic"}
    five = a.cohen_kappa(*pair, categories=range(1, 6), **how)
    three = a.cohen_kappa(*pair, categories=[1, 4, 5], **how)
    # Squared differences: observed 0+1+0+1+0+9 = 11 over 6 units, expected 178 over 36 pairs.
    assert five.estimate == pytest.approx(1 - (11 / 6) / (178 / 36))
    assert five.estimate != pytest.approx(three.estimate)


def test_no_better_than_chance_is_exactly_zero():
    """Verdicts compare a grader's bound with a baseline's kappa, so rounding must not decide."""
    table = np.outer([3, 5, 2], [61, 33, 6])
    assert a.cohen_kappa(*_sequences(table), categories=[0, 1, 2]).estimate == 0.0
    assert a.cohen_kappa([0] * 10, [1] * 10, categories=[0, 1]).estimate == 0.0


def test_the_ceiling_is_that_of_analyse(rng):
    truth = rng.integers(0, 2, 120)
    labels = {name: noisy(rng, truth, 2, 0.8, missing=0.1) for name in ("ann", "ben", "cem", "g")}
    found = analyse_labels(labels, a.Scale("", ("1", "2")), resamples=2000)
    row = row_of(found, "human_ceiling_difference", "humans", "g")
    plain = {name: [None if x == "-" else x for x in own] for name, own in labels.items()}
    humans = list(zip(*[plain[name] for name in ("ann", "ben", "cem")], strict=True))
    found = a.human_ceiling(humans, plain["g"], categories="12")
    assert found.estimate == pytest.approx(row["estimate"])
    # Without folding the units are drawn in another order: the same interval but for chance.
    assert (found.low, found.high) == pytest.approx((row["low"], row["high"]), abs=0.02)
    assert (found.n_units, found.n_clusters) == (row["n_units"], row["n_clusters"])


def test_a_tuned_threshold_is_found_by_trying_all(rng):
    verdicts = rng.random(150) < 0.5
    positive = np.clip(np.where(verdicts, 0.7, 0.45) + rng.normal(0, 0.2, 150), 0, 1).round(2)
    found = a.tune_threshold(positive.tolist(), verdicts.tolist())
    each = {
        t: a.cohen_kappa(verdicts.tolist(), (positive >= t).tolist(), categories=[True, False])
        for t in np.unique(positive)
    }
    assert found.value == pytest.approx(max(kappa.estimate for kappa in each.values()))
    assert each[found.estimate].estimate == pytest.approx(found.value)
    assert found.low <= found.estimate <= found.high


CLUSTERS = [f"c{n // 5:03d}" for n in range(300)]


@pytest.fixture
def clustered(rng):
    """Three raters with gaps on 300 units, five to a cluster, on four ordered categories."""
    truth = rng.integers(0, 4, 300)
    return {name: noisy(rng, truth, 4, 0.6, missing=0.1) for name in "abc"}


def _plain(clustered):
    rows = zip(*clustered.values(), strict=True)
    return [[None if label == "-" else label for label in row] for row in rows]


def test_intervals_are_those_of_the_panel(clustered):
    """The same clusters drawn in the same order give the same bounds, to the last digit or two."""
    ratings = ratings_of(clustered)
    units = pd.DataFrame({"unit_id": sorted(set(ratings["unit_id"])), "cluster_id": CLUSTERS})
    scale = a.Scale("", tuple("1234"), "ordinal")
    panel = a.analyse(ratings, units, [scale], resamples=400, seed=7)
    labels = _plain(clustered)
    first, second, _ = zip(*labels, strict=True)
    bootstrap = a.Bootstrap(resamples=400, seed=7)
    how = {"categories": "1234", "clusters": CLUSTERS, "bootstrap": bootstrap}
    names = ["observed_agreement", "fleiss_kappa", "gwet_ac1", "gwet_ac2", "brennan_prediger"]
    of_all = {name: getattr(a, name)(labels, **how) for name in names}
    for level in ("ordinal", "nominal"):
        of_all[f"krippendorff_alpha_{level}"] = a.krippendorff_alpha(labels, level=level, **how)
    of_pair = {
        "cohen_kappa": a.cohen_kappa(first, second, **how),
        "weighted_kappa_linear": a.cohen_kappa(first, second, weights="linear", **how),
        "scott_pi": a.scott_pi(first, second, **how),
    }
    for coefficients, raters in ((of_all, ("humans", "")), (of_pair, ("a", "b"))):
        for name, found in coefficients.items():
            row = row_of(panel, name, *raters)
            bounds = (row["estimate"], row["low"], row["high"])
            assert (found.estimate, found.low, found.high) == pytest.approx(bounds, abs=1e-12), name
            assert found.low < found.estimate < found.high
            assert (found.n_clusters, found.reason) == (60, "")


def test_what_an_interval_needs(clustered):
    labels = _plain(clustered)
    few = a.fleiss_kappa(labels, categories="1234", clusters=[n // 100 for n in range(300)])
    assert (few.n_clusters, few.reason) == (3, "too_few_clusters")
    assert not math.isnan(few.estimate)
    alone = a.fleiss_kappa(labels, categories="1234", bootstrap=a.Bootstrap(resamples=0))
    assert (alone.reason, alone.estimate) == ("not_resampled", pytest.approx(few.estimate))


def test_an_array_of_codes_needs_no_look_up(rng):
    """What is recognised as codes, and what is not, means the same."""
    codes = rng.integers(0, 4, (300, 3)).astype(np.int8)
    expected = a.fleiss_kappa(codes.tolist(), categories=range(4))
    for labels, categories in (
        (codes, range(4)),
        (codes + 1, [1, 2, 3, 4]),
        (codes.astype(np.uint16), [0, 1, 2, 3]),
        (codes.astype(float), [0, 1, 2, 3]),
        (pd.DataFrame(codes), [0, 1, 2, 3]),
    ):
        assert a.fleiss_kappa(labels, categories=categories) == expected


def test_perfect_agreement_is_known_as_far_as_its_units_reach():
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


BINARY = {"categories": [0, 1]}
SCALE = a.Scale("", ("0", "1"))
CASES = {case["case"]: case for case in known_values("degenerate_cases")["expected"]}
"""The declared answers by case."""


def test_both_raters_constant():
    case = CASES["both raters constant, same label"]
    labels = [[1, 1]] * 20
    assert a.observed_agreement(labels, **BINARY).estimate == case["pa"]
    kappa = a.cohen_kappa([1] * 20, [1] * 20, **BINARY)
    alpha = a.krippendorff_alpha(labels, level="nominal", **BINARY)
    for found in (kappa, alpha, a.fleiss_kappa(labels, **BINARY)):
        assert (math.isnan(found.estimate), found.reason) == (True, case["reason"])
    assert a.gwet_ac1(labels, **BINARY).estimate == 1.0
    assert math.isnan(a.gwet_ac1(labels, categories=[1]).estimate)
    rows = analyse_labels({"ann": "1" * 40, "ben": "1" * 40}, SCALE)
    assert row_of(rows, "gwet_ac1", "ann", "ben")["estimate"] == 1.0
    row = row_of(rows, "cohen_kappa", "ann", "ben")
    assert (math.isnan(row["estimate"]), row["note"]) == (True, case["reason"])


def test_one_rater_constant_and_no_unit_with_two_labels():
    case = CASES["one rater constant"]
    assert a.cohen_kappa([1] * 20, [0, 1] * 10, **BINARY).estimate == case["kappa"]
    rows = analyse_labels({"ann": "1" * 40, "ben": "01" * 20}, SCALE)
    row = row_of(rows, "cohen_kappa", "ann", "ben")
    assert (row["estimate"], row["note"]) == (case["kappa"], case["flag"])
    case = CASES["no item with two labels"]
    found = a.krippendorff_alpha([[1, None], [None, 0]], level="nominal", **BINARY)
    assert (math.isnan(found.estimate), found.reason) == (True, case["reason"])
    assert a.cohen_kappa([1, None], [None, 0], **BINARY).reason == case["reason"]
    rows = analyse_labels({"ann": "0" * 20 + "-" * 20, "ben": "-" * 20 + "1" * 20}, SCALE)
    row = row_of(rows, "krippendorff_alpha_nominal", "humans")
    assert (math.isnan(row["estimate"]), row["note"]) == (True, case["reason"])


def test_a_grader_identical_to_every_human():
    case = CASES["alt-test: LLM identical to every human, eps=0"]
    found = a.alt_test([[0, 0], [1, 1]] * 20, [0, 1] * 20, epsilon=0.0, **BINARY)
    assert found.zero_variance.tolist() == [case["difference_zero_variance"]] * 2
    assert found.p.tolist() == [case["p"]] * 2
    assert found.rejected.tolist() == [case["reject"]] * 2
    assert a.alt_test([[0, 0], [1, 1]] * 20, [0, 1] * 20, epsilon=0.1, **BINARY).winning_rate == 1
    found = analyse_labels({"ann": "01" * 20, "ben": "01" * 20, "g": "01" * 20}, SCALE, epsilon=0.0)
    row = row_of(found, "alt_test_winning_rate", "humans", "g")
    assert row["estimate"] == 0.0
    assert row["note"].startswith(f"{case['flag']} (2 of 2 annotators)")


def test_no_annotator_with_enough_units():
    found = a.alt_test([[0, 0], [1, 1]] * 10, [0, 1] * 10, **BINARY)
    assert math.isnan(found.winning_rate)
    case = CASES["alt-test: annotators all below min items"]
    assert case["winning_rate"] is None
    assert not found.passed
    few = analyse_labels(dict.fromkeys(("ann", "ben", "g"), "01" * 14), SCALE)
    for statistic in ("alt_test_winning_rate", "alt_test_advantage"):
        row = row_of(few, statistic, "humans", "g")
        assert math.isnan(row["estimate"])
        assert row["note"].startswith(case["reason"])


def test_differences_and_ranks_of_ordered_labels_are_those_of_numpy_and_scipy(rng):
    first, second = rng.integers(0, 4, (2, 60))
    table = pd.crosstab(first, second).to_numpy(dtype=float)
    assert c.mean_differences(table, [1, 2, 3, 4]) == pytest.approx((second - first).mean())
    assert c.rank_correlations(table) == pytest.approx(stats.spearmanr(first, second).statistic)
