"""The native asyncio client: sockets, timers and tasks around the state machines of ``client.machines``.

In reading order:

* ``client_environment`` what all handles of a client share
* ``wire_connection``   one socket: requests and answers, keep-alive, credentials, and who gets which push
* ``connection_pool``   the connections of one client, by broker
* ``topic_lookup``      which broker serves a topic, how many partitions it has, which topics there are
* ``attachment``        keeps a producer or consumer attached to the broker that serves its topic
* ``topic_producer``    one producer on one topic or partition
* ``producer``          what applications have: one of these per partition
* ``topic_consumer``    one consumer on one topic or partition
* ``consumer``          what applications have: one of these per partition or matching topic
* ``topic_pattern``     topics that a pattern matches
* ``reader``            a consumer that leaves no trace
* ``client_transaction`` messages and acknowledgements that count together or not at all
* ``not_built``         what the official client has beyond this one
* ``client``            what opens all of them

Everything runs on one event loop and in one task at a time between two awaits. A call that is cancelled leaves what it
has handed in on its way, and takes nothing along: a message that was not returned is returned by the next call.
"""
