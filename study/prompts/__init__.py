"""Prompts for subjects: pairs, propositions or items; the units made of them, and the sample."""
