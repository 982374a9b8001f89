"""TLS: contexts from settings and files, for the ports of the broker and for everything of ours that connects.

Nothing else makes an :class:`ssl.SSLContext` (docs/decisions/029-tls.md). Reading order: ``protocol_versions`` and
``cipher_suites`` (Java's names to OpenSSL's), ``key_store`` (Java's files), ``certificate_files``
(what is said of files), ``server_tls`` (the context of one port and
its reload), ``failed_handshakes`` (what the log says of clients that fail), ``handshakes`` (how many at a time),
``connection`` (records around one connection), ``broker_tls`` (all of it for one broker). ``client_tls`` is what a
client checks and shows.
"""
