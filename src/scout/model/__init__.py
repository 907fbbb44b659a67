"""What exists: one noun in one file, with its record, its states and its table of moves."""
