"""Verdicts come from bounds: what passes, what fails, and what cannot be told.

A grader that fails in a part of the sample does not pass, and the sentence names the part. What is
plainly wrong with a grader is said, and whose labels it repeats.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenhand.analysis import RESULTS_KEY, Scale, analyse
from evenhand.analysis.bootstrap.bounds import level_of_look
from evenhand.analysis.planning import ScaleScenario
from evenhand.analysis.request import StudyFacts
from evenhand.analysis.verdicts.comparison import _furthest_labels
from evenhand.analysis.verdicts.evidence import IF_WRONG, NON_INFERIORITY, NON_INFERIORITY_PEOPLE
from tests.analysis import make
from tests.cases import one_in

TWO = Scale("tone", ("1", "2"))
BINARY = Scale("tone", ("1", "2"), affirmative=frozenset("2"))
FIVE = Scale("tone", ("1", "2", "3", "4", "5"), "ordinal")
ABC = Scale("best", ("A", "B", "C"))


def beside_people(rng, grader, n=400, people=3, **settings):
    """The verdict on a grader that is so often right, or these labels, beside people at .85."""
    truth = (rng.random(n) < 0.3).astype(int)
    labels = make.people_of(rng, truth, 0.85, people)
    labels["g"] = grader if isinstance(grader, list) else make.noisy(rng, truth, 2, grader)
    found = make.analyse_labels(labels, TWO, **settings)
    keys = set(found.results[list(RESULTS_KEY)].itertuples(index=False, name=None))
    (verdict,) = found.verdicts
    assert {tuple(key) for key in verdict["evidence"]} <= keys
    return verdict


OUTCOMES = {
    "as good as annotators": (
        *({"grader": 0.92}, "can_replace", "within the margin of 0.10"),
        ["g can replace an annotator on tone. It agrees", "% CI +", "400 items", "3 annotators"],
    ),
    "far below human agreement": ({"grader": 0.3}, "do_not_use", None, []),
    "too few labels": (
        *({"grader": 0.85, "n": 150, "margin": 0.1}, "inconclusive"),
        *("label about {more_clusters} more items", ["Label about", "more items"]),
    ),
    "human agreement that may be too low": (
        *({"grader": 0.85, "n": 150, "min_people_kappa": 0.6}, "inconclusive"),
        *("label about {more_clusters} more items", ["agreement may be too low", "margin below"]),
    ),
    "one annotator": (
        *({"grader": 0.9, "people": 1}, "inconclusive", "only one annotator labelled"),
        ["Only one annotator labelled"],
    ),
}


@pytest.mark.parametrize(("study", "code", "reason", "words"), OUTCOMES.values(), ids=OUTCOMES)
def test_a_verdict_on_random_labels(rng, study, code, reason, words):
    verdict = beside_people(rng, **study)
    make.assert_verdict(verdict, code, *words)
    assert reason is None or verdict["reason"] == reason.format(**verdict)


@pytest.mark.parametrize(("n", "label", "people"), one_in(4, [20, 60, 400], "12", [1, 2, 3]))
def test_a_constant_grader_never_passes(rng, n, label, people):
    verdict = beside_people(rng, [label] * n, n, people, margin=1.5)
    assert verdict["verdict"] == ("do_not_use" if n >= 60 else "inconclusive")


def test_nor_does_a_random_one_or_one_beside_people_who_hardly_vary(rng):
    assert beside_people(rng, 0.0, margin=1.5)["verdict"] != "can_replace"
    people = {"ann": "1" * 99 + "2", "ben": "1" * 100, "g": "1" * 100}
    assert make.verdict_on(people, TWO, margin=1.0)["verdict"] != "can_replace"


@pytest.mark.parametrize("people", ["ann", "ann ben"])
@pytest.mark.parametrize("given", ["1112", "1" * 38 + "22", "1" * 95 + "2" * 5])
def test_a_good_grader_that_met_one_kind_of_unit_is_not_refused(people, given):
    """With few units, or few of the rarer kind, a grader that knows both may give one label."""
    verdict = make.verdict_on(dict.fromkeys(people.split(), given) | {"g": "1" * len(given)}, TWO)
    make.assert_verdict(verdict, "inconclusive")
    assert "no realistic number" not in verdict["sentence"].lower()


def test_without_an_item_that_two_annotators_labelled_a_second_one_is_asked_for():
    labels = {"ann": "12" * 20 + "-" * 40, "ben": "-" * 40 + "12" * 20, "g": "12" * 40}
    verdict = make.verdict_on(labels, TWO)
    make.assert_verdict(verdict, "inconclusive", "Have a second annotator label 60 items drawn")
    assert verdict["next"] == {"kind": "overlap", "number": 60}


def test_perfect_agreement_on_few_clusters_is_not_enough():
    ratings = make.ratings_of({"ann": "12" * 20, "ben": "12" * 20, "g": "12" * 20})
    clusters = [f"c{n // 4}" for n in range(40)]
    units = ratings[["unit_id"]].drop_duplicates().assign(cluster_id=clusters)
    (verdict,) = analyse(ratings, units, [TWO], resamples=20).verdicts
    # A grader at the margin errs in 1 of 20, so that ten without an error are what it mostly shows.
    words = "Its kappa with annotators could be more than the margin below human agreement"
    make.assert_verdict(verdict, "inconclusive", words)
    assert verdict["more_clusters"] <= 100


def test_where_nothing_can_be_said_nothing_is_said_to_hold():
    alone = make.verdict_on({"g": "12" * 40}, TWO)
    make.assert_verdict(alone, "inconclusive", "No annotator has labelled")
    constant = make.verdict_on(dict.fromkeys(("ann", "ben", "g"), "1" * 50), TWO)
    make.assert_verdict(constant, "inconclusive")
    assert "Not known" not in constant["sentence"]


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize(
    ("unscored", "code", "words"),
    [
        (80, "do_not_use", "no label on 20% of 400 items"),
        (40, "inconclusive", "answered 90.0% of what it was asked"),
        (16, "can_replace", "No label from this grader on 16 items (4%)"),
    ],
)
def test_coverage(rng, absent, unscored, code, words):
    """A row that is missing is no more an answer than an empty one."""
    truth = rng.integers(0, 2, 400)
    labels = make.people_of(rng, truth, 0.85) | {"g": make.noisy(rng, truth, 2, 0.97)}
    labels["g"][:unscored] = ["-" if absent else ""] * unscored
    verdict = make.verdict_on(labels, TWO)
    make.assert_verdict(verdict, code, words)
    assert ("absent" in verdict["sentence"]) == (absent and code != "can_replace")


def test_labels_that_pass_do_not_speak_for_binary_verdicts(rng):
    """A grader that labels as people do, with probabilities far too low for the threshold."""
    truth = (rng.random(400) < 0.4).astype(int)
    labels = make.people_of(rng, truth, 0.85) | {"g": make.noisy(rng, truth, 2, 0.9)}
    ratings = make.ratings_of(labels, positive={"g": [0.1 * int(label) for label in labels["g"]]})
    (verdict,) = analyse(ratings, None, [BINARY], resamples=20).verdicts
    words = "This does not hold for its binary labels (difference -"
    make.assert_verdict(verdict, "can_replace", words)
    assert verdict["holds_for"] == "labels"
    assert verdict["reason"] == "labels only: its binary labels fall short"


@pytest.mark.parametrize("look", [0, 15])
def test_no_sentence_has_a_bound_that_does_not_exist(rng, look):
    """A constant label with probabilities, at a look for which hardly any level is left."""
    truth = rng.random(36) < 0.4
    people = {f"h{k}": np.where(truth ^ (rng.random(36) < 0.06), "2", "1") for k in range(3)}
    p = np.clip(0.1 + 0.25 * truth + rng.normal(0, 0.1, 36), 0, 0.49)
    ratings = make.ratings_of({**people, "g": "1" * 36}, positive={"g": p})
    facts = StudyFacts(looks={"tone": look})
    (verdict,) = analyse(ratings, None, [BINARY], resamples=20, facts=facts).verdicts
    make.assert_verdict(verdict, "inconclusive")
    assert not [each for each in ("—", "100% CI") if each in verdict["sentence"]]
    assert ("make a report when you want a verdict" in verdict["sentence"]) == (look == 0)


@pytest.mark.parametrize(("ordered", "least"), [("linear", "0.17"), ("quadratic", "0.31")])
def test_people_must_agree_as_much_on_a_scale_as_on_two_categories(rng, ordered, least):
    raters = ScaleScenario(1, 5, 0.15, 3.0).draw(rng, (1, 300), 3, graders=1)[:, 0]
    labels = dict(zip(("h0", "h1", "h2", "g"), raters, strict=True))
    scale = Scale("r", ("0", "1", "2", "3", "4"), "ordinal")
    assert f"{least} is needed" in make.verdict_on(labels, scale, ordered=ordered)["sentence"]


PARTS = {
    "a failing part fails": (*(1000, 50, 50, {}, "only_with_correction", ["not for slice=rare"]),),
    # On the whole it lies within the margin by its estimate, and may or may not be below.
    "labels are not promised to help who fails in a part": (
        *(1000, 80, 80, {"margin": 0.08, "min_information": 1}, "inconclusive"),
        ["could be more than the margin below", "probably fail (falls short for slice=rare)"],
    ),
    "nothing is known of parts that nobody looked at": (
        *(1000, 50, 50, {"slices": ()}, "can_replace", []),
    ),
    "parts that are looked at and fine are named": (
        *(1000, 0, 400, {}, "can_replace"),
        ["holds in every part analysed (slice=rare, slice=usual)"],
    ),
    "a part that is too small is not known": (
        *(600, 12, 12, {}, "can_replace"),
        ["within the margin in slice=usual; too few labels to tell in 1 of 2"],
    ),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_grader_that_is_inverted_on_the_first_units(rng, part):
    n, inverted, rare, settings, code, words = PARTS[part]
    truth = rng.integers(0, 2, n)
    labels = make.people_of(rng, truth, 0.85)
    labels["g"] = make.noisy(rng, np.where(np.arange(n) < inverted, 1 - truth, truth), 2, 0.93)
    where = np.where(np.arange(n) < rare, "rare", "usual")
    asked = {"resamples": 20, "slices": ("slice",), **settings}
    names = [f"u{unit:05d}" for unit in range(n)]
    units = pd.DataFrame({"unit_id": names, "cluster_id": names, "slice": where})
    (verdict,) = analyse(make.ratings_of(labels), units, [TWO], **asked).verdicts
    make.assert_verdict(verdict, code, *words)
    if "would probably fail" in verdict["reason"]:  # never without its cause
        assert verdict["reason"].startswith("falls short for slice=rare; ")
    assert ("nor in every part of the sample" in verdict["limits"]) == (asked["slices"] == ())
    if code == "only_with_correction":
        assert verdict["reason"] == "falls short for slice=rare"
    assert code != "inconclusive" or not verdict["promising"]


@pytest.fixture
def truth(rng):
    return rng.integers(0, 5, 300)


@pytest.fixture
def people(rng, truth):
    """Three people on a scale of five."""
    return make.people_of(rng, truth, 0.8, q=5)


@pytest.mark.parametrize(
    ("seen", "words"),
    [(lambda truth: 4 - truth, "looks inverted"), (lambda truth: np.minimum(truth + 2, 4), "")],
)
def test_plain_faults(truth, people, seen, words):
    assert_fault(people | {"g": [FIVE.categories[code] for code in seen(truth)]}, words)


def assert_fault(labels, words):
    verdict = make.verdict_on(labels, FIVE)
    assert verdict["verdict"] in ("do_not_use", "only_with_correction")
    assert words in verdict["sentence"]


def test_one_category_too_high(rng):
    truth = rng.integers(0, 4, 300) // 2 + 1  # 2 and 3 of five
    labels = {f"h{k}": [FIVE.categories[t] for t in truth] for k in range(3)}
    for each in labels.values():
        for at in rng.integers(0, 300, 30):
            each[at] = FIVE.categories[rng.integers(1, 3)]
    assert_fault(labels | {"g": [FIVE.categories[t + 1] for t in truth]}, "one category too high")


def test_exchanged_categories(rng):
    truth = rng.integers(0, 3, 300)
    given = make.people_of(rng, truth, 0.8, q=3) | {"g": np.array(["2", "1", "3"])[truth]}
    labels = {who: ["ABC"[int(label) - 1] for label in own] for who, own in given.items()}
    assert "exchange categories: read A as B, B as A" in make.verdict_on(labels, ABC)["sentence"]


def test_a_copy_of_a_person_is_not_set_beside_that_person(people):
    found = make.analyse_labels(people | {"g": people["h1"]}, FIVE)
    (verdict,) = found.verdicts
    assert "Its labels are those of h1 on 100% of items" in verdict["sentence"]
    assert ", two annotators)" in verdict["sentence"]
    rows = found.results.query("rater_a == 'humans' and rater_b == 'g' and subset == 'all'")
    assert rows.set_index("statistic").loc["weighted_kappa_quadratic", "estimate"] < 0.95


def test_a_copy_of_one_of_two_leaves_nobody_to_compare_with(people):
    verdict = make.verdict_on({"h0": people["h0"], "h1": people["h1"], "g": people["h1"]}, FIVE)
    make.assert_verdict(verdict, "inconclusive", "only one other annotator labelled")


def test_fewer_differences_never_lower_the_bound_of_human_agreement():
    lows = []
    for differences in range(0, 14, 2):
        ben = "21" * (differences // 2) + "12" * (30 - differences // 2)
        found = make.analyse_labels({"ann": "12" * 30, "ben": ben, "g": "12" * 30}, TWO)
        lows.append(make.row_of(found, "people_kappa", "humans", "g")["low"])
    assert lows == sorted(lows, reverse=True)
    # By Clopper & Pearson, as chance agreement is a half.
    assert lows[2] == pytest.approx(1 - 2 * stats.beta.ppf(1 - level_of_look(1), 5, 56))


def test_two_graders_with_the_same_labels(truth, people):
    grader = [FIVE.categories[code] for code in truth]
    one, other = make.analyse_labels(people | {"g": grader, "k": grader}, FIVE, ["g", "k"]).verdicts
    assert "Every label is the same as that of g." in other["sentence"]
    assert one["verdict"] == other["verdict"]


def test_people_who_are_alike_hide_a_copy_of_both_and_are_named(people):
    """Who copied whom, or whether both are right, cannot be told: it decides nothing."""
    found = make.analyse_labels(people | {"h3": people["h1"], "g": people["h1"]}, FIVE)
    (note,) = found.notes
    assert note.startswith("tone: h1 and h3 gave the same label on every item that they share.")
    assert "labels are those of" not in found.verdicts[0]["sentence"]


@pytest.fixture
def labels(rng):
    """Three annotators and a grader that is right a little less often than they."""
    truth = rng.integers(0, 2, 400)
    people = make.people_of(rng, truth, 0.93)
    return {**people, "g": make.noisy(rng, truth, 2, 0.91), "truth": [str(n + 1) for n in truth]}


def without_half_of_its_errors(labels):
    """The grader's labels, every other wrong one left out."""
    pairs = zip(labels["g"], labels["truth"], strict=True)
    left_out = [n for n, (own, true) in enumerate(pairs) if own != true][::2]
    return ["" if n in left_out else own for n, own in enumerate(labels["g"])]


