"""``magnetar permissions``: asks a broker who may do what, and why.

Reading order: ``question`` (from a command line to what the broker is asked), ``command``.
"""
