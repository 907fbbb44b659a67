"""The store: one SQLite file. The only package that contains SQL."""
