"""What the REST interface says: a row for every operation, models of all bodies and answers, the OpenAPI description.

A broker imports none of it until a client asks for /openapi.json (decision 038). Reading order: ``operation`` (the
row), ``path_parameters``, ``models`` (a package), ``operations`` (a package: the rows), ``description`` (the document).
``quoted_names`` is for clients, and light.
"""
