"""What a native client decides, without I/O: no socket, no clock, no dice; times and chances are handed in.

In reading order:

* ``handle_life``      a producer or consumer at a broker: opening, ready, waiting to try again, closed, failed
* ``message_id``       where a message is, as applications see it
* ``outgoing_message`` one message on its way out, and one batch or entry made of such
* ``open_batches``     messages that wait for company, by default together, or by key
* ``publication``      the queue of one producer: sequence ids, receipts in order, sending again, time-outs
* ``partition_router`` which partition a message goes to
* ``message``          one message on its way in, taken out of its entry
* ``chunk_buffer``     chunks that wait for the rest of their message
* ``acknowledgement``  which entries are done with, and which messages of a batch
* ``redelivery``       negative acknowledgements that wait for their time
* ``consumption``      the queue of one consumer: permits, messages, acknowledgements, redelivery

``publication`` and ``consumption`` have a `check` that tests call after every step.
"""
