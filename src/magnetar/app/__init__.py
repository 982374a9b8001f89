"""Programs: the only place where objects are wired together.

Reading order: ``main`` (the command line), ``typed_words`` (brings it into the order that parsers read),
``misplaced_words`` (what was meant by another order), ``standalone`` (a process that serves until it is stopped),
``node`` (a broker with its store, wired), ``listening_sockets`` (its ports), ``data_directory`` (the
directory, its lock, older formats), ``rest`` (the HTTP server), ``garbage_collection`` (what Python's collector is
spared), ``memory`` (what goes back to the system) and ``rescue`` (a command).
"""
