"""The fixture `evenhand_gate`, for a grader that a project's own tests are to keep honest.

pytest loads this file in every run where evenhand is installed, so that it may cost nothing until
the fixture is asked for: it imports no more than pytest has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evenhand.reporting.gate.checks import Gate
    from evenhand.reporting.ratings_file.declared import ScaleOptions

EvenhandGate = Callable[..., "Gate"]


@pytest.fixture(scope="session")
def evenhand_gate() -> EvenhandGate:
    """evenhand_gate(source, grader, require=..., baseline=..., rubric=..., **settings): the test
    fails where a grader does not meet a rule or has changed, and where we cannot tell yet. Without
    `require` and `baseline` the rule is the verdict.

    With `undecided="skip"` a test is skipped where we cannot tell. Takes what
    `evenhand.reporting.gate.checks.gate` does, paths as texts too, and returns what it found.
    """

    def check(
        source: str | Path,
        grader: str,
        *,
        baseline: str | Path | None = None,
        undecided: str = "fail",
        rubric: str | None = None,
        options: ScaleOptions | None = None,
        units: str | Path | None = None,
        **asked: Any,
    ) -> Gate:
        __tracebackhide__ = True
        from evenhand.reporting.gate.checks import gate
        from evenhand.reporting.ratings_file.declared import ScaleOptions

        if undecided not in ("fail", "skip"):
            raise ValueError(f"undecided is {undecided!r}; it must be 'fail' or 'skip'")
        file = None if baseline is None else Path(baseline)
        options = options or ScaleOptions(rubric=rubric)
        if units is not None:
            options = replace(options, units=Path(units))
        found = gate(Path(source), grader, baseline=file, options=options, **asked)
        if found.outcome == "met":
            return found
        said = "\n".join(each.line for each in found.checks)
        if found.outcome == "cannot_tell" and undecided == "skip":
            pytest.skip(said)
        pytest.fail(said, pytrace=False)

    return check
