"""``magnetar consume``: the ``command``, and its ``subscription_options``."""
