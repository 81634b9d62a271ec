"""The command line: thin verbs, one file per family."""
