"""Simulator and fakes, for magnetar's own tests and for users'. May import everything; nobody imports it.

Reading order: simloop (virtual time, processes, clock), diskmodel and faultfiles (what a disk forgets), transport and
network (connections that break), machine (a computer that crashes and boots), rawclient (says what a test tells it),
broker (the whole broker on such a computer), history (what clients saw, and whether it is allowed).
"""
