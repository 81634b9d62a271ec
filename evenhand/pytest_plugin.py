"""The fixture `evenhand_gate`, for a grader that a project's own tests are to keep honest.

pytest loads this file in every run where evenhand is installed, so that it may cost nothing until
the fixture is asked for: it imports no more than pytest has.
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
    """evenhand_gate(ratings, grader, require=..., baseline=..., **options): the test fails where a
    grader does not meet a rule or has changed, and where we cannot tell yet. Without `require` and
    `baseline` the rule is the verdict.

    With `undecided="skip"` a test is skipped where we cannot tell. Takes what `evenhand.gate`
    takes, a path or a table with the keywords that say what its labels are, and returns what it
    found.
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
