"""Archived rows of the log: the files that they are in, and reading them."""
