"""``magnetar backup``: the ``command``, and ``broker_backup``, which asks a running broker for one and waits."""
