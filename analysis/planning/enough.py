"""Is the sample enough? How many more clusters an interval of a wanted width needs."""

from __future__ import annotations

import math


def more_clusters(n_clusters: int, low: float, high: float, half_width: float) -> int | None:
    """How many clusters more bring a 95% interval of today's width down to +-`half_width`.

    Intervals narrow with the root of the number of clusters. None where there is no interval.

    >>> more_clusters(100, 0.5, 0.7, 0.05), more_clusters(100, 0.58, 0.62, 0.05)
    (300, 0)
    """
    if not (math.isfinite(low) and math.isfinite(high)) or half_width <= 0:
        return None
    present = (high - low) / 2
    return max(0, math.ceil(n_clusters * (present / half_width) ** 2 - n_clusters - 1e-9))
