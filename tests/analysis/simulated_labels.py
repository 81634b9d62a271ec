"""Simulated labels (synthetic) as tables of ratings, through a whole analysis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse

START = pd.Timestamp("2026-01-05T08:00:00Z")


def analysed(
    annotators: np.ndarray,
    graders: np.ndarray,
    scale: Scale,
    times: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    **settings: object,
) -> Analysis:
    """Analyse codes of labels by annotators (items, annotators), -1 for none, and by graders
    (items, graders) at a first look; `times` (items, annotators) are in seconds.
    """
    labels = np.array(scale.categories)
    item, who = np.nonzero(annotators >= 0)
    made = [""] * len(item)
    if times is not None:
        made = [(START + pd.Timedelta(seconds=each)).isoformat() for each in times[item, who]]
    rows = [
        pd.DataFrame(
            {
                "unit_id": [f"u{n:05}" for n in item],
                "rater_id": [f"a{n:03}" for n in who],
                "rater_kind": "human",
                "label": labels[annotators[item, who]],
                "created_at": made,
            }
        )
    ]
    names = [f"u{n:05}" for n in range(len(graders))]
    rows += [
        pd.DataFrame({"unit_id": names, "rater_id": f"g{n:02}", "label": labels[own]}).assign(
            rater_kind="model", created_at=""
        )
        for n, own in enumerate(graders.T)
    ]
    units = None
    if clusters is not None:
        units = pd.DataFrame({"unit_id": names, "cluster_id": [f"c{n:04}" for n in clusters]})
    facts = StudyFacts(looks={scale.name: 1})
    return analyse(
        pd.concat(rows, ignore_index=True), units, [scale], resamples=10, facts=facts, **settings
    )


def passes(found: Analysis) -> Sequence[bool]:
    """Whether each grader can replace an annotator."""
    return [each["verdict"].startswith("may_stand_in") for each in found.verdicts]
