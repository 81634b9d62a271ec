"""Readers: a file for each kind of export, with how it is recognised and what it is taken for."""
