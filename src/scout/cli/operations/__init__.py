"""Commands that are read off the operation table, and the warm path of everyday verbs."""
