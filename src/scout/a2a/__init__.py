"""A2A: published agents for clients of other systems."""
