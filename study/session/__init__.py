"""What goes on around the labelling: who comes in, what they go through first, what it took."""
