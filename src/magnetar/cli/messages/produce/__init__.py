"""``magnetar produce``: the ``command``, and the ``sender`` that does it."""
