"""Other nodes: who is in the mesh, and what is exchanged with them."""
