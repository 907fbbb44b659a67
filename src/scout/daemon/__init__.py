"""The daemon: the one process that owns the store, and where all parts are put together."""
