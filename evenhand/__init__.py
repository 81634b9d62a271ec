"""The command line: thin verbs, one file per family; the only place where all parts meet."""
