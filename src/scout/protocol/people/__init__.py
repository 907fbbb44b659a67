"""Requests about people: users, chats, schedules, tasks."""
