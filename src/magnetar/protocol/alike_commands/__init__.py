"""Consecutive SENDs and ACKs that are laid out alike, read by where the parts of the first stand (docs/decisions/077).

Reading order: ``layouts`` (where the parts of one stand), ``runs`` (those of one producer or consumer, which become one
command), ``turns`` (those of several in turn, which stay as they are).
"""
