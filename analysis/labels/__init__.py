"""Raters' labels as arrays: scales, one label per rater and unit, facts about units."""
