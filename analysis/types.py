"""Types of arrays by content, and of tables. Shapes are documented where the arrays are used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame
else:
    DataFrame = Any  # to load pandas takes longer than most of what needs no table

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.intp]
"""Positions, or codes of anything."""
Labels = npt.NDArray[np.int8]
"""Codes of categories or verdicts, -1 where there is none."""
Integers = npt.NDArray[np.integer[Any]]
Frequency = npt.NDArray[np.int64]
"""Times that each cluster occurs in the data: 1, or more where identical ones are merged."""
Numbers = npt.NDArray[np.floating[Any] | np.integer[Any] | np.bool_]
Sparse = Any
"""scipy.sparse.csr_array of whole numbers."""


def code_type(q: int) -> np.dtype[Any]:
    """The smallest type that holds the codes of q categories, and -1."""
    return np.min_scalar_type(-max(q, 1))


_One = TypeVar("_One", covariant=True)


class Column(Protocol[_One]):
    """Sequence with an entry for each unit or category: a list, an array, a Series."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_One]: ...
    def __getitem__(self, place: int, /) -> Any: ...
