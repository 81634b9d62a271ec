"""Logs beside the labels and grades: answers, replies, batches, sessions, decisions."""
