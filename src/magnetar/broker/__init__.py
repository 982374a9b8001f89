"""The broker as a whole: its connections, topics, namespaces, policies and upkeep.

Reading order: ``service`` holds all loaded topics and what they share. :mod:`.connection` is how clients reach it,
:mod:`.topic` what one topic does, :mod:`.delivery` which consumer gets which entry. :mod:`.namespaces` knows which
topics there are, :mod:`.policies` which rules they follow, :mod:`.upkeep` what happens to them without a request.
``transaction_coordinator``, ``schema_registry`` and ``offloader`` are one each for the whole broker.
"""
