"""Agent trees: what may be spawned, finished and repaired, and the settings of projects."""
