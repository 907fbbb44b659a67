"""Commands that are built from the operation table, and the warm path of everyday verbs."""
