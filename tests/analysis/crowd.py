"""A synthetic crowd: mostly good raters, and a few whose fault is known."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd

from evenhand.analysis.labels.scale import Scale

SCALES = {
    "level": Scale("level", tuple("12345"), "ordinal", frozenset("45")),
    "side": Scale("side", ("A", "B", "C"), "nominal", frozenset("C")),
}
FAULTS = {
    "careless": {"low_agreement"},
    "hasty": {"fast"},
    "liner": {"run"},
    "leaner": {"leaning"},
    "tired": {"drift"},
}
"""What each of the others is to be named for, at least."""
START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def crowd(seed, good=8, pairs=120):
    """Ratings of `good` good raters and one of each fault; all label every unit.

    A good rater sees what is true in about 85 of 100 units and is one step off else.
    """
    rng = np.random.default_rng(seed)
    raters = [f"good-{n}" for n in range(good)] + list(FAULTS)
    parts = []
    for name, scale in SCALES.items():
        q = len(scale.categories)
        truth = rng.choice(q, size=pairs, p=rng.dirichlet(np.full(q, 8.0)))
        for rater in raters:
            order = rng.permutation(pairs)
            codes = np.empty(pairs, dtype=int)
            codes[order] = labels(rng, rater, truth[order], q)
            turn = np.empty(pairs, dtype=int)
            turn[order] = np.arange(pairs)
            usual = 5.0 if rater == "hasty" else 30.0
            rows = {
                "unit_id": [f"u{n}" for n in range(pairs)],
                "rubric": name,
                "rater_id": rater,
                "rater_kind": "human",
                "label": [scale.categories[code] for code in codes],
                "seconds": usual * np.exp(0.4 * rng.standard_normal(pairs)),
                "created_at": [(START + timedelta(minutes=int(at))).isoformat() for at in turn],
            }
            parts.append(pd.DataFrame(rows))
    return pd.concat(parts, ignore_index=True)


def labels(rng, rater, truth, q):
    """What a rater answers, in the order in which the units come to them."""
    n = len(truth)
    seen = np.where(rng.random(n) < 0.85, truth, np.clip(truth + rng.choice([-1, 1], n), 0, q - 1))
    if rater == "careless":
        return rng.integers(0, q, n)
    if rater == "liner":
        seen[n // 2 : n // 2 + n // 3] = 0
    if rater == "leaner":
        seen = np.where(rng.random(n) < 0.45, q - 1, seen)
    if rater == "tired":
        late = n - n // 2
        seen[-late:] = np.where(rng.random(late) < 0.75, rng.integers(0, q, late), seen[-late:])
    return seen
