"""Resampling clusters: draws, intervals, folds, and tests of significance."""
