"""What Scout does for people who are away: accounts, chats, schedules, tasks."""
