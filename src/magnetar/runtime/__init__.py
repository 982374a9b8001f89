"""The few tools around asyncio and the operating system that are used everywhere.

Reading order: ``clock`` (wall-clock time as a seam), ``tasks`` (background tasks with an owner), ``answers`` (awaiting
a callback), ``endings`` (closing many things), ``log`` (lines on standard error), ``descriptors`` and ``doors`` (file
descriptors, and the connections that may take them), ``memory_return`` (freed memory back to the system),
``command_line`` (commands whose help answers at once).
"""
