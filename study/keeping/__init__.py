"""Keeping a study: backups, another database, another schema. Nothing is left half done."""
