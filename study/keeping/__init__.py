"""Keeping a study: backups, another database, another schema. Nothing is done by halves."""
