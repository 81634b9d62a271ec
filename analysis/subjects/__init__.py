"""The models that answered: their scores, ranks and rates, corrected for a grader's errors."""
