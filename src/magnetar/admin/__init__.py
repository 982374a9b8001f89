"""REST server with Pulsar's admin v2 paths."""
