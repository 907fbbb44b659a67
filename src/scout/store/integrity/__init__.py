"""Backups, verification and damage reports of the store."""
