"""The synthetic demo: paired prompts, subjects' responses and raters, all of known quality."""
