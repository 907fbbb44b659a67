"""Scout: a local-first broker that gives every coding agent a name and loses no work."""

__all__ = ["__version__"]

__version__ = "0.1.0"
