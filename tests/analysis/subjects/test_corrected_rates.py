"""Corrected rates of subjects: against sums written out, and on graders whose errors are known.

Differences between the sides of pairs: against sums written out, OLS, and studies with gaps.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, StudyFacts, analyse, ppi_plus_plus, rogan_gladen
from evenhand.analysis.subjects import corrected_rates
from evenhand.analysis.subjects.corrected_rates import RateSums, merge_small_strata, stratified_ppi
from evenhand.errors import InputError
from tests.analysis.make import YES, both_sides, ratings_of, study
from tests.known_values import known_values
from tests.peers import sm


def rows_of(results, statistic, grader="g"):
    found = results[(results["statistic"] == statistic) & (results["rater_b"] == grader)]
    return found.set_index("at")


def figures(rng, errors, resamples=150, **options):
    """The results of a study whose grader `g`, or graders, have these errors."""
    graders = errors if isinstance(errors, Mapping) else {"g": errors}
    return analyse(*study(rng, graders, **options), [YES], resamples=resamples).results


def test_rates_from_counts_written_out(rng):
    """Every number again from the verdicts themselves."""
    ratings, units = study(rng, {"g": [(0.85, 0.7)] * 2}, people=3)
    results = analyse(ratings, units, [YES], resamples=50).results
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label")
    wide = wide.loc[units["unit_id"]]
    grades = (wide["g"] == "y").to_numpy(float)
    people = (wide[["h0", "h1", "h2"]] == "y").mean(axis=1).to_numpy()
    known = wide["h0"].notna().to_numpy()
    sensitivity = (grades * people)[known].sum() / people[known].sum()
    specificity = ((1 - grades) * (1 - people))[known].sum() / (1 - people)[known].sum()
    assert rows_of(results, "sensitivity").loc["", "estimate"] == pytest.approx(sensitivity)
    assert rows_of(results, "specificity").loc["", "estimate"] == pytest.approx(specificity)
    scores = results[results["statistic"].eq("subject_score") & results["rater_a"].eq("humans")]
    rates = rows_of(results, "rate_human", "")["estimate"]
    assert rates.to_dict() == pytest.approx(scores.set_index("at")["estimate"].to_dict())
    j = sensitivity + specificity - 1
    assert rows_of(results, "youden_j").loc["", "estimate"] == pytest.approx(j)
    for subject in ("s0", "s1"):
        own = (units["subject"] == subject).to_numpy()
        raw, theirs = grades[own].mean(), people[own & known].mean()
        assert rows_of(results, "rate_raw").loc[subject, "estimate"] == pytest.approx(raw)
        assert rows_of(results, "rate_human", "").loc[subject, "estimate"] == pytest.approx(theirs)
        corrected = rows_of(results, "rate_rogan_gladen").loc[subject]
        assert corrected["estimate"] == pytest.approx((raw + specificity - 1) / j)
        assert (corrected["n_units"], corrected["n_clusters"]) == (400, 400)
        assert corrected["note"] == "150 of them labelled by annotators"
        on_sample, elsewhere = grades[own & known].mean(), grades[own & ~known].mean()
        covariance = (grades * people)[own & known].mean() - on_sample * theirs
        weight = covariance / (raw * (1 - raw) * (1 + 150 / 250))
        found = rows_of(results, "rate_ppi").loc[subject, "estimate"]
        assert found == pytest.approx(theirs + weight * (elsewhere - on_sample))


@pytest.mark.journey
def test_errors_that_differ_by_subject_mislead_pooled_error_rates_only(rng):
    """A grader that is lenient to its own: pooled error rates mislead, and PPI++ does not."""
    errors = [(0.85, 0.85), (0.99, 0.45)]
    results = figures(rng, errors, 400, rates=(0.5, 0.5), pairs=3000, labelled=800)
    corrected = rows_of(results, "rate_rogan_gladen")
    assert corrected.loc["s1", "low"] > 0.5, "pooled error rates are wrong for this subject"
    ppi = rows_of(results, "rate_ppi").loc["s1"]
    assert ppi["low"] < 0.5 < ppi["high"]


def test_a_grader_without_information_has_no_rogan_gladen_rate(rng):
    graders = {"noise": [(0.5, 0.5)] * 2, "always": [(1.0, 0.0)] * 2}
    results = figures(rng, graders)
    for grader in graders:
        j = rows_of(results, "youden_j", grader).loc[""]
        assert j["low"] <= 0 <= j["high"]
        refused = rows_of(results, "rate_rogan_gladen", grader)
        assert refused["estimate"].isna().all()
        assert set(refused["note"]) == {"grader_not_informative"}
    # PPI++ leaves it out of account: people's own rate.
    people = rows_of(results, "rate_human", "")["estimate"]
    ppi = rows_of(results, "rate_ppi", "always")["estimate"]
    assert ppi.to_dict() == pytest.approx(people.to_dict())


def test_a_rate_beyond_its_range_says_so(rng):
    """Error rates from one subject are no use on another where the grader never says no."""
    errors = [(0.7, 0.7), (1.0, 0.0)]
    ratings, units = study(rng, {"g": errors}, rates=(0.5, 0.5), pairs=2000, labelled=500)
    only_first = ~((ratings["rater_kind"] == "human") & ratings["unit_id"].str.endswith("s1"))
    results = analyse(ratings[only_first], units, [YES], resamples=50).results
    row = rows_of(results, "rate_rogan_gladen").loc["s1"]
    assert np.isnan(row["estimate"])
    assert row["note"].startswith("outside_zero_one")
    # Nobody labelled this subject: PPI++ has nothing to go by, and only one subject is left.
    assert rows_of(results, "rate_ppi").loc["s1", "note"].startswith("no_pairable_units")
    assert rows_of(results, "rate_rank_set").empty


def test_where_everything_is_labelled_peoples_own_rates_are_compared(rng):
    """Rates, differences, ranks and parts are those of people, whatever the grader says."""
    graders = {"g": [(0.9, 0.8)] * 2, "worse": [(0.6, 0.4)] * 2}
    ratings, units = study(rng, graders, rates=(0.2, 0.8), pairs=80, labelled=80)
    units["topic"] = np.where(np.arange(len(units)) % 4 < 2, "x", "y")
    results = analyse(ratings, units, [YES], resamples=40, slices=["topic"]).results
    assert set(rows_of(results, "rate_rogan_gladen")["note"]) == {"no_unlabelled_units"}
    people = rows_of(results[results["subset"] == "all|binary"], "rate_human", "")
    for grader in graders:
        own = results[results["rater_b"] == grader].set_index("at")
        found = own[(own["statistic"] == "rate_ppi") & (own["subset"] == "all|binary")]
        for column in ("estimate", "low", "high"):
            assert found[column].to_dict() == pytest.approx(people[column].to_dict(), abs=0.02)
        assert found["note"].str.startswith("annotators labelled all of them").all()
        apart = own[own["statistic"] == "rate_difference_ppi"].loc["s0>s1"]
        assert apart["estimate"] == pytest.approx(people["estimate"].diff().iloc[-1] * -1)
        assert apart["high"] < 0
        ranks = own[own["statistic"] == "rate_rank_set"]
        assert ranks["low"].to_dict() == ranks["high"].to_dict() == {"s0": 2, "s1": 1}


def test_without_graders_there_is_no_rate_and_without_people_the_raw_one(rng):
    ratings, units = study(rng, {"g": [(0.9, 0.8)] * 2})
    units["topic"] = np.where(np.arange(len(units)) < 400, "x", "y")
    by_kind = dict(list(ratings.groupby("rater_kind")))
    people, alone = (
        analyse(by_kind[kind], units, [YES], resamples=50, slices=["topic"]).results
        for kind in ("human", "model")
    )
    assert not people["statistic"].str.startswith(("rate_", "sensitivity")).any()
    found = alone[alone["statistic"].str.startswith(("rate_", "sensitivity"))]
    assert set(found["statistic"]) == {"rate_raw"}
    assert set(found["subset"]) == {"all|binary", "topic=x|binary", "topic=y|binary"}
    verdicts = by_kind["model"].merge(units, on="unit_id")
    for (topic, subject), own in verdicts.groupby(["topic", "subject"]):
        row = found[(found["subset"] == f"topic={topic}|binary") & (found["at"] == subject)]
        assert row["estimate"].item() == pytest.approx((own["label"] == "y").mean())


def _of_three_shares(people, grades, rest):
    """The standard error of Rogan & Gladen's rate (1978) by the delta method: three shares."""
    sensitive, lenient, p = (each.mean() for each in (grades[people > 0], grades[people < 1], rest))
    rate = (p - lenient) / (sensitive - lenient)
    variance = p * (1 - p) / len(rest) + rate**2 * sensitive * (1 - sensitive) / people.sum()
    variance += (1 - rate) ** 2 * lenient * (1 - lenient) / (1 - people).sum()
    return float(np.sqrt(variance) / (sensitive - lenient))


