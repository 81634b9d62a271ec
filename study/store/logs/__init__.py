"""Append-only logs next to the labels and grades: answers, replies, batches, sessions, decisions."""
