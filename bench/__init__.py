"""Measurements: `python -m bench` prints goal, result and verdict of each figure."""
