"""``magnetar read``: the ``command``, and its ``start_id``."""
