"""Handles on one topic or partition.

In reading order:

* ``receipt``        what a sender waits with
* ``producer_options`` what a producer is opened with
* ``topic_producer`` one producer: the I/O around `Publication`
* ``lazy_partition`` what stands in its place until it gets its first message
* ``version_hold``   entries that wait for the schema they were written with
* ``delivery_options`` how a consumer acknowledges, and what happens to what it does not
* ``consumer_options`` what a consumer subscribes with
* ``ack_receipts``   answers to acknowledgements
* ``due_timer``      when something is due next
* ``chunk_watch``    when a consumer looks for chunks that do not come
* ``subscription_requests`` what a consumer asks its broker, again after a lost connection
* ``topic_consumer`` one consumer: the I/O around `Consumption`
* ``demanded_consumer`` the same without a queue
"""
