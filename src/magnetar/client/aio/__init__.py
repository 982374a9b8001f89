"""The native asyncio client: sockets, timers and tasks around the state machines of ``client.machines``.

In reading order:

* ``authentication``     credentials with the names of the official client
* ``home_loop``          the event loop that a client belongs to
* ``client_environment`` what all handles of a client share
* ``connections``        sockets, the broker of each topic, and what keeps a handle attached to it
* ``services``           which cluster they lead to, and what may have a client move
* ``forks``              what becomes of clients in processes that are forked off
* ``statistics``         numbers, rates and latencies of handles
* ``topics``             handles on one topic or partition
* ``client_transaction`` messages and acknowledgements that count together or not at all
* ``handlers``           functions of the application that run over what is received
* ``producers``          what applications publish with
* ``consumers``          what applications consume and read with
* ``interceptors``       what an application puts between itself and them
* ``views``              what applications look at instead of reading messages
* ``open_handles``       those that are open in one client
* ``parameters``         what each parameter of the public methods takes
* ``options``            what applications give to open them, checked
* ``schema_choice``      what a schema means that is given
* ``not_built``          what the official client has beyond this one
* ``client_life``        the part of a client that is about its connections
* ``reader_client``      the part that opens readers and table views
* ``client``             what opens all of them

Everything runs on one event loop and in one task at a time between two awaits. A call that is cancelled leaves what it
has handed in on its way, and takes nothing along: a message that was not returned is returned by the next call.
"""
