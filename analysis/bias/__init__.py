"""Bias audit: whom raters favour, and irrelevant properties that a grader's calls depend on.

`side` (whom raters favour, compared between grader and humans), `order`, `length`, `family` and
`rater_groups` each answer one planned question; `slices` screens parts of the sample. Side adjusts
for humans' own lean through `beside_people`; length, family and slices go through `shift`, which
compares the grader with what is `expected` at the same score by humans. `audit` runs all of them,
and `findings` turns the rows into sentences.
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
