"""Append-only logs beside the labels and grades: what was said, seen, drawn and sent, and when."""
