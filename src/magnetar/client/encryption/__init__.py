"""End-to-end encryption of the native client (rules of 6.11): what `columnar.single_entries` seals and opens, with keys
that the application reads.

In reading order:

* ``crypto_failure_action`` what becomes of a message when a key is missing
* ``crypto_key_reader``     where keys come from: files, URIs, or a class of the application
* ``encryption_context``    what a received message shows of its encryption
* ``message_sealer``        the data key of one producer, and its renewal
* ``message_unsealer``      what one consumer opens, and what it does with the rest
"""
