"""Attempts at grades, as graders pass them to the store."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

TRIED_MARK = "#text-"
"""Precedes the text's hash in the rater id of a grader that tries another text of a rubric."""
CUT_SHORT = "truncated_by_budget"  # the reply ended at a limit of tokens set by the budget
TRANSIENT_REASONS = ("request_failed", "repeated_reply", "rubric_changed", CUT_SHORT)
"""Reasons for no label that do not depend on the item: the next run asks again."""
ASKED_AGAIN = "asked_again"  # marks an unreadable attempt after which the same run asked again


def utc_now() -> str:
    """Return the present time as the tables have it: UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def tried_rater(grader: str, rubric_hash: str) -> str:
    """Return the rater id of a grader while it tries another text: its grades stay separate.

    >>> tried_rater("anthropic:m", "0123456789abcdef")
    'anthropic:m#text-01234567'
    """
    return f"{grader}{TRIED_MARK}{rubric_hash[:8]}"


@dataclass(frozen=True, kw_only=True)
class GradeAttempt:
    """The result of one request to a grader: a label with its evidence, or the reason for none.
    `order` is the order of sides that was shown, but `label` and `probabilities` are in the pair's
    own; `draw` counts repeats of a question; `raw` is the whole reply, and `provenance` has the
    model that gave it, its settings, tokens and cost.
    """

    table: ClassVar[str] = "grades"

    rater_id: str
    rubric: str
    unit_id: str
    rubric_hash: str
    order: str = ""
    draw: int = 0
    label: str = ""
    p_positive: float | None = None
    probabilities: dict[str, float] | None = None
    prob_method: str = ""
    unscored_reason: str = ""
    seconds: float | None = None
    raw: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    created_at: str = field(default_factory=utc_now)

    def row(self) -> dict[str, Any]:
        """Return the attempt as a row of its table."""
        return {**vars(self), "rater_kind": "model"}

    def __post_init__(self) -> None:
        if bool(self.label) == bool(self.unscored_reason):
            raise ValueError("a grade has a label or a reason why it has none")


@dataclass(frozen=True, kw_only=True)
class AttackedGrade(GradeAttempt):
    """A grade of the injection audit: the `attack` in the text (see `study.tables.ratings`), the
    option that it asks for, the changed side, and the version of the attacks.
    """

    table: ClassVar[str] = "attacked_grades"

    attack: str
    target: str
    side: str
    suite: str
