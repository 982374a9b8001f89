"""Between the bytes of messages and Arrow: entries to columns and back, values to fields and back. Pure."""
