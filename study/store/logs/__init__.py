"""Append-only logs next to the labels and grades: remarks, looks, draws, replies and decisions."""
