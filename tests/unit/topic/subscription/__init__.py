"""Subscriptions: consumers, acknowledgements, what they show."""
