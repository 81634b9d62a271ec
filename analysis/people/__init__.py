"""Graders compared with humans: the human ceiling, parts of a sample, coverage."""
