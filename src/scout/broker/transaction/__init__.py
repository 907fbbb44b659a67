"""One request in one transaction: who asks, what is known, and the facts it appends."""
