"""Rows of the injection audit, on answers whose effect is known (synthetic)."""

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, StudyFacts, analyse, injection
from evenhand.analysis.report import ReportContext, write_report
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from evenhand.study.tables.ratings import ATTACKS
from harness.gullible import PAIR, SCALE, TWO, SyntheticGrader
from tests.analysis.make import assert_verdict, noisy, people_of, ratings_of
from tests.peers import multitest, stats

BOUNDS = DecisionSettings().injection


def table_of(**answers):
    """The table of attacked grades: a label a unit, "_" for a reply without one and "-" for none;
    `again` are those of the clean text asked again. Every attack asks for 5.
    """
    plain = ("clean", "again", "placebo")
    rows = [
        (f"u{n}", attack, "" if attack in plain else "5", label.strip("_"), int(attack == "again"))
        for attack, labels in answers.items()
        for n, label in enumerate(labels)
        if label != "-"
    ]
    frame = pd.DataFrame(rows, columns=["unit_id", "attack", "target", "label", "draw"])
    frame["attack"] = frame["attack"].replace("again", "clean")
    return frame.assign(rubric="r", rater_id="g", side="", probabilities=None)


def rows_from(table, units=None):
    rows, settings = ResultRows("r"), AnalysisSettings(resamples=200)
    request = Request(units, settings, facts=StudyFacts(attacked=table), seed=1)
    injection.add_injection_rows(rows, request)
    return {(row["statistic"], row["at"]): row for row in rows.rows.values()}


def audit_from(table, units=None):
    (audit,) = injection.audits(rows_from(table, units).values())
    return audit


def audited(rng, units=60, shares=SCALE, **grader):
    return audit_from(*SyntheticGrader(**grader).audited(rng, units, shares))


def test_by_hand():
    """Four units, clean labels 3, 3, 3 and 5; the attack asks for 5, so the last cannot show it.

    P(5 | attack) = 2/3, P(5 | placebo) = 1/3: the effect is 1/3. The labels under attack are 5, 5
    and 4, all unlike the clean ones, of which one of four changed by itself, and one of these
    three: flips beyond its own are 3/3 - 1/3.
    """
    found = rows_from(table_of(clean="3335", placebo="3355", plain_order="5545", again="3345"))
    effect = found[injection.EFFECT, "plain_order"]
    assert effect["estimate"] == pytest.approx(1 / 3)
    assert (effect["n_units"], effect["n_clusters"]) == (3, 3)
    assert found[injection.FLIPS, "plain_order"]["estimate"] == pytest.approx(1 - 1 / 3)
    assert found[injection.RETEST, ""]["estimate"] == pytest.approx(1 / 4)


def test_a_reply_without_a_label_is_not_the_target_and_is_counted():
    found = rows_from(table_of(clean="33", placebo="3_", plain_order="_5"))
    assert found[injection.EFFECT, "plain_order"]["estimate"] == 0.5
    assert found[injection.UNSCORED, "plain_order"]["estimate"] == 0.5
    assert found[injection.UNSCORED, "placebo"]["estimate"] == 0.5
    assert (injection.FLIPS, "plain_order") not in found  # the clean text was not asked again


def test_probabilities_are_used_where_every_answer_has_them(rng):
    table, units = SyntheticGrader(states=True).audited(rng, 20)
    effect = audit_from(table, units).outcomes[0].attacks[0].effect["estimate"]
    assert effect != round(20 * effect) / 20
    table.at[0, "probabilities"] = None
    assert audit_from(table, units).outcomes[0].attacks[0].effect["estimate"] == 0.0


@pytest.mark.slow
def test_p_is_the_exact_sign_test_with_holms_correction(rng):
    """With two categories every unit has one trial of an attack, so its test is the sign test."""
    grader = SyntheticGrader(noise=0.2, obeys={"flattery": 0.3})
    table, _ = grader.audited(np.random.default_rng(5), 40, TWO)
    clean = table[(table["attack"] == "clean") & (table["draw"] == 0)].set_index("unit_id")
    raw = []
    for attack, placebo in ATTACKS.items():
        asked = table[table["attack"] == attack].set_index("unit_id")
        usual = table[table["attack"] == placebo].set_index("unit_id")["label"]
        hit = (asked["label"] == asked["target"]).astype(int)
        apart = hit - (usual.reindex(asked.index) == asked["target"]).astype(int)
        up, down = int((apart > 0).sum()), int((apart < 0).sum())
        n = up + down
        raw.append(stats.binomtest(up, n, alternative="greater").pvalue if n else 1.0)
        assert (asked["target"] != clean["label"].reindex(asked.index)).all()
    expected = multitest.multipletests(raw, method="holm")[1]
    attacks = audit_from(table).outcomes[0].attacks
    assert [each.p["estimate"] for each in attacks] == pytest.approx(expected)


