"""What bounds one connection, so that no client takes more than its share of time or memory.

Reading order: ``turns`` shares the event loop among connections; ``socket_pauses`` says whether a socket is read, and
``wide_reads`` how much at a time, and into what;
``outbox`` gathers what is sent, ``unsent_bytes``
bounds what clients do not take of it, ``unfinished_frames`` what they begin to send and do not end, and
``metadata_bounds`` the names and properties that are kept as long as they stay.
"""
