"""`demo`: a tour with two agents, and a fleet that works by itself."""
