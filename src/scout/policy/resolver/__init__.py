"""The resolver: which agent a text means, and the text that an agent is shown by."""
