"""Trees of agents: spawning, finishing, finding and reserving."""
