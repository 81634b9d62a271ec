"""A synthetic study with a rubric of every kind, and what else may be known of one: two wordings, a
number, pairs, comparisons, sets, thresholds, leanings, costs, parties of annotators, sorted items.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse

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
