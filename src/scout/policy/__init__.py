"""Decisions as pure functions of records. Each decision carries its explanation."""
