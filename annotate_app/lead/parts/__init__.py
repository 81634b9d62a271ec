"""Parts of the lead's pages."""
