"""Who gets which entry. Pure: events in, instructions out."""
