"""What follows from a change, in the same transaction."""
