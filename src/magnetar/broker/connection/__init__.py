"""One client's connection: bytes in, commands handled in their order, answers out.

Reading order: ``listener`` is the socket, ``session`` handles its commands and knows what the client has opened
(``open_handles``) and as whom it came in (``login``). ``credential_checks`` asks for new credentials when those have
expired, ``grant_changes`` closes what is not allowed any more. ``inner_connection`` is a
connection without a socket, for clients of this process. ``handlers`` holds the handlers of all commands,
``bounds`` what keeps one client from taking more than its share. ``producer_outbox`` and ``consumer_outbox`` are the
way back: what a topic reports to a producer and sends to a consumer; ``indexed_outbox`` numbers the messages, too,
and ``old_client_outbox`` leaves out what clients of old protocol versions do not read.
"""
