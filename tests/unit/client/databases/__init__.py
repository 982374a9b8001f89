"""The inbox and the outbox in SQL databases."""
