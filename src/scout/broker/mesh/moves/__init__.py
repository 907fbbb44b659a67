"""Moving an agent to another node: what leaves, what arrives, and the request for it."""
