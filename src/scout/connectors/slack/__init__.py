"""Slack: messages, buttons, threads and files over Socket Mode and the Web API."""
