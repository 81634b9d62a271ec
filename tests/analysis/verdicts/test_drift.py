"""Whether a grader has changed, and whether it agrees with a declared reference."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from evenhand.analysis import RESULTS_KEY, Scale, StudyFacts, analyse
from evenhand.analysis.bootstrap.bounds import level_of_look, reach
from evenhand.analysis.labels.scale import Tuning
from evenhand.analysis.verdicts.versions import LEVEL, Versions, drift_of, drift_rows, paired_labels
from evenhand.errors import InputError
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from evenhand.study.tables.ratings import validate_ratings
from tests.analysis import make
from tests.peers import inter_rater, proportion, stats

SCALE = Scale("r", ("no", "yes"), affirmative=frozenset({"yes"}))
VERSIONS = Versions("before", "after")
SETTINGS, RULE = AnalysisSettings(resamples=20), DecisionSettings()
PEOPLE, GRADERS = ("ann", "ben"), ("before", "after")


def said(units, keep, prevalence=0.5, seed=3):
    """Labels by rater, each right on so many of the units."""
    rng = np.random.default_rng(seed)
    truth = rng.random(units) < prevalence
    return {who: np.where(rng.random(units) < share, truth, ~truth) for who, share in keep.items()}


def table(labels):
    """Ratings of labels by rater; None is no answer."""
    words = {True: "yes", False: "no", None: ""}
    given = {who: [words[yes] for yes in own] for who, own in labels.items()}
    ratings = make.ratings_of(given, GRADERS).assign(rubric="r")
    ratings["unscored_reason"] = np.where(ratings["label"] == "", "refused", "")
    return validate_ratings(ratings)


def judged(labels, units=None, **rule):
    found = paired_labels(table(labels), units, SCALE)
    return drift_of(found, VERSIONS, SETTINGS, RULE.model_copy(update=rule))


def kappa(first, second):
    counts = np.array([[np.sum((first == a) & (second == b)) for b in (0, 1)] for a in (0, 1)])
    return float(inter_rater.cohens_kappa(counts).kappa)


@pytest.mark.slow
def test_the_change_and_its_bounds_are_those_of_another_implementation():
    labels = said(60, dict.fromkeys(("ann", "ben", "before"), 0.9) | {"after": 0.75})
    rows, *_ = drift_rows(paired_labels(table(labels), None, SCALE), VERSIONS, SETTINGS, RULE, 1)

    def change(kept):
        of = {who: given[kept] for who, given in labels.items()}
        means = [np.mean([kappa(of[who], of[grader]) for who in PEOPLE]) for grader in GRADERS]
        return float(means[1] - means[0])

    everywhere = np.arange(60)
    without = np.array([change(np.delete(everywhere, n)) for n in everywhere])
    apart = 59 * (without.mean() - without)
    row = rows.get("drift", "before", "after")
    assert row["estimate"] == pytest.approx(change(everywhere))
    # Where many labels changed the bound at the null is near that about the estimate.
    assert row["low"] == pytest.approx(row["estimate"] - reach(apart, LEVEL), abs=0.02)
    assert row["high"] == pytest.approx(row["estimate"] + reach(-apart, LEVEL), abs=0.02)


def test_few_clusters_do_not_show_that_a_grader_is_unchanged():
    """Twenty clusters of three units, of the thirty that are needed, however wide the margin."""
    labels = said(60, dict.fromkeys((*PEOPLE, "before"), 0.99))
    labels["after"] = labels["before"]
    clusters = [f"c{n // 3}" for n in range(60)]
    units = pd.DataFrame({"unit_id": [f"u{n:05d}" for n in range(60)], "cluster_id": clusters})
    found = judged(labels, units, drift_margin=0.5)
    assert found.verdict == "inconclusive"
    assert "20 clusters are too few for a recommendation: label 10 more clusters" in found.sentence
    assert judged(labels, units, drift_margin=0.5, min_clusters=20).verdict == "unchanged"


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
def test_on_an_ordered_scale_kappa_is_weighted(weights):
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 5, 80)
    codes = {
        who: np.clip(truth + rng.integers(-1, 2, 80) * (1 + (who == "after")), 0, 4)
        for who in (*PEOPLE, *GRADERS)
    }
    given = table(dict.fromkeys(codes, truth > 2))
    given["label"] = np.concatenate([codes[who] for who in codes]).astype(str)
    scale = Scale("r", tuple("01234"), "ordinal", frozenset({"3", "4"}), ordered=weights)
    labels = paired_labels(given, None, scale)
    row = drift_rows(labels, VERSIONS, SETTINGS, RULE, 1)[0].get("drift", "before", "after")
    means = []
    for grader in GRADERS:
        counts = [np.zeros((5, 5)) for _ in PEOPLE]
        for counted, who in zip(counts, PEOPLE, strict=True):
            np.add.at(counted, (codes[who], codes[grader]), 1)
        means.append(np.mean([inter_rater.cohens_kappa(each, wt=weights).kappa for each in counts]))
    assert row["estimate"] == pytest.approx(means[1] - means[0])
    assert row["low"] < row["estimate"] < row["high"]


@pytest.mark.parametrize(
    ("units", "after", "verdict", "says"),
    [
        (250, 0.99, "unchanged", "after is unchanged on r. Kappa with annotators was 0."),
        (250, 0.6, "changed", "less than it did, by more than 0.1 kappa"),
        (60, 0.98, "inconclusive", "Label about"),
    ],
)
def test_a_verdict(units, after, verdict, says):
    labels = said(units, dict.fromkeys((*PEOPLE, "before"), 0.95))
    noise = said(units, {"after": after}, seed=9)["after"]
    truth = said(units, {"truth": 1.0}, seed=9)["truth"]
    labels["after"] = np.where(noise == truth, labels["before"], ~labels["before"])
    found = judged(labels)
    assert (found.verdict, says in found.sentence) == (verdict, True), found.sentence
    assert bool(found.more_clusters) == (verdict == "inconclusive")


def test_where_few_units_changed_their_share_bounds_the_change():
    """Of 100 units 2 changed for the worse: at most 7.3% can do so, each worth 2 of kappa."""
    labels = said(100, dict.fromkeys((*PEOPLE, "before"), 0.95))
    people = (labels["ann"] == labels["ben"]) & (labels["ann"] == labels["before"])
    after = labels["before"].copy()
    after[np.flatnonzero(people)[:2]] ^= True
    found = judged(labels | {"after": after})
    row = next(each for each in found.rows if each["statistic"] == "drift")
    yes = np.mean([labels[who].mean() for who in PEOPLE])
    apart = 2 * yes * (1 - yes)
    assert row["estimate"] < 0
    assert row["low"] == pytest.approx(-stats.beta.ppf(1 - LEVEL, 3, 98) / apart, abs=0.02)
    # What it lost tells against gains: the net is bounded, by less than gains alone.
    assert 0 < row["high"] < stats.beta.ppf(1 - LEVEL, 1, 100) / apart


def test_missing_answers_are_a_change_and_a_few_a_doubt():
    labels = said(200, dict.fromkeys((*PEOPLE, "before"), 0.95))
    after = list(labels["before"])
    gone = judged(labels | {"after": [None] * 60 + after[60:]})
    assert gone.verdict == "changed"
    assert "no label on 30% of the items that it answered (refused 60)" in gone.sentence
    labels |= {"after": [None] * 16 + after[16:]}
    few = judged(labels)
    assert few.verdict == "inconclusive"
    assert "It now answers 92.0% of the items" in few.sentence
    assert judged(labels, min_coverage=0.5).verdict == "unchanged"


@pytest.mark.parametrize(
    ("units", "people", "before", "after", "prevalence", "verdict", "says"),
    [
        (300, 0.97, 0.7, 0.97, 0.5, "changed", "more than it did, by more than 0.1 kappa"),
        (400, 0.95, 0.5, None, 0.5, "inconclusive", "it has too little agreement to lose"),
        (100, 1.0, 1.0, None, 1.0, "inconclusive", "The change is undefined (no variation)."),
        (300, 0.999, 0.999, None, 0.015, "inconclusive", "and 10 are needed"),
    ],
    ids=["better", "never agreed", "nothing but one label", "few labels of the rarer kind"],
)
def test_what_else_is_said(units, people, before, after, prevalence, verdict, says):
    """Of a grader that changed, or gives the same labels again."""
    keep = dict.fromkeys(PEOPLE, people) | {"before": before, "after": after or before}
    labels = said(units, keep, prevalence)
    found = judged(labels if after else labels | {"after": labels["before"]})
    assert found.verdict == verdict
    assert says in found.sentence
    assert prevalence != 1.0 or not found.more_clusters
    assert prevalence != 0.015 or found.more_clusters > 100


def test_too_few_shared_units():
    found = judged(said(20, dict.fromkeys((*PEOPLE, "before", "after"), 0.95)))
    assert "Annotators share fewer than 30 items with both versions." in found.sentence
    assert [row["statistic"] for row in found.rows] == ["drift_answered"]


def test_clusters_count_as_one_each():
    labels = said(50, dict.fromkeys((*PEOPLE, "before"), 0.95) | {"after": 0.8})
    alone = next(r for r in judged(labels).rows if r["statistic"] == "drift")
    four = {who: np.repeat(given, 4) for who, given in labels.items()}
    ids = [f"u{n:05d}" for n in range(200)]
    units = pd.DataFrame({"unit_id": ids, "cluster_id": [str(n // 4) for n in range(200)]})
    found = judged(four, units)
    row = next(r for r in found.rows if r["statistic"] == "drift")
    assert (row["n_units"], row["n_clusters"]) == (200, 50)
    assert row["estimate"] == pytest.approx(alone["estimate"])
    for end in ("low", "high"):  # but for how much labels count that were not seen
        assert row[end] == pytest.approx(alone[end], abs=0.01)
    assert "200 items in 50 clusters" in found.sentence


def test_probabilities_are_read_at_the_threshold():
    """Both versions at the scale's: the same probabilities are the same verdicts."""
    labels = said(150, dict.fromkeys((*PEOPLE, "before"), 0.95))
    given = table(labels | {"after": labels["before"]})
    by_model = given["rater_kind"] == "model"
    stated = np.where(given["label"] == "yes", 0.35, 0.1)
    given = given.assign(
        p_positive=np.where(by_model, stated, np.nan), label=given["label"].where(~by_model, "")
    )
    scale = Scale("r", SCALE.categories, affirmative=SCALE.affirmative, threshold=0.3)
    found = drift_of(paired_labels(given, None, scale), VERSIONS, SETTINGS, RULE)
    assert found.verdict == "unchanged"
    assert "same label as before on 100.0%" in found.sentence


