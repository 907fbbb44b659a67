"""Directories and git work trees: projects, branches and snapshots."""
