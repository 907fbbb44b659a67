"""Sessions of harnesses: start, attach, keep warm and observe them."""
