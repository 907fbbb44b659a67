"""Carrying a turn to the program that runs an agent, and recording how it ends."""
