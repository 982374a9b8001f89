"""The typed admin client."""