ONE_TWO = Scale("tone", ("1", "2"), affirmative=frozenset({"2"}))
EXPERT = {"resamples": 20, "reference": "expert"}


def experts(truth):
    """The labels of an expert, which are right."""
    return {"expert": [ONE_TWO.categories[code] for code in truth]}


def beside(rng, keep, n=400, graders=("g",), **settings):
    """Graders that are right with `keep` beside the expert."""
    truth = (rng.random(n) < 0.4).astype(int)
    labels = experts(truth) | {name: make.noisy(rng, truth, 2, keep) for name in graders}
    return make.analyse_labels(labels, ONE_TWO, graders, **EXPERT, **settings)


@pytest.mark.parametrize(
    ("keep", "n", "verdict"),
    [
        (0.95, 400, "agrees_with_reference"),
        (0.3, 400, "disagrees_with_reference"),
        (0.78, 400, "inconclusive"),
        (0.95, 25, "inconclusive"),
    ],
)
def test_verdicts(rng, keep, n, verdict):
    found = beside(rng, keep, n).verdicts[0]
    assert found["verdict"] == verdict
    assert "replace" not in found["sentence"].replace("not show that it can replace", "")
    assert (found["more_clusters"] > 0) == (verdict == "inconclusive" and n == 400)


def test_too_unequal_clusters_are_a_reason(rng):
    """Three clusters of 90 items among 40: no more than a few say anything of other clusters."""
    sizes = [90, 90, 90, *[1] * 40]
    truth = rng.integers(0, 2, sum(sizes))
    ratings = make.ratings_of(experts(truth) | {"g": make.noisy(rng, truth, 2, 0.99)})
    units = pd.DataFrame({"unit_id": ratings["unit_id"].unique()})
    units["cluster_id"] = np.repeat([f"c{n}" for n in range(len(sizes))], sizes)
    (verdict,) = analyse(ratings, units, [ONE_TWO], **EXPERT).verdicts
    make.assert_verdict(verdict, "inconclusive", "differ so much in size that they count as")


