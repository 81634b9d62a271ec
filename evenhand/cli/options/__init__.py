"""Options that several verbs have, and what they stand for."""
