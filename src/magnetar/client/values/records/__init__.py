"""Python's classes become Avro definitions.

In reading order:

* ``record_fields``    fields, as the official Python client declares them
* ``declared_record``  records of such fields
* ``class_definition`` dataclasses, pydantic models, typed dicts and their annotations
* ``record_source``    one interface to all of them, and to definitions that are given
"""
