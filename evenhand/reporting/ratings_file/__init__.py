"""What a ratings file that somebody brings means: its columns, labels, raters, units."""