def judged(labels, **more):
    given = {name: own for name, own in labels.items() if name != "truth"}
    return make.analyse_labels(given, TWO, **more)


def test_a_pass_that_rests_on_missing_answers_says_so(labels):
    found = judged({**labels, "g": without_half_of_its_errors(labels)})
    (verdict,) = found.verdicts
    worst = make.row_of(found, IF_WRONG, "humans", "g", at="")
    assert worst["low"] <= -0.1 < make.row_of(found, NON_INFERIORITY, "humans", "g", at="")["low"]
    words = "It would not pass if every missing label were wrong (difference -"
    make.assert_verdict(verdict, "can_replace", words, f"{worst['n_units']} items")
    assert verdict["reason"] == "within the margin of 0.10; not if missing labels were wrong"
    assert ["tone", IF_WRONG, "humans", "g", "all", ""] in verdict["evidence"]


def test_the_chance_is_about_the_annotators_that_the_verdict_is_about(labels):
    scopes = ("these", "like_these")
    these, like_these = (judged(labels, scope=scope).verdicts[0]["chance"] for scope in scopes)
    assert 0.5 < like_these < these


@pytest.mark.parametrize("scope", ["these", "like_these"])
def test_the_worst_case_is_that_of_the_same_labels_given_wrong(labels, scope):
    """As a second implementation: the label that fewer annotators gave, written into the table."""
    answered = without_half_of_its_errors(labels)
    people = zip(*(labels[f"h{k}"] for k in range(3)), strict=True)
    other = ["2" if given.count("1") > 1 else "1" for given in people]
    filled = [own or wrong for own, wrong in zip(answered, other, strict=True)]
    found = judged({**labels, "g": answered}, scope=scope)
    given = judged({**labels, "g": filled}, scope=scope)
    deciding = NON_INFERIORITY if scope == "these" else NON_INFERIORITY_PEOPLE
    worst = make.row_of(found, IF_WRONG, "humans", "g", at="")
    same = make.row_of(given, deciding, "humans", "g", at="")
    for end in ("n_units", "estimate", "low", "high"):
        assert worst[end] == pytest.approx(same[end], abs=1e-12), end
    assert not any(row["statistic"] == IF_WRONG for row in given.rows), "nothing is missing there"
    assert "missing answer" not in given.verdicts[0]["sentence"]


