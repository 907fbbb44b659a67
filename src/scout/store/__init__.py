"""What is remembered: one SQLite file. The only room that speaks SQL."""
