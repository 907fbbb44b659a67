"""Where notifications go: the desktop and webhooks."""
