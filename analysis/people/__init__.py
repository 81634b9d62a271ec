"""Graders beside people: the human ceiling, the parts of a sample, ensembles, coverage."""
