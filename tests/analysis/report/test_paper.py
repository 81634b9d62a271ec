"""The paragraphs for a paper hold against studies drawn at random, clause by clause."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis import Scale, analyse
from evenhand.analysis.report import ReportContext
from evenhand.analysis.report.sections.methods import paragraphs
from evenhand.analysis.report.source import Source
from evenhand.texts import number_of
from tests.analysis.make import noisy, ratings_of

THRESHOLD = 0.1


@st.composite
def studies(draw):
    """Ratings of up to three people and two graders, and what is declared of them."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    truth = rng.integers(0, 2, draw(st.sampled_from([5, 40, 90])))
    people = [f"h{n}" for n in range(draw(st.integers(0, 3)))]
    graders = [f"g{n}" for n in range(draw(st.integers(0 if people else 1, 2)))]
    labels = {name: noisy(rng, truth, 2, 0.9, draw(st.sampled_from([0, 0.3]))) for name in people}
    labels |= {name: noisy(rng, truth, 2, 0.85) for name in graders}
    stated = None
    if graders and draw(st.booleans()):
        stated = {graders[0]: np.where(truth == 0, 0.9, 0.05).tolist()}
    ratings = ratings_of(labels, graders, stated)
    if draw(st.booleans()) and people:  # asked, and not answered
        at = ratings.index[ratings["rater_kind"] == "human"][0]
        ratings.loc[at, "label"] = ""
    thresholds = {graders[0]: THRESHOLD} if stated and draw(st.booleans()) else {}
    name = draw(st.sampled_from(["", "tone"]))
    scale = Scale(name, ("1", "2"), affirmative=frozenset("1"), thresholds=thresholds)
    reference = draw(st.sampled_from(["", *people[:1]])) if graders else ""
    rules = {"margin_share": draw(st.sampled_from([0.0, 0.2])), "reference": reference}
    return ratings, scale, stated, rules


@settings(max_examples=15)
@given(studies())
def test_each_clause_is_there_only_if_it_happened(study):
    ratings, scale, stated, rules = study
    found = analyse(ratings, None, [scale], resamples=50, **rules)
    context = ReportContext("study", rubric_titles={"tone": "Tone [1]"})
    methods, *results = paragraphs(Source(found, context)).texts
    human = ratings["rater_kind"] == "human"
    given = ratings[human & (ratings["label"] != "")].groupby("unit_id")["rater_id"].nunique()
    people = sorted(set(ratings.loc[human, "rater_id"]))
    graders = sorted(set(ratings.loc[~human, "rater_id"]))
    who = f"{number_of(len(people), 'annotator')} labelled {number_of(len(given), 'item')}."
    assert (who in methods) == bool(people)
    both = int((given >= 2).sum())
    if len(people) > 1 and both == len(given):
        assert "Each item has labels from two or more annotators." in methods
    elif len(people) > 1:
        assert f"Of these, {number_of(both, 'item')} have labels from two" in methods
    else:
        assert "two or more annotators" not in methods
    assert ("left out 1 label that" in methods) == ((human & (ratings["label"] == "")).any())
    for name in graders:
        assert re.search(rf"\(LLM judges?\).*{name}", methods)
    assert ("grader" in methods.lower()) == bool(graders)  # baselines are none
    assert "audited for bias" not in methods, "no column here could be audited"
    if stated:
        declared = bool(scale.thresholds)
        assert ("from 0.1, a threshold set by hand" in methods) == declared
        assert ("from the rubric's threshold, 0.5" in methods) == (not declared)
    else:
        assert "count as affirmative" not in methods
    compared = found.results.query("statistic == 'human_ceiling_difference'")
    is_compared = compared[compared["rater_b"].isin(graders)]["estimate"].notna().any()
    margin = "20% of the annotators' kappa" if rules["margin_share"] else "margin was 0.1,"
    assert (margin in methods) == (is_compared and not rules["reference"])
    assert ("with the labels of h0" in methods) == bool(rules["reference"])
    deciding = [row["deciding"] for row in found.rows if row["deciding"] and row["deciding"].look]
    levels = {f"{1 - each.alpha:.2%} confidence" for each in deciding}
    assert set(re.findall(r"[\d.]+% confidence", methods)) <= levels
    assert ("Pocock" in methods) == bool(levels)
    told = " ".join(results)
    assert told.count("erdict") == len(found.verdicts)
    for verdict in found.verdicts:
        assert verdict["grader"] in told
    plain = [row for row in found.rows if not row["deciding"]]
    of_95 = {(f"{row['low']:z.2f}", f"{row['high']:z.2f}") for row in plain}
    assert set(re.findall(r"95% CI (\S+) to (\S+?)\)", told)) <= of_95
    among = found.results.query("statistic == 'cohen_kappa' and rater_a == 'humans'")
    among = among[(among["rater_b"] == "") & (among["subset"] == "all")]["estimate"].dropna()
    assert ("appa between annotators was" in told) == (len(among) == 1)
    for estimate in among:
        assert f"was {estimate:z.2f}" in told
    assert ("On Tone (1), " in methods) == (scale.name == "tone")
