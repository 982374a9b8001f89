"""Messages on their way out, without I/O.

In reading order:

* ``outgoing_message`` one message on its way out, and one batch or entry made of such
* ``entry_fate``       what becomes of the messages of one entry
* ``batching_type``    which messages may be in one batch
* ``open_batches``     messages that wait for company, by default together, or by key
* ``batch_wait``       how long they wait
* ``unconfirmed_entry``  one entry without a receipt
* ``pending_bytes``    how much memory all that has met no fate takes, of one client
* ``early_messages``   those of a partition that is not open yet
* ``publication_limits`` how much waits, for how long, and how much goes together
* ``publication``      the queue of one producer: sequence ids, receipts in order, sending again, time-outs
* ``partition_router`` which partition a message goes to
"""
