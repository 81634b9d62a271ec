"""Tables of cases of which the ordinary run takes a part, and `make test-thorough` all; and the
check that a call is refused.
"""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest

from evenhand.errors import InputError


def one_in(n: int, *each: Iterable[object]) -> list[Any]:
    """All combinations of the values; each nth, from the first on, is for the ordinary run."""
    return [
        pytest.param(*values, marks=[pytest.mark.thorough] * bool(number % n))
        for number, values in enumerate(product(*each))
    ]


def refused(
    sentence: str, call: Callable[..., object], /, *arguments: object, **named: object
) -> str:
    """Check that a call raises InputError whose text has `sentence`, a pattern; return the text."""
    with pytest.raises(InputError, match=sentence or None) as raised:
        call(*arguments, **named)
    return str(raised.value)
