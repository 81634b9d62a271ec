"""The pytest fixture `evenhand_gate`, which checks a grader in a project's own tests.

pytest loads this file in every run where evenhand is installed, so it imports nothing more than
pytest itself until the fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evenhand.reporting.gate import Gate
    from evenhand.reporting.library import Labels

EvenhandGate = Callable[..., "Gate"]


@pytest.fixture(scope="session")
def evenhand_gate() -> EvenhandGate:
    """Return a function, `evenhand_gate(ratings, grader, require=..., baseline=..., **options)`.

    It fails the test if the grader does not meet the rule `require` or has changed since its
    `baseline`, or if that is inconclusive; with `undecided="skip"` an inconclusive test is skipped.
    Without both the rule is the verdict. The arguments and the result are those of `evenhand.gate`.
    """

    def check(ratings: Labels, grader: str, *, undecided: str = "fail", **options: Any) -> Gate:
        __tracebackhide__ = True
        from evenhand.reporting.library import gate

        if undecided not in ("fail", "skip"):
            raise ValueError(f"undecided is {undecided!r}; it must be 'fail' or 'skip'")
        result = gate(ratings, grader, **options)
        if result.passed:
            return result
        outcome = "\n".join(requirement.line for requirement in result.checks)
        if result.passed is None and undecided == "skip":
            pytest.skip(outcome)
        pytest.fail(outcome, pytrace=False)

    return check
