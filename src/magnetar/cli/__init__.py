"""The magnetar command line."""
