"""The test kit, each call also as nobody should use it."""