def test_both_parts_are_resampled(rng):
    """The interval's width is the delta method's of three shares, not of two."""
    ratings, units = study(rng, {"g": [(0.9, 0.8)]}, rates=(0.5,), pairs=500, labelled=250)
    row = rows_of(analyse(ratings, units, [YES]).results, "rate_rogan_gladen").loc["s0"]
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label") == "y"
    people, grades = wide["h0"].to_numpy(float), wide["g"].to_numpy(float)
    delta = _of_three_shares(people[:250], grades[:250], grades[250:])
    # On all that it graded the rate is steadier than on the unlabelled half alone, where the delta
    # method takes it from: w * people's rate + (1 - w) * the corrected one elsewhere, w = 1/2.
    half_width = (row["high"] - row["low"]) / 2
    spread = np.sqrt(people[:250].var() / 250 + delta**2) / 2
    assert half_width == pytest.approx(1.96 * spread, rel=0.08)
    fixed = np.sqrt(people[:250].var() / 250) / 2 * 1.96
    assert half_width > 1.3 * fixed


@pytest.mark.slow
def test_what_only_graders_saw_disturbs_nothing_else(rng):
    """Ceiling, pairs of raters and thresholds rest on the labelled units."""
    ratings, units = study(rng, {"g": [(0.85, 0.8)] * 2, "k": [(0.8, 0.9)] * 2}, people=3)
    sample = set(ratings.loc[ratings["rater_kind"] == "human", "unit_id"])
    key = ["statistic", "rater_a", "rater_b", "subset", "at"]
    everything, labelled = (
        analyse(rows, units, [YES], resamples=40).results.set_index(key)
        for rows in (ratings, ratings[ratings["unit_id"].isin(sample)])
    )
    statistic, people = (labelled.index.get_level_values(name) for name in key[:2])
    graders_only = people.isin(["g", "k", "models", "all", ""])
    compared = labelled[~graders_only & ~statistic.str.startswith(("rate_", "subject_"))]
    same = everything.loc[compared.index]
    assert {"human_ceiling_difference", "cohen_kappa"} <= {key[0] for key in compared.index}
    for column in ("n_units", "n_clusters", "estimate"):
        apart = ~np.isclose(compared[column], same[column], rtol=1e-12, equal_nan=True)
        assert not apart.any(), compared.index[apart].tolist()


