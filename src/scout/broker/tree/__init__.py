"""Agents that share a repository: who edits what."""
