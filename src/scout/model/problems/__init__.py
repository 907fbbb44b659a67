"""The diagnostics of refusals, by what they are about."""
