"""The table of operations held against the application and its answers."""
