"""Decisions about people: their schedules, chats and keys."""
