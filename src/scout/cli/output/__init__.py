"""How each result is shown to a person."""
