"""A rater's session around the labelling: entry, steps before it, times and pay."""
