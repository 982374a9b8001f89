"""Compiled from pulsar.proto by `make proto`; only magnetar.protocol may import it."""
