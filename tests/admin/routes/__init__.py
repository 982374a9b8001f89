"""Routes over a fake broker."""
