"""Labelled clusters are parted once: by shares, in every stratum, and for good."""

from collections import Counter

import pandas as pd
import pytest

from evenhand.analysis.planning.parting import (
    SHARES,
    clusters_to_part,
    commonest_label,
    part_clusters,
    strata_of,
)


def strata(count: int, every: int = 4) -> dict[str, str]:
    return {f"p{n:04}": "yes" if n % every == 0 else "no" for n in range(count)}


@pytest.mark.parametrize("count", [60, 61, 119, 250])
def test_every_part_has_its_share_of_every_stratum(count):
    given = strata(count)
    found = part_clusters(given, seed=3, rubric="r")
    assert found.keys() == given.keys()
    for stratum in ("yes", "no"):
        own = Counter(found[each] for each, value in given.items() if value == stratum)
        for part, share in SHARES.items():
            assert abs(own[part] - share * own.total()) < 2


def test_the_order_of_the_clusters_does_not_matter_but_seed_and_rubric_do():
    given = strata(100)
    found = part_clusters(given, seed=3, rubric="r")
    assert part_clusters(dict(reversed(given.items())), seed=3, rubric="r") == found
    assert part_clusters(given, seed=4, rubric="r") != found
    assert part_clusters(given, seed=3, rubric="s") != found


def test_new_labels_move_no_cluster_and_the_new_ones_have_their_shares():
    first = part_clusters(strata(60), seed=3, rubric="r")
    relabelled = {each: "no" if value == "yes" else "yes" for each, value in strata(200).items()}
    later = part_clusters(relabelled, first, seed=3, rubric="r")
    assert {each: later[each] for each in first} == first
    total = Counter(later.values())
    assert all(abs(total[part] - 200 * share) <= 4 for part, share in SHARES.items())


def test_a_cluster_whose_labels_were_withdrawn_keeps_its_part():
    first = part_clusters(strata(60), seed=3, rubric="r")
    assert part_clusters(strata(50), first, seed=3, rubric="r") == first


def test_a_cluster_counts_by_the_rarest_label_that_a_person_gave_in_it():
    rows = [
        ("u1", "ann", "human", "no"), ("u2", "ann", "human", "yes"), ("u3", "ann", "human", "no"),
        ("u4", "ann", "human", "no"), ("u3", "m", "model", "yes"), ("u5", "m", "model", "no"),
        ("u6", "ann", "human", ""),
    ]  # fmt: skip
    ratings = pd.DataFrame(rows, columns=["unit_id", "rater_id", "rater_kind", "label"])
    clusters = {"u1": "p1", "u2": "p1", "u3": "p2", "u4": "p3", "u5": "p4", "u6": "p5"}
    assert strata_of(ratings, clusters) == {"p1": "yes", "p2": "no", "p3": "no"}
    assert commonest_label(ratings) == "no"


@pytest.mark.parametrize(
    ("count", "every", "wanted"),
    [(59, 2, 60), (60, 2, 0), (60, 4, 80), (60, 1000, 1200), (0, 1, 60), (80, 4, 0)],
)
def test_too_few_clusters_or_of_the_rarer_kind_are_refused_with_a_number(count, every, wanted):
    assert clusters_to_part(strata(count, every), "no", 30, 10) == wanted
