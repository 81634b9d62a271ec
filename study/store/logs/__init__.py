"""Logs in addition to labels and grades: replies of models, batches, decisions."""
