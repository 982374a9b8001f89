"""The broker as a whole: its connections, topics, namespaces, policies and upkeep.

Reading order: ``service`` holds all loaded topics and what they share. ``connection`` is how clients reach it,
``topic`` what one topic does, ``delivery`` which consumer gets which entry, ``throttling`` how fast it may.
``namespaces`` knows which topics there are, ``policies`` which rules they follow, ``upkeep`` what happens to them
without a request. ``surroundings`` is what belongs to the program around it. ``transaction_coordinator``,
``schema_registry`` and ``offloader`` are one each for the whole broker, as is ``activity``, what they all count.
``setting_changes`` brings settings that change while it runs to all of them.
"""
