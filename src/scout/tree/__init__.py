"""The disk: what a directory is, and which project it belongs to."""
