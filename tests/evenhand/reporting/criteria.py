"""Synthetic responses with weighted criteria, labelled by three annotators and two graders."""

from __future__ import annotations

import numpy as np
import pandas as pd

ANNOTATORS, GRADERS = ("ann", "ben", "cem"), ("gpt-fair", "gpt-generous")


def responses_with_criteria(responses: int = 40, seed: int = 7) -> pd.DataFrame:
    """Rows of a long file: each rater says of each criterion whether it is met. The generous grader
    overlooks nearly all criteria with negative points that are met.
    """
    rng, rows = np.random.default_rng(seed), []
    for number in range(responses):
        good = rng.beta(4, 2)
        for criterion in range(rng.integers(5, 13)):
            points = int(rng.choice([10, 7, 5, 3, -4, -8])) if criterion else 10
            met = rng.random() < (good if points > 0 else 1 - good)
            about = {
                "response_id": f"resp{number:02d}",
                "model": ("m1", "m2")[number % 2],
                "prompt": f"What helps in case {number // 2}?",
                "response": f"Answer {number} is this.",
                "criterion": f"States fact {criterion} of case {number // 2}.",
                "points": str(points),
                "axis": str(rng.choice(["accuracy", "completeness", "communication"])),
            }
            for rater in (*ANNOTATORS, *GRADERS):
                flip = rng.random() < (0.08 if rater in ANNOTATORS else 0.07)
                label = met ^ flip
                if rater == "gpt-generous" and points < 0:
                    label = label and rng.random() < 0.2
                rows.append(about | {"rater": rater, "label": "met" if label else "not met"})
    return pd.DataFrame(rows)
