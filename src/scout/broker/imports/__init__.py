"""Records of other systems: which names they get here, and what is stored."""