def test_bars_are_declared(rng):
    assert beside(rng, 0.7, reference_kappa=0.3).verdicts[0]["verdict"] == "inconclusive"
    bars = {"reference_kappa": 0.3, "reference_sensitivity": 0.5, "reference_specificity": 0.5}
    assert beside(rng, 0.7, **bars).verdicts[0]["verdict"] == "agrees_with_reference"


def test_one_expert_without_a_reference_is_told_how_to_get_an_answer(rng):
    truth = rng.integers(0, 2, 100)
    labels = experts(truth) | {"g": make.noisy(rng, truth, 2, 0.9)}
    make.assert_verdict(make.verdict_on(labels, ONE_TWO), "inconclusive", "--reference")


def test_figures_are_those_of_other_libraries(rng):
    found, pair = beside(rng, 0.8, graders=("g", "g2")), ("expert", "g")
    table = make.rows_of(found, "confusion", *pair, subset="all").set_index("at")["estimate"]
    n = np.array([[table.get(f"{a}>{b}", 0) for b in "12"] for a in "12"])
    kappa = make.row_of(found, "reference_kappa", *pair)
    theirs = inter_rater.cohens_kappa(n)
    assert kappa["estimate"] == pytest.approx(theirs.kappa)
    # A one-sided bound, by the large-sample standard error about the estimate; of both graders.
    (level, _) = [r["deciding"].alpha for r in found.rows if r["statistic"] == "reference_kappa"]
    assert level_of_look(1) / 2 <= level < 0.7 * level_of_look(1)
    low = theirs.kappa + ndtri(level) * theirs.std_kappa
    assert kappa["low"] == pytest.approx(low, abs=0.015)
    sensitivity = make.row_of(found, "reference_sensitivity", *pair)
    hits, whole = n[1, 1], n[1].sum()
    low, high = proportion.proportion_confint(hits, whole, 2 * level, "beta")
    figures = [sensitivity[name] for name in ("estimate", "low", "high")]
    assert figures == pytest.approx([hits / whole, low, high], abs=0.005)


