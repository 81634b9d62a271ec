"""The bias audit: whom raters favour, and what a grader's calls shift with that should not matter.

`side` (whom raters favour, and the grader beside people), `order`, `length`, `family` and
`rater_groups` ask one planned question each, `slices` screens parts of the sample. Side sets the
grader beside people by way of `beside_people`; length, family and slices by way of `shift`, which
holds it against what is `expected` where people think alike. `audit` asks them all, and `findings`
reads the rows back as sentences.
"""

from __future__ import annotations

from evenhand.analysis.bias.audit import add_bias_rows
from evenhand.analysis.bias.findings import BOUND, Finding, findings, flagged, screening_sentence

__all__ = [
    "BOUND",
    "Finding",
    "add_bias_rows",
    "findings",
    "flagged",
    "screening_sentence",
]
