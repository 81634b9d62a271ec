"""The injection audit: graders asked about texts that try to talk them round."""
