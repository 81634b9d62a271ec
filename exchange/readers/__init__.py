"""Readers: a file for each kind of export, which says how it is known and what it is taken for."""
