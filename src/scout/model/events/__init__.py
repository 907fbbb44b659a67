"""The events of the log, by family."""
