"""Schemas: which definitions are valid, which are the same, which may follow which (rules of group 10). Pure.

Reading order: ``avro_types`` (the tree), ``avro_numbers`` (how values are written), ``avro`` (text to tree),
``avro_defaults`` and ``avro_resolution`` (which reader can read which data), ``avro_canonical`` (when two are the
same), ``key_value``, ``protobuf_native`` and ``json_schema`` (the other structured types), ``validation`` (what is no
schema at all), ``strategies`` and ``compatibility`` (what may follow what).
"""
