"""One request in one transaction: its caller, what it reads, and the events it appends."""
