"""Harnesses: the programs that run agents, each behind the same port."""