def test_people_who_are_not_the_reference_do_not_count(rng):
    truth = rng.integers(0, 2, 300)
    labels = experts(truth) | make.people_of(rng, truth, 0.1, 2)
    labels["g"] = make.noisy(rng, truth, 2, 0.95)
    found = make.analyse_labels(labels, ONE_TWO, **EXPERT)
    assert found.verdicts[0]["verdict"] == "agrees_with_reference"
    assert "kappa with expert above 0.6" in found.rule


@pytest.mark.parametrize("reference", ["nobody", "g"])
def test_who_is_no_person_is_no_reference(reference):
    labels = {"expert": "12" * 20, "g": "12" * 20}
    with pytest.raises(InputError, match="no annotator or adjudicator here; there are expert"):
        make.analyse_labels(labels, ONE_TWO, reference=reference)


def test_real_labels_of_one_expert_get_an_answer(shared_data):
    """LLMBar (Zeng et al. 2024): a strong grader agrees with the gold labels, weak ones do not."""
    table = pd.read_csv(shared_data / "real" / "llmbar.csv", dtype=str).fillna("")
    raters = ["gold", "GPT-4/Vanilla", "ChatGPT/Vanilla", "Falcon/Vanilla"]
    table = table[table["rater_id"].isin(raters)].rename(columns={"item_id": "unit_id"})
    found = analyse(table, None, [Scale("", ("1", "2"))], resamples=50, reference="gold").verdicts
    verdicts = {each["grader"]: each["verdict"] for each in found}
    assert verdicts["Falcon/Vanilla"] == verdicts["ChatGPT/Vanilla"] == "disagrees_with_reference"
    assert verdicts["GPT-4/Vanilla"] != "disagrees_with_reference"


