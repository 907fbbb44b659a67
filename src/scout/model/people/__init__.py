"""Users, and what binds and schedules their agents."""
