"""Bias audit: whom raters favour, and irrelevant properties that a grader's calls depend on.

Side (whom raters favour, compared between grader and humans), order, length, family and groups of
raters each answer one planned question; slices screen parts of the sample. `shift` compares the
grader with what is `expected` at the same score by humans. `audit` asks all of them, and `findings`
turns the rows into sentences.
"""

from __future__ import annotations

from evenhand.analysis.bias.audit import add_bias_rows
from evenhand.analysis.bias.findings import BOUND, Finding, findings, flagged, screening_sentence

__all__ = ["BOUND", "Finding", "add_bias_rows", "findings", "flagged", "screening_sentence"]
