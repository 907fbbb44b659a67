"""The daemon: the one process that owns the store, and the place where all parts are wired."""
