"""The demos: whole synthetic studies, in which all is of known quality, and published labels."""
