"""The Kubernetes clusters of the fleet: their pods stand in an API server, and what others start there runs."""
