"""Other tools' files: what is read from them, and what is written for them."""
