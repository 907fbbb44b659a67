"""Waiting for a flight or a person in a terminal."""
