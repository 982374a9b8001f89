"""`make judges`: the official pulsar-admin, pulsar-client and pulsar-perf run one list of commands.

- `command_list`  `commands.tsv`, every command that applies with arguments, in an order that makes them meaningful
- `java_tools`    runs the tools of Apache Pulsar's distribution, most of them in one Java process
- `our_tool`      runs the same lines with our own command line
- `recording_proxy`, `exchange`  note what the tools ask Apache Pulsar, and the file that keeps it
- `replay`        sends what was recorded to magnetar: what `make test` does, without Java
- `own_answers`   gives our own `magnetar admin` the recorded answers, and compares it with pulsar-admin
- `said`          what a command came to
- `normal`        takes out of an answer what differs in every run: ports, times, ids, rates
- `verdict`       compares two runs; `accepted.tsv` lists the differences that are known, each with its reason
- `__main__`      the command line

Java and the distribution are needed (`tools.servers.apache` gets them, as for `make oracle`); nothing of them is kept.
"""
