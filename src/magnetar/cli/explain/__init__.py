"""``magnetar explain``: why something in a broker is as it is, in ``command``."""
