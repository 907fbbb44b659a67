"""Scout over HTTP: a bare ASGI application whose routes come from the operation table."""
