"""What runs in a user's process: a blocking client on plain sockets, for code that has no event loop (Spark's workers).

May import protocol, security, runtime, model. In reading order:

* `address`     where a broker is
* `errors`      what can go wrong, said with what, where and the next step
* `connection`  one socket: requests and their answers, keep-alive, pushes
* `lookup`      which broker serves a topic, how many partitions it has
* `place`       the point before a message in a topic's log
* `gap`        what a reader did not get because it is gone
* `session`     reading from a place on, the wire's side of it
* `reader`      every entry of a range of one topic, in bulk, without a lasting trace at the broker
* `lag`         how far a reader is behind
* `onward`      what comes after a range, for ever
* `survey`      what stands in a range without keeping it: messages, bytes, publish times; places by time and index
* `borders`     where ledgers begin and end
* `anchor`      a durable subscription that keeps a range readable and remembers how far one is
* `producer`    raw entries under one producer name, with receipts

It speaks to any broker with Pulsar's wire protocol. Nothing here makes an object per message: an entry stays bytes.
"""
