"""The load generator: raw sockets, hand-made frames, numpy for everything that repeats.

Reading order: ``wire`` (single commands), ``entries`` (what is sent, and blocks of SEND frames), ``runs`` (what comes
back, in bulk), ``connection`` (one socket), ``loop`` (polling), ``produce``, ``consume``, ``latency``, ``bare_sync``
(the disk alone), and ``sink``, a server that does nothing, to measure the generator itself. May import nothing of
magnetar: it must drive any broker.
"""
