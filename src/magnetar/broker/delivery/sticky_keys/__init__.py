"""How a Key_Shared subscription divides the keys among its consumers.

The hash of a key is a slot. ``selector`` is the interface of what assigns slots to consumers, with three
implementations: ``hash_ranges`` and ``hash_ring`` (AUTO_SPLIT) and ``sticky_ranges`` (STICKY). ``draining_hashes``
keeps a slot's entries in order when it changes hands, and ``sticky_replay`` holds the entries whose consumer could not
take them yet.
"""
