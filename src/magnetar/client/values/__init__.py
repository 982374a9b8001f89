"""Values of messages by schema (rules of group 10), without I/O: to bytes, from bytes, and what the registry keeps.

In reading order:

* ``schema_info``       what a client says about its schema
* ``value_schema``      what every schema is
* ``primitives``        bytes, text, numbers and times
* ``records``           from classes to definitions: what structured schemas are made of
* ``avro``              Avro's binary form, compiled from definitions
* ``avro_schema``       values in that form, by the schema that each was written with
* ``json_values``       the same definitions for JSON
* ``json_schema``       values as JSON
* ``protobuf_schemas``  protobuf messages
* ``key_value_schema``  a key and a value, in the payload or apart
* ``auto_schemas``      what the topic has: generic values, and bytes that are checked
* ``written_schema``    the versions that one consumer meets, each with its decoder
* ``registry_answer``   what a broker says about the schemas of a topic, and what is remembered of it
"""
