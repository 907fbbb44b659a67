"""The states of records over time: fed behind the log, asked for any moment."""
