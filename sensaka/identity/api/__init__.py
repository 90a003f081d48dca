"""Accounts over REST."""
