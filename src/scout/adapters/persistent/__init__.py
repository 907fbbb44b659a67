"""Programs that keep running between turns, and the lines exchanged with them."""
