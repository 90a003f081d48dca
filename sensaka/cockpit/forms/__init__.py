"""Forms of the frame: account and users."""
