"""The views: each reads what it shows from Scout's operations and returns the body of a document."""