def test_it_is_there_at_a_threshold_chosen_on_other_units(labels, rng):
    truth = np.array(labels["truth"]) == "2"
    p = np.clip(0.1 + 0.2 * truth + rng.normal(0, 0.05, 400), 0, 0.49)
    people = {name: labels[name] for name in ("h0", "h1", "h2")}
    ratings = make.ratings_of(people | {"g": ["-"] * 8 + ["1"] * 392}, positive={"g": p})
    found = analyse(ratings, None, [BINARY], resamples=20)
    (verdict,) = found.verdicts
    assert verdict["verdict"] == "can_replace_at_threshold"
    worst = make.row_of(found, IF_WRONG, "humans", "g", at="held_out")
    assert worst["n_units"] == 400
    assert f"were wrong (difference {worst['estimate']:+.2f}" in verdict["sentence"]


# The one that fewest chose; of two that nobody chose the one that is commoner elsewhere. On a scale
# the further end; from the middle the one nearer to what is said elsewhere.
@pytest.mark.parametrize(
    ("level", "furthest"), [("nominal", [2, 0, 2, 1]), ("ordinal", [2, 0, 2, 2])]
)
def test_a_wrong_answer_is_the_furthest_from_the_unit_s_annotators(level, furthest):
    said = [[0, 0], [2, 1], [1, 1], [2, 0], [2, 2], [2, 2]]
    view = make.coded_of(np.array([[*own, -1] for own in said]), level)
    units = np.array([True] * 4 + [False] * 2)
    assert _furthest_labels(view, [0, 1], units, np.ones(6)).tolist() == furthest


