"""The only place where objects are wired together."""
