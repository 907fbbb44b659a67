"""Decisions about other nodes: who is a member, who may join, which envelopes count."""
