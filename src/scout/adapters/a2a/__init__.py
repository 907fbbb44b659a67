"""The harness `a2a`: agents of other systems."""
