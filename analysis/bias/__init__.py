"""Bias audit: whom raters favour, and irrelevant properties that a grader's calls depend on."""
