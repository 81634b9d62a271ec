"""Other tools' files: readers and writers."""
