"""The blocking client: its twins, its thread, its hand-over."""
