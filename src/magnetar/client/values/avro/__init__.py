"""Avro's binary form of single values; a schema, or a pair of them, is compiled into functions once.

In reading order:

* ``logical_types`` dates, times, decimals and UUIDs in place of numbers and text
* ``defaults``      what stands for a field that was not written
* ``encoder``       values to bytes
* ``decoder``       bytes of any writer's schema to values of the reader's
"""
