"""May a grader stand in for people? The cases, the rule, the sentences, the ranking."""
