"""The terminal application, `scout tui`: what needs you, who works, and what happened, in one terminal."""
