"""The meaning of a user's ratings file: its columns, labels, raters, units."""