def test_a_stratified_sample_has_stratified_ppi(rng):
    """Half of the strata was sampled five times as often: what is not weighted is wrong."""
    ratings, units = study(rng, {"g": [(0.85, 0.8)]}, rates=(0.5,), pairs=1200, labelled=300)
    pair = units["cluster_id"].str[1:].astype(int)
    # Of the labelled 250 and of the others 50 a stratum, in which the grader sees less and people
    # affirm more.
    units["leaning"] = np.where((pair < 50) | (pair >= 650), "rare", "often")
    ratings = ratings.merge(units[["unit_id", "leaning"]], on="unit_id")
    flip = (ratings["leaning"] == "rare") & (rng.random(len(ratings)) < 0.5)
    ratings.loc[flip & (ratings["rater_kind"] == "human"), "label"] = "y"
    ratings = ratings.drop(columns="leaning")
    plain = rows_of(analyse(ratings, units, [YES], resamples=50).results, "rate_ppi")
    facts = StudyFacts(strata=("leaning", "not_there"))
    results = analyse(ratings, units, [YES], resamples=50, facts=facts).results
    found = rows_of(results, "rate_ppi").loc["s0"]
    assert found["note"] == "in 2 strata; 300 of them labelled by annotators"
    # The sums written out: strata by their share of all units, one weight for both.
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label").loc[units["unit_id"]]
    y, f = (wide["h0"] == "y").to_numpy(float), (wide["g"] == "y").to_numpy(float)
    known = wide["h0"].notna().to_numpy()
    above, below, parts = 0.0, 0.0, []
    for stratum in ("often", "rare"):
        own = (units["leaning"] == stratum).to_numpy()
        labelled, rest = own & known, own & ~known
        share, n, more = own.mean(), labelled.sum(), rest.sum()
        above += share**2 * np.cov(y[labelled], f[labelled], ddof=0)[0, 1] / n
        below += share**2 * f[own].var() * (1 / n + 1 / more)
        parts.append((share, y[labelled].mean(), f[rest].mean() - f[labelled].mean()))
    weight = above / below
    expected = sum(share * (theirs + weight * moved) for share, theirs, moved in parts)
    assert found["estimate"] == pytest.approx(expected)
    assert abs(plain.loc["s0", "estimate"] - expected) > 0.05


def test_small_strata_are_taken_together():
    """8 and 12 units are too few, apart and together: a larger one joins them."""
    for sizes, any_labels, expected in (
        ([60, 8, 60, 12], True, [0, 0, 1, 0]),
        ([60, 20, 60, 20, 20], True, [1, 0, 2, 0, 0]),
        ([140], True, [0]),
        ([60, 8, 60, 12], False, [0, 0, 0, 0]),
    ):
        strata = np.repeat(np.arange(len(sizes)), sizes)
        labelled = (np.arange(len(strata)) % 2 == 0) & any_labels
        joined = merge_small_strata(strata, [labelled, ~labelled], lambda units: (0, units.sum()))
        assert [joined[strata == stratum][0] for stratum in range(len(sizes))] == expected


