"""The frames that a broker or a client writes most, made by hand instead of by protobuf.

In reading order:

* ``receipts``     SEND_RECEIPT
* ``deliveries``   what stands before the entry in MESSAGE
* ``entry_stamps`` what a broker says of an entry, between the two
* ``topic_lists``  the answer to GET_TOPICS_OF_NAMESPACE, piece by piece
* ``sends``        what stands before the entry in SEND, as a client writes it

Tests compare each with protobuf's bytes.
"""
