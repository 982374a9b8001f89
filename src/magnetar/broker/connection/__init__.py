"""One client: bytes <-> session <-> answers."""
