"""What of the native client takes long to show: many seeds, and many clients opened and closed: make client-seeds."""
