"""Scout over HTTP: a bare ASGI application whose routes are read off the operation table."""
