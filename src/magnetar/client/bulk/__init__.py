"""Ranges of a topic, read in bulk and without a lasting trace at the broker, and what a query needs to plan its ranges.

In reading order:

* ``data_loss``               what a reader did not get because it is gone
* ``block_receiver``          large reads into buffers, entries found by a kernel
* ``range_reader``            every entry of a range of one topic
* ``tail``                    the entries after a position, without an end
* ``positions``               where a topic begins and ends, positions by publish time and by index
* ``ledger_ranges``           a range cut where ledgers begin and end
* ``entry_info``              one entry without its content
* ``entry_scanner``           what a range holds: messages, bytes and publish times per entry
* ``lag``                     how far a reader is behind
* ``checkpoint_subscription`` a durable subscription that keeps a range readable and remembers how far a query is
"""
