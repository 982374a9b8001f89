"""What applications look at instead of reading messages: ``table_view``, the last value of each key of a topic."""
