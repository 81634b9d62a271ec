"""A synthetic study with a rubric of every kind, and what else may be known of one: two wordings, a
number, pairs, comparisons, sets, thresholds, leanings, costs, parties of annotators, sorted items.
"""

from __future__ import annotations

import json
from itertools import permutations, product

import numpy as np
import pandas as pd

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse, planning
from evenhand.analysis.verdicts import versions
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from evenhand.study.tables.ratings import validate_ratings

PEOPLE, GRADERS = ("ann", "ben", "cy"), ("sure", "weak")
FIVE = ("1", "2", "3", "4", "5")
SCALES = [
    Scale("kind", ("yes", "no"), affirmative=frozenset({"yes"}), unit="response"),
    Scale("kind-reworded", ("yes", "no"), unit="response", variant_of="kind"),
    Scale("quality", FIVE, "ordinal", frozenset({"4", "5"}), 0.4, unit="response",
        collapse={"low": ("1", "2"), "high": ("4", "5")}, thresholds={"sure": 0.6}),
    Scale("score", tuple(str(n) for n in range(0, 101, 5)), "interval", unit="response"),
    Scale("fair", ("A", "B", "C"), affirmative=frozenset({"C"}), unit="pair",
        favours={"A": "a", "B": "b"}, unclear=frozenset({"B"})),
    Scale("better", ("A", "tie", "B"), "ordinal", unit="comparison", favours={"A": "a", "B": "b"}),
    *(Scale(f"topics/{key}", ("yes", "no"), affirmative=frozenset({"yes"}), part_of="topics")
        for key in ("tax", "war")),
]  # fmt: skip


