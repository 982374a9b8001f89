"""``magnetar restore``: the ``command``."""
