"""A hostile programme against an installed broker: what one client can do with default settings and no login.

``make hostile`` runs every attack, each beside a witness (the official client, 50 messages a second in and out) and a
probe that measures how much processor time the broker's loop spends before it answers somebody else.

    victim.py      the broker as a process: its memory, processor time, log and restarts
    witness.py     the official client beside every attack: nothing lost, nothing repeated, nothing out of order
    probe.py       a PING again and again, and the processor time of the broker's loop until its PONG
    raw.py         frames without a client's scruples
    attacks/       one function an attack, by subject
    clean.py       what a clean client must still be able to do afterwards
    programme.py   all of it in order, and the verdict
"""
