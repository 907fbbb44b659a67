"""The nouns of Scout: one file each, with the record, its states and its table of moves."""
