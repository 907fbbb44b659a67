"""The views of the terminal application, one per file."""
