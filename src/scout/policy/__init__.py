"""What should happen: pure functions from records to decisions, each with its explanation."""