@pytest.mark.slow
def test_rates_in_a_part_are_those_of_the_part_alone(rng):
    """With the errors that the grader makes there, not with those it makes elsewhere."""
    ratings, units = study(rng, {"g": [(0.9, 0.7)] * 2}, people=2)
    number = units["cluster_id"].str[1:].astype(int)
    units["topic"] = np.where(number % 3 == 0, "tax", "war")
    units.loc[number > 390, "topic"] = "few"  # which people did not label
    units.loc[number < 5, "topic"] = "few"
    units.loc[(number > 380) & (number <= 390), "topic"] = "unseen"
    units.loc[(number >= 5) & (number < 45), "topic"] = "seen"
    results = analyse(ratings, units, [YES], resamples=40, slices=["topic"]).results
    for topic in ("tax", "war"):
        part = units[units["topic"] == topic]
        own = ratings[ratings["unit_id"].isin(part["unit_id"])]
        alone = analyse(own, part, [YES], resamples=40).results
        here = results[results["subset"] == f"topic={topic}|binary"]
        for statistic in ("rate_human", "rate_raw", "rate_ppi"):
            grader = "" if statistic == "rate_human" else "g"
            found, expected = (rows_of(each, statistic, grader) for each in (here, alone))
            assert found["estimate"].to_dict() == pytest.approx(expected["estimate"].to_dict())
            assert found["n_units"].tolist() == expected["n_units"].tolist()
            assert (found["low"] < found["estimate"]).all()
            assert "labelled" not in found.loc["s0", "note"].replace("of them labelled", "")
    few = rows_of(results[results["subset"] == "topic=few|binary"], "rate_ppi").loc["s0"]
    said = "fewer than 30 items are labelled; 5 of them labelled by annotators"
    assert few["note"].endswith(said)
    unseen = rows_of(results[results["subset"] == "topic=unseen|binary"], "rate_ppi")
    assert unseen["estimate"].isna().all()
    assert unseen["note"].str.contains("no_pairable_units").all()
    seen = rows_of(results[results["subset"] == "topic=seen|binary"], "rate_ppi")
    people = rows_of(results[results["subset"] == "topic=seen|binary"], "rate_human", "")
    assert seen["estimate"].to_dict() == pytest.approx(people["estimate"].to_dict())
    assert seen["note"].str.startswith("annotators labelled all of them").all()


def from_counts(subjects):
    """Ratings and units with these counts, by subject and part; units of a part are clusters."""
    kinds = {
        "people_and_grader": "yy", "people_alone": "yn", "grader_alone": "ny", "neither": "nn",
        "rest_yes": "-y", "rest_no": "-n",
    }  # fmt: skip
    keys, said = [], []
    for subject, own in subjects.items():
        for part, counts in own["parts"].items():
            here = [each for kind, each in kinds.items() for _ in range(counts[kind])]
            keys += [(f"{part}-{number}", subject, part) for number in range(len(here))]
            said += here
    units = pd.DataFrame(keys, columns=["cluster_id", "subject", "topic"])
    units["unit_id"] = [f"u{n:05d}" for n in range(len(units))]
    people, grader = zip(*said, strict=True)
    return ratings_of({"h": people, "g": grader}).assign(rubric="R"), units


def test_each_part_is_ppi_pythons():
    """What ppi_py 0.2.3, which needs a compiler, said of the same labels."""
    case = known_values("ppi_python_parts")
    ratings, units = from_counts(case["subjects"])
    results = analyse(ratings, units, [YES], resamples=50, slices=["topic"]).results
    for subject, own in case["subjects"].items():
        for part, expected in own["parts"].items():
            here = results[results["subset"] == f"topic={part}|binary"]
            rate = rows_of(here, "rate_ppi").loc[subject, "estimate"]
            assert rate == pytest.approx(expected["rate"], abs=case["tolerance"])
            # The package divides by n - 1 where it takes its own.
            assert rate == pytest.approx(expected["rate_own_lambda"], abs=1e-3)


SCALE = replace(YES, unit="response")


def sided(rng, rates=((0.6, 0.4), (0.3, 0.4)), **options):
    """Ratings and units of answers to both sides of pairs, with the rates of either side's."""
    return both_sides(rng, {"g": [(0.9, 0.8)] * len(rates[0])}, rates, **options)


def found_in(ratings, units, **options):
    results = analyse(ratings, units, [SCALE], **{"resamples": 200, **options}).results
    return results[results["statistic"] == "rate_side_difference_ppi"].set_index("at")


def apart(ratings, units, rater, subject):
    """A rater's verdict on side a minus that on side b, by pair; NaN where one is missing."""
    own = ratings[ratings["rater_id"] == rater].merge(units, on="unit_id")
    own = own[own["subject"] == subject].set_index(["cluster_id", "side"])
    wide = (own["label"] == "y").astype(float).unstack()
    return wide["a"] - wide["b"]


@pytest.mark.journey
def test_an_estimate_is_ppi_of_the_differences_and_an_intercept(rng):
    """PPI++ of the differences within pairs, by numpy and as two intercepts of a regression."""
    ratings, units = sided(rng)
    found = found_in(ratings, units)
    assert set(found["subset"]) == {"side=side a>side b|binary"}
    for subject, row in found.iterrows():
        grader = apart(ratings, units, "g", str(subject))
        people = apart(ratings, units, "h0", str(subject)).reindex(grader.index)
        known = people.notna().to_numpy()
        n, more = known.sum(), (~known).sum()
        covariance = np.cov(people[known], grader[known], ddof=0)[0, 1]
        weight = covariance / (1.0 + n / more) / grader.var(ddof=0)
        z = np.where(known, people.fillna(0.0) - weight * grader, weight * grader)
        blocks = np.column_stack([known, ~known]).astype(float)
        test = sm.OLS(z, blocks).fit(cov_type="HC0").t_test([[1.0, 1.0]])
        assert row["estimate"] == pytest.approx(test.effect.item(), abs=1e-6)
        # Two subjects hold together: a little wider than one interval of the regression.
        assert 1.96 < (row["high"] - row["low"]) / 2 / test.sd.item() < 2.6
        assert (row["n_units"], row["n_clusters"]) == (400, 400)
        assert row["note"] == "150 of them labelled by annotators"
    assert found.loc["s0", "low"] > 0.1
    assert found.loc["s1", "low"] < 0 < found.loc["s1", "high"]


