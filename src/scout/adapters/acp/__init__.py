"""The harness `acp`: any program that speaks the Agent Client Protocol."""
