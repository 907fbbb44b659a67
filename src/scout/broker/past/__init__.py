"""The fleet as it was: moments, and lists and records at a moment."""
