"""A run: what is asked, at what price, and that every grade is kept."""