def test_a_unit_without_an_annotator_is_no_missing_answer():
    """Nor is one that was never put to the grader."""
    people = {f"h{k}": "12" * 30 + " " * 4 for k in range(3)}
    ratings = make.ratings_of({**people, "g": "12" * 30 + "  11"})
    ratings = ratings[ratings["label"].str.strip() != ""]
    found = analyse(ratings, None, [TWO], resamples=20)
    assert not any(row["statistic"] == IF_WRONG for row in found.rows)


@pytest.mark.thorough
def test_good_graders_are_seldom_said_to_fail_in_a_part():
    """Synthetic: 8 parts of 40 units, as good as people; a false alarm in 2.5% at most."""
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = (rng.random(320) < 0.3).astype(int)
        labels = make.people_of(rng, truth, 0.7) | {"g": make.noisy(rng, truth, 2, 0.7)}
        ratings = make.ratings_of(labels)
        units = pd.DataFrame({"unit_id": ratings["unit_id"].unique()})
        units["cluster_id"], units["part"] = units["unit_id"], [f"p{n % 8}" for n in range(320)]
        (verdict,) = analyse(ratings, units, [TWO], resamples=10, slices=("part",)).verdicts
        alarms += "not for part" in verdict["sentence"]
    assert alarms <= 4  # more than 4 of 40 at 2.5% happen once in 300
