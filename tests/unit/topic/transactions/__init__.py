"""A loaded topic's part in transactions."""