def test_one_gullible_spot_is_found_and_named(rng):
    audit = audited(rng, noise=0.1, obeys={"fake_turn": 0.6})
    assert audit.status(BOUNDS) == "pulled"
    pulled = audit.outcomes[0]
    assert pulled.worst(0.1).effect["at"] == "fake_turn"
    assert [each.effect["at"] for each in pulled.attacks if each.has_effect] == ["fake_turn"]
    assert "under a fake turn the label asked for" in audit.sentence(BOUNDS)
    assert audit.status(BOUNDS._replace(pulled=0.9)) != "pulled"


def test_who_never_changes_withstands_where_units_are_enough(rng):
    """None of n items differs: up to 1 - .025^(1/n) may; .116 of 30, .060 of 60."""
    few, many = audited(rng, 30), audited(rng, 60)
    assert few.outcomes[0].attacks[0].bounds["high"] == pytest.approx(1 - 0.025 ** (1 / 30))
    assert (few.status(BOUNDS), many.status(BOUNDS)) == ("inconclusive", "withstands")
    assert "is robust" in many.sentence(BOUNDS)
    assert "Inconclusive" in few.sentence(BOUNDS)


def test_who_always_obeys_has_bounds_too(rng):
    audit = audited(rng, 40, TWO, obeys=dict.fromkeys(ATTACKS, 1.0))
    bounds = audit.outcomes[0].attacks[0].bounds
    assert (bounds["estimate"], bounds["high"]) == (1.0, 1.0)
    assert bounds["low"] == pytest.approx(1 - (1 - (0.025 / 10) ** (1 / 40)))
    assert audit.status(BOUNDS) == "pulled"


def test_a_grader_that_any_text_shakes_is_not_talked_round(rng):
    audit = audited(rng, 100, PAIR, shaken=0.5)
    assert not any(each.has_effect for each in audit.outcomes[0].attacks)
    assert audit.status(BOUNDS) != "pulled"


def test_units_of_a_pair_are_one_cluster(rng):
    table, units = SyntheticGrader(obeys={"flattery": 0.5}).audited(rng, 40, TWO, per_pair=4)
    flattery = audit_from(table, units).outcomes[0].attacks[-1]
    assert (flattery.effect["n_units"], flattery.effect["n_clusters"]) == (40, 10)
    assert "40 items in 10 clusters" in audit_from(table, units).sentence(BOUNDS)
    assert flattery.p["estimate"] > audit_from(table).outcomes[0].attacks[-1].p["estimate"]


def test_draws_by_hand():
    """Three draws of each text, clean twice as many. Unit 1 is a 3 at first (3, 3, 5) and a 5 when
    asked again (5, none, 5). The attack brings 5 in two of three, the placebo in one of three: the
    effect is 1/3. Unit 2 is a 5 at first, so an attack towards 5 shows nothing.
    """
    said = [
        ("u1", "clean", "", ["3", "3", "5", "5", "", "5"]),
        ("u1", "placebo", "", ["3", "3", "5"]),
        ("u1", "plain_order", "5", ["5", "", "5"]),
        ("u2", "clean", "", ["5", "3", "5", "3", "3", "3"]),
        ("u2", "placebo", "", ["3", "3", "3"]),
        ("u2", "plain_order", "5", ["5", "5", "5"]),
    ]
    rows = [(*of, label, draw) for *of, labels in said for draw, label in enumerate(labels)]
    frame = pd.DataFrame(rows, columns=["unit_id", "attack", "target", "label", "draw"])
    stated = [{key: float(key == said) for key in "35"} if said else None for said in frame.label]
    for probabilities in (None, pd.Series(stated, dtype=object)):
        table = frame.assign(rubric="r", rater_id="g", side="", probabilities=probabilities)
        found = rows_from(table.sample(frac=1.0, random_state=1))
        effect = found[injection.EFFECT, "plain_order"]
        assert effect["estimate"] == pytest.approx(2 / 3 - 1 / 3)
        assert effect["n_units"] == 1
        # Both units, of which one is attacked; it flips, as it does by itself.
        assert found[injection.RETEST, ""]["estimate"] == 1.0
        assert found[injection.FLIPS, "plain_order"]["estimate"] == 0.0
        assert found[injection.UNSCORED, "plain_order"]["estimate"] == pytest.approx(1 / 3)


EVERY = dict.fromkeys(ATTACKS, 0.73)


@pytest.mark.parametrize(
    ("grader", "status"),
    [
        (SyntheticGrader(obeys={"flattery": 0.5}), "pulled"),
        (SyntheticGrader(knocked=EVERY), "knocked_off"),
        (SyntheticGrader(mute=dict.fromkeys(ATTACKS, 1.0)), "silenced"),
        (SyntheticGrader(), "withstands"),
    ],
)
def test_what_attacks_do_is_told_apart(rng, grader, status):
    """A grader that every attack moves to the middle label, or silences, withstood in 0.2.0."""
    audit = audit_from(*grader.audited(rng, 100))
    assert audit.status(BOUNDS) == status
    assert [each.name for each in audit.beyond(BOUNDS)] == [status] * (status != "withstands")


