"""Settings: where Scout lives, what each setting is, and which layer set it."""
