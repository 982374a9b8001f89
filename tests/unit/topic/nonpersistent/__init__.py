"""Non-persistent topics and their fan-out."""
