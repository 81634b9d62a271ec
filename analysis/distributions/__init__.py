"""Distributions of labels: graders' probabilities compared with the shares of many annotators."""
