"""What is read for a subscription and sent to its consumers."""
