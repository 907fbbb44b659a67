"""Import from other systems: what is sent, and the request."""
