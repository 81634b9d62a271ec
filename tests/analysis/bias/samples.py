"""Synthetic raters whose lean is known, since it was put there; and the audit of them."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from evenhand.analysis import Scale
from evenhand.analysis.bias.audit import add_bias_rows
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.writer import RatedView
from evenhand.study.settings.analysis import AnalysisSettings
from evenhand.study.tables.ratings import validate_ratings

PAIR = Scale(
    "pair", ("A", "B", "C"), affirmative=frozenset({"C"}), unit="pair", favours={"A": "a", "B": "b"}
)
SEES_C = 0.8 * 0.65 + 0.2 / 3
"""How often a rater who sees 8 of 10 units says C."""
RESPONSE = Scale("response", ("no", "yes"), affirmative=frozenset({"yes"}), unit="response")


@dataclass
class Sample:
    """A synthetic study on pairs: what is true of each unit, and tables as they grow."""

    rng: np.random.Generator
    truth: np.ndarray
    units: pd.DataFrame
    rows: list[pd.DataFrame] = field(default_factory=list)

    def rate(self, rater, labels, kind="model", order=""):
        who = {"rater_id": rater, "rater_kind": kind, "order": order, "rubric": PAIR.name}
        self.rows.append(pd.DataFrame({"unit_id": self.units["unit_id"], "label": labels, **who}))

    def see(self, sees):
        """Labels: the truth with probability `sees`, else any category."""
        n = len(self.truth)
        other = self.rng.choice(np.unique(self.truth), n)
        return np.where(self.rng.random(n) < sees, self.truth, other)

    def turned(self, label, old, new, share):
        """Labels with such a share of `old` turned into `new`: a bias that is known."""
        return np.where((label == old) & (self.rng.random(len(label)) < share), new, label)

    @property
    def ratings(self):
        return pd.concat(self.rows, ignore_index=True)


def sample(seed, pairs=120, subjects=4, people=3):
    """Pairs, of 100 units 25 A, 10 B and 65 C, and people who see it in 8 of 10."""
    names = [f"{'claude' if n % 2 else 'other'}-{n}" for n in range(subjects)]
    rows = [
        {"unit_id": f"p{p:04d}|{name}", "cluster_id": f"p{p:04d}", "subject": name}
        for p in range(pairs)
        for name in names
    ]
    return _with_people(seed, pd.DataFrame(rows), "ABC", (0.25, 0.1, 0.65), people)


def responses(seed, pairs=150, people=3):
    """The same for two subjects' responses to both sides: no or yes, yes in 30 of 100."""
    keys = [(f"p{p:04d}", f"s{n}", side) for p in range(pairs) for n in range(2) for side in "ab"]
    units = pd.DataFrame(keys, columns=["cluster_id", "subject", "side"])
    units.insert(0, "unit_id", ["|".join(key) for key in keys])
    return _with_people(seed, units, ("no", "yes"), (0.7, 0.3), people)


def _with_people(seed, units, categories, shares, people):
    rng = np.random.default_rng(seed)
    made = Sample(rng, rng.choice(list(categories), len(units), p=shares), units)
    for person in range(people):
        made.rate(f"h{person}", made.see(0.8), "human")
    return made


def audited(sample, scale=PAIR, *, slices=(), settings=None, members=None, resamples=300):
    """The audit's rows of a sample, without the rest of the analysis."""
    ratings = validate_ratings(sample.ratings)
    readings = combine_readings(ratings, scale)
    rows = ResultRows(scale.name)
    asked = {"slices": tuple(slices), "resamples": resamples}
    settings = (settings or AnalysisSettings()).model_copy(update=asked)
    request = Request(sample.units, settings, people=members or {}, seed=1)
    labels = encode(readings, scale, sample.units, "pair", slices)
    rated = {"ratings": ratings, "all_ratings": ratings, "readings": readings}
    add_bias_rows(RatedView.on_units(rows, labels, request, **rated))
    return rows


def row_of(rows, statistic, rater, subset="all"):
    """The one row about this rater."""
    wanted = (statistic, subset, rater)
    (found,) = (
        row
        for row in rows.rows.values()
        if (row["statistic"], row["subset"], row["rater_b"] or row["rater_a"]) == wanted
    )
    return found