def tables(items: int = 72) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ratings and units: three items a cluster, people miss a few, `sure` states probabilities."""
    rng = np.random.default_rng(7)
    units = pd.DataFrame({"n": np.arange(items)})
    cluster = units["n"] // 3
    units = units.assign(
        unit_id=[f"u{n:05}" for n in units["n"]],
        cluster_id=[f"c{n:03}" for n in cluster],
        subject=np.array(["m1", "m2", "m3"])[units["n"] % 3],
        side=np.array(["a", "b"])[cluster % 2],
        topic=np.where(cluster % 3 == 0, "tax", "health"),
        wording=[f"w{n % 3}" for n in units["n"]],
        prompt_a_group=np.array(["pro", "con"])[cluster % 2],
        prompt_b_group=np.array(["con", "pro"])[cluster % 2],
        subject_a=np.array(["m1", "m2", "m3"])[units["n"] % 3],
        subject_b=np.array(["m2", "m3", "m1"])[units["n"] % 3],
        inclusion_probability=np.where(cluster % 3 == 0, 0.5, 0.25),
        words=20 + units["n"] % 50,
    )
    parts = []
    for scale in SCALES:
        q = len(scale.categories)
        truth = rng.integers(0, q, items)
        for rater, keep in zip((*PEOPLE, *GRADERS), (0.9, 0.85, 0.8, 0.9, 0.5), strict=True):
            noise, is_missing = rng.integers(0, q, items), rng.random(items) < 0.05
            code = np.where(rng.random(items) < keep, truth, noise)
            rows = units[["unit_id"]].assign(
                rubric=scale.name,
                rater_id=rater,
                rater_kind="model" if rater in GRADERS else "human",
            )
            words = np.array([*scale.categories, ""])
            rows["label"] = words[np.where(is_missing, q, code)]
            rows["order"] = ["ab", "ba"][rater == "ben"] if scale.unit == "comparison" else ""
            if rater == "sure" and scale.affirmative:
                is_yes = rows["label"].isin(scale.affirmative)
                stated = np.clip(np.where(is_yes, 0.7, 0.3) + rng.normal(0, 0.2, items), 0, 1)
                rows["p_positive"] = stated.round(3)
            if rater in PEOPLE:
                rows["seconds"] = rng.integers(5, 90, items).astype(float)
                rows = rows[rows["label"] != ""]
            else:
                rows["unscored_reason"] = np.where(rows["label"] == "", "refused", "")
            parts.append(rows)
    ratings = pd.concat(parts, ignore_index=True)
    return ratings, units.drop(columns="n")


def analysed_study() -> Analysis:
    """Analyse them with what else is known of a study: costs, parties, strata, sorted items."""
    ratings, units = tables()
    usage = pd.DataFrame(
        {"rubric": "kind", "rater_id": [*GRADERS], "attempts": [72, 80],
         "cost_usd": [0.5, np.nan], "models": [json.dumps({"m": 72}), "{}"]}
    )  # fmt: skip
    raters = pd.DataFrame({"rater_id": [*PEOPLE], "party": ["left", "left", "right"]})
    facts = StudyFacts(
        raters=raters,
        usage=usage,
        prices={(scale.name, grader): 3.0 for scale in SCALES for grader in GRADERS},
        looks={"quality": 2},
        sorted={("kind", "weak", "grader_wrong"): 4, ("kind", "weak", "rubric_unclear"): 1},
        strata=("topic",),
    )
    return analyse(
        ratings, units, SCALES, facts=facts, resamples=40, slices=["topic"], variants=["wording"],
        groups=["topic"], rater_slices=["party"], leanings={"left": ["pro"], "right": ["con"]},
        min_clusters=5, looks=3, margin=0.2, why=True,
    )  # fmt: skip


def selected_study() -> Analysis:
    """Analyse more items, as of a file: each is a cluster, without weights. `ben` is the reference
    and labels some twice, `cy` labels only what `ann` gave the first label of the rubric, and two
    more people mostly label as `ann` does. Graders judge in both orders; texts have lengths, and
    one subject is of a grader's family.
    """
    ratings, units = tables(160)
    rng = np.random.default_rng(11)
    first_labels = {scale.name: scale.categories[0] for scale in SCALES}
    by_ann = ratings["rater_id"] == "ann"
    items = pd.MultiIndex.from_frame(ratings[["rubric", "unit_id"]])
    by_cy = items.isin(items[by_ann & (ratings["label"] == ratings["rubric"].map(first_labels))])
    ratings = ratings[by_cy | (ratings["rater_id"] != "cy")]
    parts = [ratings]
    for rater in ("dee", "eve"):
        like_ann = ratings[ratings["rater_id"] == "ann"].assign(rater_id=rater)
        other = like_ann.groupby("rubric")["label"].shift(7)
        is_other = (rng.random(len(like_ann)) < 0.3) & other.notna()
        parts.append(like_ann.assign(label=like_ann["label"].mask(is_other, other)))
    again = ratings[(ratings["rater_id"] == "ben") & (rng.random(len(ratings)) < 0.3)]
    is_of_two = ratings["rubric"].isin(["fair", "better"])
    swapped = ratings[is_of_two & ratings["rater_id"].isin(GRADERS)]
    favoured = swapped["label"].mask(rng.random(len(swapped)) < 0.2, "A")
    parts += [again.assign(draw=1), swapped.assign(label=favoured, order="ba")]
    names = {"sure": "openai:gpt-5", "m1": "gpt-4o", "m2": "claude-opus-5", "m3": "llama-4"}
    units = units.drop(columns=["inclusion_probability", "wording"])
    for name in ("response_words", "response_a_words", "response_b_words"):
        units[name] = rng.integers(20, 400, len(units))
    return analyse(
        pd.concat(parts).fillna({"draw": 0}).astype({"draw": int}).replace(names),
        units.replace(names), SCALES, resamples=40, cluster="unit", reference="ben",
        scope="like_these", across_rubrics="holm", ordered="quadratic", min_clusters=5,
        margin_share=0.2, max_gross=0.5, groups=["topic"], confidence_target=0.6,
    )  # fmt: skip


def plans_and_versions() -> tuple[dict[str, float], dict[str, str]]:
    """Figures of plans, and figures and sentences on one grader compared with the other, by name.

    They are the drift from `sure` to `weak` on five rubrics, and whether either improves on the
    other.
    """
    yes_no = planning.Scenario(0.8, 0.3, overlap=0.8, strictness=0.2)
    points = planning.ScaleScenario(1, 5, 0.7, 2.5, strictness=0.2)
    figures = {"kappa of points": planning.half_width("kappa", 90, points)}
    for name, items in product(("kappa", "alpha", "rate", "threshold"), (30, 90)):
        figures[f"{name} of {items}"] = planning.half_width(name, items, yes_no)
    scenarios: dict[str, planning.Scenario | planning.ScaleScenario]
    scenarios = {"yes or no": yes_no, "points": points}
    for name, scenario in scenarios.items():
        for scope, chances in planning.pass_chances(60, scenario, [2, 4]).items():
            figures |= {f"{name}, {scope}, {k} people": chance for k, chance in chances.items()}

    ratings, units = tables()
    ratings, rule = validate_ratings(ratings), DecisionSettings(min_clusters=5)
    settings, sentences = AnalysisSettings(resamples=40, margin=0.2), {}
    for scale in SCALES[:5]:
        labels = versions.paired_labels(ratings[ratings["rubric"] == scale.name], units, scale)
        drift = versions.drift_of(labels, versions.Versions(*GRADERS), settings, rule)
        sentences[f"{scale.name}: drift"] = drift.sentence
        for row in drift.rows:
            name = f"{scale.name}: {row['statistic']}, {row['rater_a']}"
            figures |= {f"{name}, estimate": row["estimate"], f"{name}, low": row["low"]}
            figures[f"{name}, high"] = row["high"]
        for old, new in permutations(GRADERS):
            gain = versions.prove(labels, old, new, rule, look=2)
            sentences[f"{scale.name}: {new} in place of {old}"] = gain.sentence
            chance = versions.chance_of_proof(labels, old, new, 80, 0.02)
            figures[f"{scale.name}: chance that {new} is shown to be better"] = chance
        figures[f"{scale.name}: provable gain"] = versions.provable_gain(labels, 40, 0.02)
        if too_few := versions.too_few_errors(labels, "sure", 9, 0.02):
            figures[f"{scale.name}: most errors"] = too_few.most
    return figures, sentences
