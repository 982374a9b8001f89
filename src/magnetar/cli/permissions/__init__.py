"""``magnetar permissions``: asks a broker who may do what, and why, and tries whether it does what its table says.

Reading order: ``question`` (from a command line to what the broker is asked), ``scratch`` (the tenants of a self-test),
``wire_requests`` (its commands), ``self_test`` (sends all cases and compares), ``command``.
"""
