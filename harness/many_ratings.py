"""Ratings of some size as a file has them, with all that makes reading them hard. Synthetic."""

from __future__ import annotations

import numpy as np
import pandas as pd

CATEGORIES = ("1", "2", "3")
RATERS = {"ann": "human", "ben": "human", "cy": "human", "g1": "model", "g2": "model"}


def many_ratings(
    units: int, per_cluster: int = 1, raters: dict[str, str] = RATERS, seed: int = 0
) -> pd.DataFrame:
    """Texts of a long file: some rows are missing, some have no label; g2 gives a probability."""
    rng = np.random.default_rng(seed)
    unit = np.arange(units)
    meant = rng.integers(0, len(CATEGORIES), units)
    tables = []
    for rater, kind in raters.items():
        said = np.where(rng.random(units) < 0.75, meant, rng.integers(0, len(CATEGORIES), units))
        silent = rng.random(units) < 0.05
        table = pd.DataFrame(
            {
                "unit_id": [f"u{each:05d}" for each in unit],
                "rater_id": rater,
                "rater_kind": kind,
                "label": np.where(silent, "", np.array(CATEGORIES)[said]),
                "unscored_reason": np.where(silent & (kind == "model"), "refused", ""),
                "cluster_id": [f"c{each:05d}" for each in unit // per_cluster],
            }
        )
        tables.append(table[rng.random(units) < 0.95])
    found = pd.concat(tables, ignore_index=True).astype("str")
    return found if per_cluster > 1 else found.drop(columns="cluster_id")
