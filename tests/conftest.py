"""Fixtures that every folder may use."""
