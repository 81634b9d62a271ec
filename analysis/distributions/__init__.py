"""Where many people label each unit: how graders' probabilities compare with people's shares."""
