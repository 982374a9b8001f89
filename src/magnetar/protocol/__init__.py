"""Bytes to typed commands and back, for both roles; pure (no socket, clock or log).

Reading order: ``frames`` (sizes, magic, checksum), the room ``commands``, ``codec`` (commands and protobuf, whose
compiled form is in ``generated``), ``decoder`` (bytes in, commands out; ``hot_commands`` reads three of them by hand,
the room ``alike_commands`` those that are alike),
``unparsed_commands`` (those with very many ids), ``varints``, the room ``handmade_frames`` (those that are written
most), ``compression``, ``message_keys``, ``entries`` and ``batches`` (what is
inside SEND and MESSAGE), ``sticky_key`` (what Key_Shared
hashes of an entry), ``stored_metadata`` (metadata of entries in a log, read without failing), ``server`` and ``client``
(who may say what when).
"""
