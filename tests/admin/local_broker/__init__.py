"""REST on a whole broker with real clients."""
