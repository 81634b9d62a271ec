"""The schema's history for Alembic: one file for each version, named by it."""
