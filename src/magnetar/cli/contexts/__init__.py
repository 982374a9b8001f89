"""``magnetar contexts``: ``command`` keeps saved connections, which :mod:`magnetar.contexts` reads and writes."""
