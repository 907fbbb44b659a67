"""What Scout does: load, decide, append, then tell ports."""
