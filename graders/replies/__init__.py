"""What one reply says: labels, probabilities, repeated draws."""
