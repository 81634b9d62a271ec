"""Types of arrays, named by their content, and of tables. Functions document the shapes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame
else:
    DataFrame = Any  # pandas is slow to load, and many uses need no table

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.intp]
"""Positions in a sequence, or codes of categories, clusters, ..."""
Labels = npt.NDArray[np.int8]
"""Codes of categories or verdicts, -1 for none; int8 up to 128 categories (see `code_type`)."""
Integers = npt.NDArray[np.integer[Any]]
"""Whole numbers of any size, such as codes of either type."""
Frequency = npt.NDArray[np.int64]
"""Number of times that each cluster occurs in the data, above 1 if identical ones are merged."""
Numbers = npt.NDArray[np.floating[Any] | np.integer[Any] | np.bool_]
"""Values to add up, of any numeric type."""
Sparse = Any
"""scipy.sparse.csr_array of whole numbers."""


def code_type(n_categories: int) -> np.dtype[Any]:
    """Return the smallest signed integer type for the codes of categories, and -1 for no label."""
    return np.min_scalar_type(-max(n_categories, 1))  # 128 categories: int8, from -128 to 127


_Entry = TypeVar("_Entry", covariant=True)


class Column(Protocol[_Entry]):
    """Sequence with an entry for each unit or category: a list, an array or a Series."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_Entry]: ...
    def __getitem__(self, position: int, /) -> Any: ...


Categories = Column[Hashable]
"""All permitted categories, in order, if they have one."""
Clusters = Column[Hashable] | None
"""Hashable id of each unit's cluster, (units,); None where units are the clusters."""
