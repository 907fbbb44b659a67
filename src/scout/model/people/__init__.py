"""Users, and the bindings and schedules of their agents."""
