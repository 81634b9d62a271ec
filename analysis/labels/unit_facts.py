"""What the units table says of the rated units beyond clusters: groups, lengths, anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis.bias.settings import GROUP_COLUMNS, BiasSettings
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.types import Array
from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


class UnitFacts:
    """Columns of `units` in the order of the rated units (the rows of a `LabelMatrix`).

    >>> import pandas as pd
    >>> units = pd.DataFrame({"unit_id": ["u1", "u2"], "response_words": ["12", ""]})
    >>> UnitFacts(["u2", "u1"], units).numbers("response_words")
    array([nan, 12.])
    """

    def __init__(self, unit_ids: Sequence[str], units: pd.DataFrame | None) -> None:
        self._ids, self._units = unit_ids, units
        self._table = None
        if units is not None:
            table = units.drop_duplicates("unit_id").set_index("unit_id")
            self._table = table.reindex(list(unit_ids))

    def cells(self, name: str) -> npt.NDArray[np.object_] | None:
        """A column as text, or None where there is no such column or it is empty."""
        if self._table is None or name not in self._table:
            return None
        cells: npt.NDArray[Any] = self._table[name].fillna("").astype(str).to_numpy(dtype=object)
        return cells if (cells != "").any() else None

    def column(self, name: str) -> UnitColumn | None:
        """A column as codes."""
        cells = self.cells(name)
        return None if cells is None else UnitColumn.of(name, cells.tolist())

    def numbers(self, name: str) -> Array | None:
        """A column as numbers, NaN where a cell holds none; None where no cell does."""
        import pandas as pd

        cells = self.cells(name)
        if cells is None:
            return None
        numbers = np.asarray(pd.to_numeric(pd.Series(cells), errors="coerce"), dtype=float)
        return None if np.isnan(numbers).all() else numbers

    def orientation(self, settings: BiasSettings) -> Array:
        """1 where side a counts as the first of `settings.sides`, -1 where side b does, 0 where it
        is not known, (units,). Raises InputError where leanings are set and no unit of the whole
        table has one.
        """
        if not settings.leanings:
            return np.ones(len(self._ids))
        known = _leaning_signs(self._units, settings)
        return np.array([known.get(unit, 0.0) for unit in self._ids])


def _leaning_signs(units: pd.DataFrame | None, settings: BiasSettings) -> dict[str, float]:
    """The orientation of every unit that has a group of each leaning, by its id."""
    if units is None or not {*GROUP_COLUMNS} <= {*units.columns}:
        raise InputError(
            f"leanings need the units columns {' and '.join(GROUP_COLUMNS)}; add them or take the "
            "leanings out"
        )
    of_a, of_b = (units[name].map(settings.sign_of) for name in GROUP_COLUMNS)
    told = (of_a == -of_b) & (of_a != 0)
    if not told.any():
        raise InputError(
            "no unit has a group of each leaning on its two sides; the leanings must name values "
            f"of {' and '.join(GROUP_COLUMNS)}"
        )
    return dict(zip(units.loc[told, "unit_id"], of_a[told].astype(float), strict=True))
