"""The operations: one function answers one request of `protocol`."""
