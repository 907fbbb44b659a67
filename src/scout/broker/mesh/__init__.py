"""The mesh in the broker: other nodes, their agents, and what is exchanged with them."""
