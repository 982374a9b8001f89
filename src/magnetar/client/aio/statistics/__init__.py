"""What applications ask a handle for: ``handle_stats``, numbers, rates and latencies with Java's names."""
