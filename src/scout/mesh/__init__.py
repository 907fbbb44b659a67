"""The mesh on NATS: keys, the server, the connection, and joining. Its libraries are an extra."""
