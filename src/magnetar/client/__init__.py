"""What runs in a user's process: the native client."""
