"""What the units table says of the rated units, in their order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis.labels.units import UnitFacts
from evenhand.errors import InputError

UNITS = pd.DataFrame(
    {
        "unit_id": ["u1", "u2", "u3", "u3"],
        "cluster_id": ["p1", "p1", "p2", "p9"],
        "topic": ["tax", None, "", "war"],
        "words": [12.0, np.nan, 7.0, 8.0],
    }
)


def test_columns_follow_the_rated_units():
    """Units may be rated in another order than they are listed in; of two rows the first counts."""
    facts = UnitFacts(["u3", "u1"], UNITS)
    assert facts.cells("cluster_id") == ["p2", "p1"]
    assert facts.numbers("words").tolist() == [7.0, 12.0]
    clusters = facts.clusters()
    assert (clusters.values, clusters.codes.tolist()) == (("p1", "p2"), [1, 0])


def test_a_cell_without_a_value_is_empty():
    facts = UnitFacts(["u1", "u2", "u3"], UNITS)
    assert facts.cells("topic") == ["tax", "", ""]
    assert facts.slices(["topic"])[0].codes.tolist() == [0, -1, -1]
    assert np.isnan(facts.numbers("words")).tolist() == [False, True, False]


def test_a_column_that_nobody_asked_for_may_be_missing():
    for facts in (UnitFacts(["u1"], UNITS), UnitFacts(["u1"], None)):
        assert facts.cells("subject") == [""]
        assert facts.column("subject").values == ()


@pytest.mark.parametrize("units", [None, UNITS.drop(columns="cluster_id")])
def test_without_pairs_every_unit_is_its_own_cluster(units):
    assert UnitFacts(["u2", "u1"], units).clusters().codes.tolist() == [1, 0]


def test_clusters_by_unit_or_by_a_column():
    facts = UnitFacts(["u1", "u2", "u3"], UNITS)
    assert facts.clusters("unit").codes.tolist() == [0, 1, 2]
    assert facts.clusters("cluster_id").codes.tolist() == [0, 0, 1]

    with pytest.raises(InputError, match="topic of unit 'u2' is empty"):
        facts.clusters("topic")
