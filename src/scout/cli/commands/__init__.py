"""Commands that are written by hand."""