@pytest.mark.journey
def test_leanings_say_which_side_is_first(rng):
    ratings, units = sided(rng)
    number = units["cluster_id"].str[1:].astype(int)
    swapped, unknown = number % 2 == 0, number % 10 == 9
    for column, names in (("prompt_a_group", ("pro", "con")), ("prompt_b_group", ("con", "pro"))):
        units[column] = np.where(unknown, "x", np.where(swapped, *names))
    leanings = {"left": ["pro"], "right": ["con"]}
    found = found_in(ratings, units, leanings=leanings)
    assert set(found["subset"]) == {"side=left>right|binary"}
    assert (found["n_units"] == 360).all()
    assert abs(found.loc["s0", "estimate"]) < 0.1  # the sides change places: nothing is left
    results = analyse(ratings, units, [SCALE], resamples=50, leanings=leanings).results
    raw = results[(results["statistic"] == "rate_raw") & results["subset"].str.contains("leaning=")]
    raw = raw.set_index(["subset", "at"])["estimate"]
    own = ratings[ratings["rater_id"] == "g"].merge(units, on="unit_id")
    left = own["prompt_a_group"].eq("pro") & own["side"].eq("a")
    left |= own["prompt_b_group"].eq("pro") & own["side"].eq("b")
    expected = own[left & own["subject"].eq("s0")]["label"].eq("y").mean()
    assert raw["leaning=left|binary", "s0"] == pytest.approx(expected)


@pytest.mark.slow
def test_what_has_one_side_only_is_left_out_and_said(rng):
    ratings, units = sided(rng, rates=((0.6, 0.4, 0.5), (0.3, 0.4, 0.5)))
    unit = ratings["unit_id"]
    one_side = unit.str.contains(r"\|s1\|b") | unit.str.contains(r"p039\d\|s0\|b")
    nobody = unit.str.contains(r"\|s2") & (ratings["rater_kind"] == "human")
    found = found_in(ratings[~one_side & ~nobody], units)
    assert found.loc["s0", "n_units"] == 390
    assert found.loc["s0", "note"].startswith("10 answers to one side alone left out; ")
    for subject, reason in (("s1", "answers to one side of each pair only"),
                            ("s2", "no_pairable_units")):  # fmt: skip
        assert np.isnan(found.loc[subject, ["estimate", "low", "high"]].astype(float)).all()
        assert found.loc[subject, "note"] == reason
    ratings, units = sided(rng, pairs=60, labelled=60)
    found = found_in(ratings, units)
    assert found["note"].str.startswith("annotators labelled all of them: their rate").all()
    for subject, row in found.iterrows():
        assert row["estimate"] == pytest.approx(apart(ratings, units, "h0", str(subject)).mean())
        assert row["low"] < row["estimate"] < row["high"]


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_sides_that_never_differ_have_bounds(rate, rng):
    ratings, units = sided(rng, rates=((rate,) * 2,) * 2, labelled=20, pairs=60)
    ratings["label"] = "y" if rate else "n"
    found = found_in(ratings, units, resamples=50)
    assert (found["estimate"] == 0).all()
    assert ((found["low"] < 0) & (found["high"] > 0)).all()
    assert found["note"].str.startswith("fewer than 30 items are labelled").all()


@pytest.mark.parametrize("labelled", [4, 6, 40])
def test_pairs_that_all_go_one_way_leave_room(labelled, rng):
    """As much as that many labelled pairs leave, not the graded ones; four leave all."""
    rates = ((1.0, 0.5, 0.0), (0.0, 0.5, 1.0))
    found = found_in(*sided(rng, rates=rates, labelled=labelled, pairs=100))
    assert found.loc["s0", "estimate"] > 0.9 > -0.9 > found.loc["s2", "estimate"]
    if labelled == 4:
        assert found[["low", "high"]].isna().all(axis=None)
        assert found["note"].str.startswith("too_few_clusters; ").all()
        return
    most = 1 - 2 * (1 - 0.025 ** (1 / labelled))
    assert found.loc["s0", "low"] <= most
    assert found.loc["s2", "high"] >= -most


@pytest.mark.journey
def test_a_column_of_sides_or_leanings_is_refused_by_name(rng):
    ratings, units = sided(rng)
    units = units.assign(prompt_a_group="pro", prompt_b_group="con", leaning="left")
    leanings = {"left": ["pro"], "right": ["con"]}
    for column in ("side", "leaning"):
        people = pd.DataFrame({"rater_id": ["h0", "h1"], column: ["a", "left"]})
        asked = {"facts": StudyFacts(raters=people), "leanings": leanings, "resamples": 20}
        for table, by in (("units", {"slices": [column]}), ("raters", {"rater_slices": [column]})):
            with pytest.raises(InputError, match=f"{table}: {column} cannot be a column"):
                analyse(ratings, units, [SCALE], **by, **asked)
    assert not analyse(ratings, units, [SCALE], slices=["leaning"], resamples=20).results.empty


