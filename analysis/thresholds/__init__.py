"""From a probability to a verdict: where to cut, how sure that is, what probabilities are worth."""
