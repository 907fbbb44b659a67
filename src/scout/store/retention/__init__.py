"""Retention: archives are made, checked, rewritten and purged here."""
