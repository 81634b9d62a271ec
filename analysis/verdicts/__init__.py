"""Can a grader replace people? The evidence, the requirements, the sentences, the ranking."""
