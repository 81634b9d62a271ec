"""Simulated labels (synthetic) as tables of ratings, through a whole analysis."""

import numpy as np
import pandas as pd

from evenhand.analysis import StudyFacts, analyse
from tests.analysis.make import ratings_of

START = pd.Timestamp("2026-01-05T08:00:00Z")


def analysed(annotators, graders, scale, times=None, clusters=None, **settings):
    """Analyse codes of labels by annotators (items, annotators), -1 for none, and by graders
    (items, graders) at a first look; `times` (items, annotators) are in seconds.
    """
    people = {f"a{n:03}": codes for n, codes in enumerate(annotators.T)}
    models = {f"g{n:02}": codes for n, codes in enumerate(graders.T)}
    words = np.array([*scale.categories, "-"])
    ratings = ratings_of({who: words[own] for who, own in (people | models).items()}, [*models])
    if times is not None:
        at = dict(zip(people, times.T, strict=True))
        given = zip(ratings["rater_id"], ratings["unit_id"].str[1:].astype(int), strict=True)
        ratings["created_at"] = [
            (START + pd.Timedelta(seconds=at[who][n])).isoformat() if who in at else ""
            for who, n in given
        ]
    units = None
    if clusters is not None:
        units = pd.DataFrame({"unit_id": [f"u{n:05}" for n in range(len(graders))]})
        units["cluster_id"] = [f"c{n:04}" for n in clusters]
    asked = {"resamples": 10, "facts": StudyFacts(looks={scale.name: 1}), **settings}
    return analyse(ratings, units, [scale], **asked)


def passes(found):
    """Whether each grader can replace an annotator."""
    return [each["verdict"].startswith("can_replace") for each in found.verdicts]
