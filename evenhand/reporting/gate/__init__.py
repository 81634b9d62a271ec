"""Checks of a grader in CI: against a rule, and against its saved baseline."""
