"""Backups, verification and damage: whether what is stored is whole."""
