"""Telegram: private chats, groups and forum topics over the Bot API, which is read by long polling."""
