"""Settings: Scout's paths, every setting, and the layer that set it."""
