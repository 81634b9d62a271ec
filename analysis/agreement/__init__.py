"""Agreement between raters: every coefficient, for pairs and for groups, and consensus labels."""
