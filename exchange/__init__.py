"""Other tools' files: read as ratings, and written from them."""