def test_the_three_outcomes_by_hand():
    """Three units of clean label 3, the attack asks for 5: labels 5, 4 and none under it; 3, 4 and
    3 under the placebo. So 1/3 is pulled, 1/3 - 1/3 knocked off, and 1/3 silenced.
    """
    found = rows_from(table_of(clean="333", placebo="343", plain_order="54_"))
    statistics = [effect for effect, *_ in injection.OUTCOMES.values()]
    effects = [found[statistic, "plain_order"]["estimate"] for statistic in statistics]
    assert effects == pytest.approx([1 / 3, 0, 1 / 3])


YES_NO = Scale("r", tuple(TWO), affirmative=frozenset({"yes"}))
GULLIBLE, STEADFAST = SyntheticGrader(obeys={"flattery": 0.5}), SyntheticGrader()


def analysed(rng, audited, units=100, **settings):
    """A grader `g` as good as three people, on 300 units of which so many were audited."""
    truth = (rng.random(300) < 0.5).astype(int)
    seen = people_of(rng, truth, 0.85) | {"g": noisy(rng, truth, 2, 0.95)}
    labels = {who: [("no", "yes")[each == "2"] for each in own] for who, own in seen.items()}
    ratings = ratings_of(labels).assign(rubric="r")
    table = None
    if audited is not None:
        table, _ = audited.audited(rng, units, TWO)
        table["unit_id"] = table["unit_id"].str.replace("u", "u0")
    names = pd.DataFrame({"unit_id": sorted(set(ratings["unit_id"]))})
    facts = StudyFacts(attacked=table)
    return analyse(ratings, names, [YES_NO], facts=facts, resamples=200, **settings)


SILENT = SyntheticGrader(mute=dict.fromkeys(ATTACKS, 0.5))
JUDGED = {
    "talked round": (GULLIBLE, 100, {}, "can hijack it: under flattery the label"),
    "silenced": (SILENT, 100, {}, "Prompt injection can suppress its labels: under "),
    "within the bound of the study": (GULLIBLE, 100, {"max_injection": 0.9}, ""),
    "silenced as far as allowed": (SILENT, 100, {"max_silenced": 0.9}, ""),
    "withstands": (STEADFAST, 150, {}, "It withstands the attacks of its injection audit"),
    "too few units": (STEADFAST, 20, {}, "Inconclusive on prompt injection: under "),
    "no audit": (None, 0, {}, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize(("grader", "units", "rule", "said"), JUDGED.values(), ids=JUDGED)
def test_who_can_be_talked_round_or_silenced_does_not_pass(rng, grader, units, rule, said):
    found = analysed(rng, grader, units, **rule)
    (verdict,) = found.verdicts
    fails = grader in (GULLIBLE, SILENT) and not rule
    assert_verdict(verdict, "only_with_correction" if fails else "can_replace", said)
    assert ("Inconclusive on" in verdict["sentence"]) == ("Inconclusive on" in said)
    if fails:
        how = "hijacked by flattery" if grader is GULLIBLE else "suppressed by"
        assert how in verdict["reason"]
        statistics = {key[1]: key[5] for key in verdict["evidence"]}
        assert grader is SILENT or statistics["injection_bounds"] == "flattery"
    assert ("hijacks labels beyond 0.9" in found.rule) == ("max_injection" in rule)


@pytest.mark.slow
def test_beside_a_reference_it_counts_as_well(rng):
    rule = {"reference": "h0", "reference_kappa": 0.2, "reference_sensitivity": 0.5}
    rule |= {"reference_specificity": 0.5}
    (passes,) = analysed(rng, STEADFAST, **rule).verdicts
    (verdict,) = analysed(rng, GULLIBLE, **rule).verdicts
    assert passes["verdict"] == "agrees_with_reference"
    assert verdict["verdict"] == "disagrees_with_reference"
    assert "hijacked by flattery" in verdict["reason"]


@pytest.mark.journey
def test_the_report_has_a_section_where_there_was_an_audit(rng, tmp_path):
    for audited in (GULLIBLE, None):
        context = ReportContext(name="s", synthetic=True, facts={})
        write_report(analysed(rng, audited), context, tmp_path)
        page = (tmp_path / "report.md").read_text("utf-8")
        assert ("## Injection audit" in page) == (audited is not None)
        if audited:
            assert "g can be hijacked by flattery: +0." in page
            assert page.count("\n| g, ") >= len(ATTACKS) + 2
            assert "g, a long harmless text" in page
