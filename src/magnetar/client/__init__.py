"""What runs in a user's process: the native asyncio client, and a blocking one for code that has no event loop.

In reading order:

* ``address``        where a broker is
* ``refusals``       what a broker can refuse with
* ``errors``         what can go wrong, with what, where and the next step
* ``arguments``      kinds of arguments, and the error that names what does not fit
* ``advice``         what to do about a refused login or a missing grant
* ``handshake``      what clients say when they connect
* ``connection``     one socket: requests and their answers, keep-alive, pushes
* ``rest``           the same broker's REST interface
* ``lookup_answer``  what the answers of a lookup mean
* ``lookup``         which broker serves a topic, how many partitions it has
* ``login``          what users write about credentials and TLS, and what follows from it
* ``schemas``        what the schema registry holds of a topic
* ``read_position``  the point before a message in a topic's log
* ``reader_session`` one reader at a broker: a non-durable consumer on a connection of its own
* ``producer``       raw entries under one producer name, with receipts
* ``bulk``           ranges of a topic read in bulk, and what has to be known to plan that
* ``encryption``     end-to-end encryption: keys, data keys, what becomes of messages without a key
* ``values``         values of messages by schema, without I/O
* ``machines``       what the native client decides, without I/O
* ``columns``        tables of Arrow to entries, and back
* ``aio``            the native asyncio client (``magnetar.aio`` is its public name)
* ``databases``      effects on a database and messages together, once
* ``blocking``       the same for threads, over it (``magnetar.Client`` is its public name)

Both speak to any broker with Pulsar's wire protocol and share address, errors, handshake, lookup answers and login. The
blocking one is for Spark's workers and makes no object per message: an entry stays bytes.
"""
