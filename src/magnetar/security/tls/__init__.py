"""TLS: contexts from settings and files, for the doors of the broker and for everything of ours that connects.

Nothing else makes an :class:`ssl.SSLContext` (docs/decisions/029-tls.md). ``client_tls`` is what a client checks and
shows.
"""
