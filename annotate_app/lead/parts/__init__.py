"""What the lead's pages are made of."""
