"""What happens to old parts of the log."""
