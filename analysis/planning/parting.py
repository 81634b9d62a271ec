"""Parting of labelled clusters into those to learn from, to choose on, and to prove on.

A grader that is tuned to labels looks better on them than it is. So its proposals come from
*learn*, the best of them is chosen on *choose*, and its gain is bounded on *prove*, which nothing
was tuned to. A cluster is never split, and once it has its part it keeps it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

Part = Literal["learn", "choose", "prove"]
SHARES: dict[Part, float] = {"prove": 0.5, "choose": 0.3, "learn": 0.2}
"""The share of each part: the proof needs most labels, as its bound decides."""


def part_clusters(
    strata: Mapping[str, str], known: Mapping[str, Part] | None = None, *, seed: int, rubric: str
) -> dict[str, Part]:
    """Give each cluster its part; `strata` is by cluster, `known` are parts given before.

    Within a stratum the clusters come in the order of a hash, and each goes to the part that lacks
    most, in its stratum and in all. So parts have their shares of every stratum, and the parts of
    known clusters, which may have left `strata`, do not change.

    >>> found = part_clusters({f"p{n}": "no" for n in range(10)}, seed=1, rubric="r")
    >>> sorted(found.values())
    ['choose', 'choose', 'choose', 'learn', 'learn', 'prove', 'prove', 'prove', 'prove', 'prove']
    """
    found = dict(known or {})
    held: dict[str, Counter[Part]] = {stratum: Counter() for stratum in strata.values()}
    for cluster, stratum in strata.items():
        if cluster in found:
            held[stratum][found[cluster]] += 1
    total = sum(held.values(), Counter[Part]())

    for cluster in sorted(in_order(strata, seed=seed, rubric=rubric), key=strata.__getitem__):
        if cluster in found:
            continue
        own = held[strata[cluster]]
        part = max(SHARES, key=lambda each: _lacks(own, each) + _lacks(total, each))
        found[cluster] = part
        own[part] += 1
        total[part] += 1
    return found


def in_order(clusters: Iterable[str], *, seed: int, rubric: str) -> list[str]:
    """Return clusters in the order of a hash, which new clusters do not change."""

    def place(cluster: str) -> tuple[bytes, str]:
        text = f"{seed}|{rubric}|{cluster}"
        return blake2b(text.encode(), digest_size=16).digest(), cluster

    return sorted(clusters, key=place)


def _lacks(held: Counter[Part], part: Part) -> float:
    """Number of clusters that a part lacks once there is one more; rounded, so that ties are."""
    return round(SHARES[part] * (held.total() + 1) - held[part], 9)


def strata_of(ratings: pd.DataFrame, clusters: Mapping[str, str]) -> dict[str, str]:
    """Return for each cluster the label that is rarest among all labels, of those that a person
    gave in it. `ratings` are of one rubric, `clusters` are by unit; clusters without a person's
    label are left out.
    """
    people = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
    counts = people["label"].value_counts().to_dict()
    table = people.assign(cluster=people["unit_id"].map(clusters)).dropna(subset="cluster")
    given = table.groupby("cluster")["label"].unique()
    return {
        str(cluster): str(min(labels, key=lambda each: (counts[each], each)))
        for cluster, labels in given.items()
    }


def commonest_label(ratings: pd.DataFrame) -> str:
    """Return the label that people gave most often, "" where there is none."""
    people = ratings[(ratings["rater_kind"] == "human") & (ratings["label"] != "")]
    counts = people["label"].value_counts().to_dict()
    return str(max(counts, key=lambda each: (counts[each], each))) if counts else ""


def clusters_to_part(
    strata: Mapping[str, str], commonest: str, min_clusters: int, min_rarer: int
) -> int:
    """Return how many clusters are needed, about, before a proof could count: so that *prove* has
    `min_clusters`, and `min_rarer` with another label than the `commonest`; 0 where there are
    enough.

    >>> clusters_to_part({f"p{n}": "yes" if n % 4 else "no" for n in range(40)}, "yes", 30, 10)
    80
    >>> clusters_to_part({f"p{n}": "yes" if n % 2 else "no" for n in range(60)}, "yes", 30, 10)
    0
    """
    count = len(strata)
    rarer = sum(each != commonest for each in strata.values())
    share = SHARES["prove"]
    needed = math.ceil(min_clusters / share)
    if rarer < math.ceil(min_rarer / share):
        needed = max(needed, math.ceil(min_rarer / share * max(count, 1) / max(rarer, 1)))
    return needed if needed > count else 0