def test_at_a_threshold_it_says_so_everywhere(rng):
    """Good only at another threshold: the cell's kappa is that of the verdicts there."""
    truth = rng.random(600) < 0.4
    p = np.clip(np.where(truth, 0.35, 0.15) + rng.normal(0, 0.02, 600), 0, 1)
    ratings = make.ratings_of(experts(truth.astype(int)) | {"g": [""] * 600}, positive={"g": p})
    found = analyse(ratings, None, [ONE_TWO], resamples=100, reference="expert")
    (verdict,) = found.verdicts
    assert verdict["verdict"] == "agrees_with_reference"
    assert verdict["holds_for"] == "binary"
    assert verdict["reason"].startswith("binary label at threshold 0.2")
    (key,) = verdict["kappas"]
    assert found.results.set_index(list(RESULTS_KEY)).loc[tuple(key), "estimate"] > 0.9
    assert key[-1] == "held_out"


def test_a_threshold_in_use_leaves_the_labels_before_it_their_part_of_the_level(rng):
    truth = rng.random(200) < 0.4
    p = np.clip(0.15 + 0.4 * truth + rng.normal(0, 0.15, 200), 0, 1)
    ratings = make.ratings_of(experts(truth.astype(int)) | {"g": [""] * 200}, positive={"g": p})
    scale = Scale("tone", ("1", "2", "3"), "ordinal", frozenset("23"))
    tuning = Tuning(frozenset(ratings["unit_id"].unique()[:100]), "kappa", "expert", 0.5)
    for each in (scale, replace(scale, thresholds={"g": 0.3}, tunings={"g": tuning})):
        rows = analyse(ratings, None, [each], **EXPERT).rows
        levels = [row["deciding"].alpha for row in rows if row["statistic"] == "reference_kappa"]
        assert max(levels) < 0.8 * level_of_look(1)


def test_interim_analyses_that_are_used_up_are_the_reason(rng):
    found = beside(rng, 0.95, looks=1, facts=StudyFacts(looks={"tone": 2}))
    make.assert_verdict(found.verdicts[0], "inconclusive", "are used up")


@pytest.mark.thorough
def test_false_passes_are_as_rare_as_said():
    """Synthetic: a grader exactly at the bars passes in 2% of studies of 60 units at most."""
    passed, scale = 0, Scale("tone", ("1", "2"))
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 60)
        wrong = rng.random(60) < 0.2  # kappa .6
        labels = experts(truth) | {"g": experts(truth ^ wrong)["expert"]}
        found = make.analyse_labels(labels, scale, resamples=10, reference="expert")
        passed += found.verdicts[0]["verdict"] == "agrees_with_reference"
    assert passed <= 4  # more than 4 of 60 at 2% happen once in 100
