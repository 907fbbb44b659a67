"""Routing: resolve the recipient, choose its endpoint, decide which agent is woken."""
