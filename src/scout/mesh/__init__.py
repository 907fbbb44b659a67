"""Other machines: the NATS server, the connection to it, and the keys of this node."""
