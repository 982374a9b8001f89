"""Values everyone shares; nothing happens here."""
