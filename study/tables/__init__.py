"""The tables `ratings` and `units`, and tables as files: reading, checking, writing."""