def test_a_spread_for_planning_counts_each_item_by_its_chance():
    """The weighted covariance by numpy, with Bessel's correction."""
    people, grades = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 3.0])
    samples, weight = np.stack([people, grades])[None], np.array([1, 1, 3])
    found = corrected_rates._pooled_spread(samples, weight, 2.0)
    covariance = np.cov(people, grades, aweights=[1, 1, 3], ddof=0) * 1.5
    assert found.sd == pytest.approx(2.0 * covariance[0, 0] ** 0.5)
    r = covariance[0, 1] / (covariance[0, 0] * covariance[1, 1]) ** 0.5
    assert found.correlation == pytest.approx(r)


@pytest.mark.parametrize(("column", "values"), [("side", "ab"), ("leaning", ["left", "right"])])
def test_a_column_of_annotators_that_explains_labels_may_be_named_like_sides(column, values, rng):
    where = [(f"u{n:05d}", f"p{n // 2}", "ab"[n % 2], "m") for n in range(40)]
    units = pd.DataFrame(where, columns=["unit_id", "cluster_id", "side", "subject"])
    units = units.assign(prompt_a_group="pro", prompt_b_group="con")
    labels = {f"h{n}": np.where((rng.random(40) < 0.1) != (units["side"] == "ab"[n % 2]), "y", "n")
              for n in range(10)}  # fmt: skip
    people = pd.DataFrame({"rater_id": [*labels], column: [values[n % 2] for n in range(10)]})
    asked = {"facts": StudyFacts(raters=people), "leanings": {"left": ["pro"], "right": ["con"]}}
    ratings = ratings_of(labels | {"g": labels["h0"]})
    assert not analyse(ratings, units, [SCALE], resamples=20, **asked).results.empty


SCORES = Scale("R", tuple("12345"), "ordinal", unit="response")


def scored(rng, pairs=200, labelled=80):
    """Scores from 1 to 5 of two people and a grader that errs upwards, on both sides of pairs."""
    index = pd.MultiIndex.from_product([range(pairs), ["s0", "s1"], ["a", "b"]])
    units = index.to_frame(index=False, name=["pair", "subject", "side"])
    units["cluster_id"] = "p" + units["pair"].astype(str)
    units["unit_id"] = units["cluster_id"] + units["subject"] + units["side"]
    units["topic"] = np.where(units["pair"] % 2, "tax", "war")
    shared = rng.normal(size=pairs)[units["pair"]] + rng.normal(size=len(units))
    middle = 3.2 + shared + 0.5 * units["subject"].eq("s1") - 0.4 * units["side"].eq("b")
    tables = []
    for rater, more in (("h0", 0.0), ("h1", 0.2), ("g", 0.5)):
        score = np.clip(np.rint(middle + more + 0.5 * rng.normal(size=len(units))), 1, 5)
        table = units[["unit_id"]].assign(rubric="R", rater_id=rater, label=score.astype(int))
        kind = "model" if rater == "g" else "human"
        known = units["pair"] < (pairs if rater == "g" else labelled)
        tables.append(table.assign(rater_kind=kind)[known])
    return pd.concat(tables).astype({"label": str}), units.drop(columns="pair")


@pytest.mark.journey
def test_means_are_ppi_of_scores_and_differences_of_a_regression(rng):
    """PPI++ as ppi_py 0.2 has it, by numpy; between subjects and sides, intercepts by OLS."""
    ratings, units = scored(rng)
    found = analyse(ratings, units, [SCORES], resamples=300, slices=["topic"]).results
    found = found.set_index(["statistic", "subset", "at"])
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label").astype(float)
    wide = units.join(wide, on="unit_id").assign(h=lambda each: each[["h0", "h1"]].mean(axis=1))

    def powered(y, f):
        y, f, known = y.to_numpy(), f.to_numpy(), y.notna().to_numpy()
        n, more = known.sum(), (~known).sum()
        weight = np.cov(y[known], f[known], ddof=0)[0, 1] / np.var(f, ddof=1) / (1 + n / more)
        z = np.where(known, np.nan_to_num(y) - weight * f, weight * f)
        fitted = sm.OLS(z, np.column_stack([known, ~known]).astype(float)).fit(cov_type="HC0")
        return fitted.params.sum(), fitted.t_test([[1.0, 1.0]]).sd.item()

    means = {}
    for subset, part in {
        "all": wide, "topic=tax": wide[wide["topic"] == "tax"], "side=a": wide[wide["side"] == "a"]
    }.items():  # fmt: skip
        for subject in ("s0", "s1"):
            own = part[part["subject"] == subject]
            means[subset, subject], _ = powered(own["h"], own["g"])
            row = found.loc["mean_ppi", subset, subject]
            assert row["estimate"] == pytest.approx(means[subset, subject], abs=1e-6)
            assert row["low"] < row["estimate"] < row["high"]
            raw = found.loc["subject_score", subset, subject].set_index("rater_a")["estimate"]
            assert raw.to_dict() == pytest.approx({"humans": own["h"].mean(), "g": own["g"].mean()})
    apart = found.loc["mean_difference_ppi", "all", "s0>s1"]
    expected = means["all", "s0"] - means["all", "s1"]
    assert apart["estimate"] == pytest.approx(expected, abs=1e-6)
    assert apart["high"] < 0
    sides = wide.pivot(index=["subject", "cluster_id"], columns="side", values=["h", "g"])
    for subject in ("s0", "s1"):
        y, f = (sides.loc[subject][who]["a"] - sides.loc[subject][who]["b"] for who in ("h", "g"))
        row = found.loc["mean_difference_ppi", "side=side a>side b", subject]
        expected, error = powered(y, f)
        assert row["estimate"] == pytest.approx(expected, abs=1e-6)
        assert 1.9 < (row["high"] - row["low"]) / 2 / error < 2.6


