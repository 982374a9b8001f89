"""What a native client decides, without I/O: no socket, no clock, no dice; times and chances are handed in.

In reading order:

* ``handle_life``      a producer or consumer at a broker: opening, ready, waiting to try again, closed, failed
* ``cluster_choice``   which of several clusters a client uses
* ``message_id``       where a message is, as applications see it
* ``outgoing``         messages on their way out: batches, entries, the queue of one producer, partitions
* ``message``          one message on its way in, taken out of its entry
* ``message_queue``    entries that wait, and the messages of them that may be taken now
* ``entry_intake``     entries as they come to entries that can be taken
* ``chunk_buffer``     chunks that wait for the rest of their message
* ``acknowledgement``  which entries are done with, and which messages of a batch
* ``ack_pace``         when acknowledgements are written
* ``redelivery``       when a message comes again, how often, and what is sent where it does not
* ``batch_receive_policy`` when a batch of messages is returned
* ``subscription_choices`` which keys, and which topics of a pattern
* ``prefetch``         permits, and what comes without room
* ``consumption_limits`` how much waits, and what opens what is encrypted
* ``consumer_commands`` what a consumer writes about messages it had
* ``consumption``      the queue of one consumer: permits, messages, acknowledgements, redelivery
* ``handler_schedule`` which messages at hand a handler may have now

``outgoing.publication`` and ``consumption`` have a `check` that tests call after every step.
"""
