"""Offline graders that read by counting words."""
