"""How commands print: for people on a terminal, for scripts everywhere else.

Read ``terminal`` (where output goes), ``java_json`` (JSON as Pulsar's tools
print it), ``figures`` (sizes, rates and ages in words), ``tables`` (lists and statistics as tables), ``printer`` (which
of them is used), ``waiting_line`` (waiting for long work), ``first_trouble`` (a client that goes on trying) and
``exit_code`` (of a closed pipe and of Ctrl-C).
"""
