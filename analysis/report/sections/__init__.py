"""The content of a report, section by section."""