def test_shares_of_classes_have_one_weight_and_sum_to_one(rng):
    """As ppi_py 0.2 has the mean of indicators: one weight, of traces of covariances."""
    ratings, units = scored(rng)
    scale = replace(SCORES, level=YES.level)
    found = analyse(ratings, units, [scale], resamples=40, slices=["topic"]).results
    found = found[found["statistic"] == "prevalence_ppi"].set_index(["subset", "at"])
    sums = found["estimate"].groupby("subset").sum()
    assert set(sums.index) > {"all", "subject=s0", "topic=tax", "side=b"}
    assert sums.to_numpy() == pytest.approx(1.0)
    wide = ratings.pivot(index="unit_id", columns="rater_id", values="label").loc[units["unit_id"]]
    own = wide[units["subject"].eq("s0").to_numpy()]
    one, two, f = ((own[[who]].to_numpy() == [*"12345"]).astype(float) for who in ("h0", "h1", "g"))
    y, known = (one + two) / 2, own["h0"].notna().to_numpy()
    n, more = known.sum(), (~known).sum()
    centred = f[known] - f[known].mean(axis=0)
    weight = (y[known] * centred).sum() / n / f.var(axis=0, ddof=1).sum() / (1 + n / more)
    expected = y[known].mean(axis=0) + weight * (f[~known].mean(axis=0) - f[known].mean(axis=0))
    assert found.loc["subject=s0", "estimate"].to_numpy() == pytest.approx(expected, abs=1e-6)
    assert found["estimate"].between(found["low"], found["high"]).all()


@pytest.mark.parametrize("score", ["1", "3"])
def test_scores_that_never_differ_leave_room(score, rng):
    ratings, units = scored(rng, pairs=40, labelled=20)
    found = analyse(ratings.assign(label=score), units, [SCORES], resamples=50).results
    found = found.set_index("statistic")
    assert (found.loc["mean_ppi", "estimate"] == float(score)).all()
    assert (found.loc["mean_difference_ppi", "estimate"] == 0).all()
    rows = found.loc[["mean_ppi", "mean_difference_ppi"]]
    assert (rows["low"] < rows["high"]).all()


EXAMPLE = known_values("prevalence_correction")
COUNTS = EXAMPLE["data"]
CELLS = [COUNTS[name] for name in ("TP", "FP", "FN", "TN")]
PEOPLE, GRADER = np.repeat([[1, 1], [0, 1], [1, 0], [0, 0]], CELLS, axis=0).T
REST = np.arange(COUNTS["unlabeled_n"]) < COUNTS["unlabeled_positive"]


def test_the_reference_values():
    """Resampled intervals, too; holding the unlabelled rate fixed they would be [.371, .513]."""
    expected = EXAMPLE["expected"]
    found, known = rogan_gladen(PEOPLE, GRADER, REST), expected["rogan_gladen"]
    assert found.estimate == pytest.approx(known["estimate"], abs=known["tolerance"])
    assert [found.low, found.high] == pytest.approx(known["delta_method_interval"], abs=0.006)
    ppi = ppi_plus_plus(PEOPLE, GRADER, REST, weight=1, method="normal")
    tuned = ppi_plus_plus(PEOPLE, GRADER, REST, method="normal")
    for of, name in ((ppi, "ppi_lambda_1"), (tuned, "ppi_plus_plus")):
        known = expected[name]
        bounds = [of.estimate, of.low, of.high]
        assert bounds == pytest.approx(known["estimate_low_high"], abs=known["tolerance"])
    assert tuned.weight == pytest.approx(known["lambda"], abs=known["tolerance"])
    drawn = ppi_plus_plus(PEOPLE, GRADER, REST)
    assert (drawn.low, drawn.high) == pytest.approx((tuned.low, tuned.high), abs=0.006)


def test_clusters_widen_what_goes_together():
    """Every unit four times over in one cluster: four times the variance of as many alone."""
    people, grader, rest = (np.repeat(each, 4) for each in (PEOPLE, GRADER, REST))
    clusters = np.repeat(np.arange(1200), 4)
    alone = rogan_gladen(PEOPLE, GRADER, REST)
    together = rogan_gladen(people, grader, rest, clusters=clusters)
    independent = rogan_gladen(people, grader, rest)
    assert together.estimate == pytest.approx(alone.estimate)
    width = alone.high - alone.low
    assert together.high - together.low == pytest.approx(width, rel=0.05)
    assert independent.high - independent.low == pytest.approx(width / 2, rel=0.1)


