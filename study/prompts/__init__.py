"""The prompts put to the subjects: pairs or propositions, the units they make, the sample."""
