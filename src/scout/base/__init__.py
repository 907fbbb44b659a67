"""Mechanisms with no Scout noun in them: records, refusals, lifecycles, ids, times."""
