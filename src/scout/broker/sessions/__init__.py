"""Sessions of harnesses: starting, attaching, keeping and observing them."""
