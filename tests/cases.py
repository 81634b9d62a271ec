"""Tables of cases of which the ordinary run takes a part, and `make test-thorough` all."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest


def one_in(n: int, *each: Iterable[object]) -> list[Any]:
    """All combinations of the values; each nth, from the first on, is for the ordinary run."""
    return [
        pytest.param(*values, marks=[pytest.mark.thorough] * bool(number % n))
        for number, values in enumerate(product(*each))
    ]
