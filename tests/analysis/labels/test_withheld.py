"""Units withheld from a grader are not put to it: no missing answers, no part of its share."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.analysis import Scale
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.combine import combine_readings, methods_apart
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.people.disagreements import add_coverage_rows
from evenhand.analysis.results import ResultRows
from evenhand.study.tables.ratings import validate_ratings

UNITS = [f"u{n:02}" for n in range(40)]
WITHHELD = frozenset(UNITS[:20])
SCALE = Scale("r", ("no", "yes"), withheld={"new": WITHHELD})


def labels(scale: Scale = SCALE) -> LabelMatrix:
    """A person and an old grader label all units, the new grader those not withheld but one."""
    given = {"ann": UNITS, "old": UNITS, "new": UNITS[20:-1]}
    rows = [
        {"unit_id": unit, "rater_id": rater, "label": "yes", "rubric": "r"}
        | {"rater_kind": "human" if rater == "ann" else "model"}
        for rater, units in given.items()
        for unit in units
    ]
    return encode(combine_readings(validate_ratings(pd.DataFrame(rows)), scale), scale)


def coverage(found: LabelMatrix) -> dict[str, tuple[float, int]]:
    folded, frequency = found.folded()
    rows = ResultRows("r")
    add_coverage_rows(rows, folded, Resamples(frequency, 20, np.random.default_rng(1)))
    return {key[3]: (row["estimate"], row["n_units"]) for key, row in rows.rows.items()}


def test_a_withheld_unit_is_not_put_to_its_grader_and_is_to_all_others():
    found = labels()
    put = {name: int(found.put_to(at).sum()) for at, name in enumerate(found.raters)}
    assert put == {"ann": 40, "old": 40, "new": 20}


def test_what_is_withheld_from_a_grader_is_withheld_from_its_parts_by_method():
    rows = [
        {"unit_id": unit, "rater_id": rater, "label": "yes", "rubric": "r"}
        | {"rater_kind": "human" if rater == "ann" else "model"}
        | ({"p_positive": 0.9, "prob_method": method} if rater == "new" else {})
        for rater, units in {"ann": UNITS, "new": UNITS[20:]}.items()
        for unit, method in zip(units, ["logprobs", "draws"] * 20, strict=False)
    ]
    ratings, _ = methods_apart(validate_ratings(pd.DataFrame(rows)), "r")
    found = encode(combine_readings(ratings, SCALE), SCALE)
    put = {name: int(found.put_to(at).sum()) for at, name in enumerate(found.raters)}
    assert put == {"ann": 40, "new (draws)": 20, "new (logprobs)": 20}


def test_coverage_has_no_missing_answers_where_a_grader_is_not_judged():
    assert coverage(labels()) == {"ann": (1.0, 40), "old": (1.0, 40), "new": (19 / 20, 20)}
    assert coverage(labels(Scale("r", ("no", "yes"))))["new"] == (19 / 40, 40)


def test_units_that_differ_in_what_is_withheld_are_not_folded_together():
    found = labels()
    assert len(found.folded()[0].codes) == 3, "withheld, answered, not answered"
    nothing = labels(Scale("r", ("no", "yes"), withheld={"another": WITHHELD}))
    assert nothing.withheld is None
    assert len(nothing.folded()[0].codes) == 2
