"""Requests about agent trees: spawn, show and finish agents."""
