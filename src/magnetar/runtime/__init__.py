"""The few tools around asyncio and the operating system that are used everywhere.

Reading order: ``clock`` (wall-clock time as a seam), ``tasks`` (background tasks with an owner), ``eager`` (coroutines
that begin at once), ``event`` (of which thousands may be had), ``callbacks`` (awaiting a callback), ``ctrl_c`` (what
is the user's Ctrl-C), ``teardown`` (ending many things), ``log`` (lines on standard error), ``rotated_lines`` (lines
in files that are begun anew), ``connections`` (file descriptors, who may take them, and reads of a chosen size),
``memory`` (freed memory back to the system), ``files`` (those that users name),
``command_line`` (commands whose help answers at once),
``harmless_text`` (text that others wrote, on a terminal and in lines), ``distributions``
(buckets and quantiles of what is measured), ``process_figures`` (what the system says of this process), ``host_load``
(how much of the machine is used), ``log_counts`` (lines by level).
"""
