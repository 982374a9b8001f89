"""WebSocket: producers, consumers and readers that speak JSON, as Apache Pulsar serves them (docs/websocket.md).

Reading order: ``upgrade`` (a handshake is a request like any other until it is accepted, then a ``Socket``),
``query_parameters`` (options of the path), ``frames`` (JSON of each message), ``produce_memory`` (frames that are not
stored yet), ``producer_socket``, ``socket_memory`` (bytes that peers have not taken), ``delivery_socket`` (what
consumers and readers have in common), ``consumer_socket``, ``reader_socket``, ``dead_letters``, ``routes``.
Each socket drives a client of this process
(:mod:`magnetar.admin.values.inner_peer`): admission, delivery and acknowledgement are those of every client.
"""
