"""Who may do what: one permission table for every wire command and every route, and the rules that answer it.

Everything here is pure: it looks at a copy of the metadata and never waits. Read ``operations`` (Pulsar's names for
what can be done) and ``access`` (an operation on an object) first, then ``caller`` (who asks) and ``decision`` (the
answer, with its reason and what would change it); ``grants`` (what metadata and settings say about roles), ``rules``
(what follows from that for one role) with ``remedies`` (what would allow it), and ``authorizer``, which everybody asks.
``permission_table`` says what each command and each route needs. ``audit`` makes records of what was decided. For
people who ask why: ``operation_names`` (what can be asked about) and ``explanation`` (the answer).
"""