def test_a_tie_among_people_counts_half_on_either_side():
    """Two items that people part over are one that they affirm and one that they do not."""
    tied = rogan_gladen([*PEOPLE, 0.5, 0.5], [*GRADER, 1, 1], REST)
    split = rogan_gladen([*PEOPLE, 1, 0], [*GRADER, 1, 1], REST)
    for name in ("estimate", "sensitivity", "specificity"):
        assert getattr(tied, name) == getattr(split, name)


@pytest.mark.parametrize(
    ("grades", "rest", "note"),
    [
        (1 - GRADER, REST, "grader_not_informative"),
        (np.ones(200), REST, "grader_not_informative"),
        (GRADER, [], "no_unlabelled_units"),
    ],
)
def test_rogan_gladen_has_nothing_to_divide_by(grades, rest, note):
    found = rogan_gladen(PEOPLE, grades, rest)
    assert np.isnan([found.estimate, found.low, found.high]).all()
    assert found.note == note


def test_degenerate_columns():
    assert rogan_gladen(np.ones(200), GRADER, REST).note == "no_variation"
    found = rogan_gladen(PEOPLE, GRADER, np.zeros(1000))
    assert (found.estimate, found.low) == (0.0, 0.0), "a corrected rate stays a rate"
    assert ppi_plus_plus(np.ones(200), GRADER, REST).estimate == 1.0
    assert ppi_plus_plus(PEOPLE, GRADER, []).note == "no_unlabelled_units"
    constant = ppi_plus_plus(PEOPLE, np.ones(200), np.ones(1000), method="normal")
    assert (constant.estimate, constant.weight) == (0.4, 0.0)
    assert ppi_plus_plus(PEOPLE, 1 - GRADER, 1 - REST).weight == 0.0, "it is never negative"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"grades": GRADER * 2}, "must be 0 or 1"),
        ({"reference": PEOPLE + 0.5}, "between 0 and 1"),
        ({"reference": np.full(200, np.nan)}, "none missing"),
        ({"grades": GRADER[1:]}, "199 items"),
        ({"method": "guess"}, "method is 'guess'"),
        ({"clusters": [1, 2]}, "each of the 1200 items"),
        ({"weight": 2}, "weight is 2"),
    ],
)
def test_bad_input(change, says):
    given = {"reference": PEOPLE, "grades": GRADER, "rest": REST} | change
    of_one = change.keys() & {"weight", "method"}
    functions = [ppi_plus_plus] if of_one else [rogan_gladen, ppi_plus_plus]
    for function in functions:
        with pytest.raises(InputError, match=says):
            function(**given)


def test_a_sample_in_which_nobody_affirmed_has_an_interval():
    """0 of 50: Clopper and Pearson's upper bound of the labelled ones, however many are graded."""
    nobody, few = np.zeros(50), np.repeat([1, 0], [3, 47])
    found = ppi_plus_plus(nobody, few, np.repeat([1, 0], [60, 940]))
    assert (found.estimate, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 50))
    everybody = ppi_plus_plus(1 - nobody, 1 - few, np.repeat([0, 1], [60, 940]))
    assert everybody.low == pytest.approx(0.025 ** (1 / 50))
    # Nobody affirmed: there is no sensitivity to correct by.
    assert rogan_gladen(nobody, few, np.ones(100)).note == "no_variation"


def test_clusters_of_labelled_units_say_how_far_a_rate_can_be_trusted():
    """Four labelled clusters are too few, however many clusters were graded."""
    people, grader = np.repeat([[1, 1], [0, 1], [0, 0]], [10, 5, 25], axis=0).T
    rest = np.repeat([1, 0], [30, 70])
    clusters = [*np.repeat(["a", "b", "c", "d"], 10), *(f"r{unit}" for unit in range(100))]
    found = ppi_plus_plus(people, grader, rest, clusters=clusters)
    assert np.isnan(found.low)
    assert found.note == "too_few_clusters"


def test_one_stratum_is_plain_ppi_and_given_weights_are_ppi_pythons():
    """ppi_py.ppi_mean_pointestimate (0.2.3) of each stratum at lambda .6, by shares 2:3:1, on units
    counted here as (affirmed by both, people alone, the grader alone, neither; rest yes, rest no).
    """
    counts = [(20, 5, 10, 65, 60, 140), (50, 10, 5, 35, 120, 80), (8, 2, 1, 9, 25, 15)]
    sums = []
    for both, people, grader, neither, yes, no in counts:
        labelled = both + people + grader + neither
        sums.append([labelled, both + people, both + grader, both, yes + no, yes])
    strata = RateSums(*np.array(sums, dtype=float).T[:, None, :])
    assert strata.ppi(0.6)[0] == pytest.approx([0.25, 0.63, 0.605])
    first = RateSums(*(part[:, :1] for part in strata[:6]))
    rate, weight = stratified_ppi(first)
    assert rate == pytest.approx(first.ppi(first.ppi_weight)[:, 0])
    assert weight == pytest.approx(first.ppi_weight[:, 0])
    # A stratum without the rest is no number rather than a wrong one.
    rest, rest_graded = strata.n_rest * [1, 1, 0], strata.rest_graded * [1, 1, 0]
    assert np.isnan(stratified_ppi(strata._replace(n_rest=rest, rest_graded=rest_graded))[0]).all()
