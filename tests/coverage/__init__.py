"""What is served of Apache Pulsar, counted by ``tools.coverage``: the counts are right, and nothing is wrong."""
