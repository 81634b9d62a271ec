"""What must not matter to a verdict, or only in the known way, whatever the labels."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evenhand.analysis import Scale, analyse
from evenhand.analysis.verdicts.wording import JUDGEMENTS
from tests.analysis.make import noisy, ratings_of

pytestmark = pytest.mark.thorough

PEOPLE, GRADERS = ("ann", "ben", "cem"), ("g", "k")
CATEGORIES = ("1", "2", "3")
PHASES = [Phase.explicit, Phase.generate]
few = settings(max_examples=4, deadline=None, derandomize=True, phases=PHASES)


@st.composite
def ratings(draw):
    """60 to 120 units of two a cluster, graders and people of any quality."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = 2 * draw(st.integers(30, 60))
    truth = rng.integers(0, 3, n)
    keep = {rater: draw(st.sampled_from((0.2, 0.7, 0.9, 0.98))) for rater in (*PEOPLE, *GRADERS)}
    labels = {rater: noisy(rng, truth, 3, share) for rater, share in keep.items()}
    return ratings_of(labels, GRADERS)


def units_of(table):
    names = table["unit_id"].drop_duplicates().sort_values()
    clusters = [f"c{int(name[1:6]) // 2}{name[6:]}" for name in names]
    return pd.DataFrame({"unit_id": names, "cluster_id": clusters})


def verdicts(table, units=None, categories=CATEGORIES):
    units = units_of(table) if units is None else units
    found = analyse(table, units, [Scale("", categories)], resamples=10)
    # Who repeats a person's labels is set beside the others only, once there is enough to tell.
    return {
        each["grader"]: "copy" if "labels are those of" in each["sentence"] else each["verdict"]
        for each in found.verdicts
    }


@few
@given(
    table=ratings(),
    raters=st.permutations(("v", "w", "x", "y", "z")),
    labels=st.permutations(("A", "B", "C")),
)
def test_names_of_raters_and_categories_do_not_matter(table, raters, labels):
    who = dict(zip((*PEOPLE, *GRADERS), raters, strict=True))
    what = dict(zip(CATEGORIES, labels, strict=True))
    renamed = table.assign(rater_id=table["rater_id"].map(who), label=table["label"].map(what))
    expected = {who[grader]: each for grader, each in verdicts(table).items()}
    assert verdicts(renamed, categories=("A", "B", "C")) == expected


@few
@given(table=ratings())
def test_units_that_stand_twice_in_their_cluster_tell_nothing_new(table):
    again = pd.concat([table, table.assign(unit_id=table["unit_id"] + "x")])
    units = units_of(table)
    twice = pd.concat([units, units.assign(unit_id=units["unit_id"] + "x")])
    assert verdicts(again, twice) == verdicts(table)


@few
@given(table=ratings())
def test_twice_as_many_clusters_only_decide_what_was_open(table):
    again = pd.concat([table, table.assign(unit_id=table["unit_id"] + "x")])
    small, large = verdicts(table), verdicts(again)
    for grader, verdict in small.items():
        now = large[grader]
        # Who was not known to carry information may turn out to.
        turned_out = (verdict, now) == ("do_not_use", "only_with_correction")
        assert verdict in ("inconclusive", now) or now == "copy" or turned_out, (verdict, now)
        assert now in ("copy", *JUDGEMENTS)
