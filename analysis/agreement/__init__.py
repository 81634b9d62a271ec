"""How far raters agree: every coefficient, for pairs and for groups, and what they settle on."""
