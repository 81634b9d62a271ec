"""What a grader is held against in CI: a rule, and what it was when its baseline was saved."""
