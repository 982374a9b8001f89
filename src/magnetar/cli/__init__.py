"""Commands of the ``magnetar`` program that need no broker of their own; :mod:`magnetar.app.main` passes them on.

Each is a package with a module ``command``: ``tokens`` makes keys and tokens, ``permissions`` asks a broker who may do
what, ``explain`` why nothing arrives, ``doctor`` looks at the machine, ``contexts`` keeps saved connections,
``completion`` completes command lines, ``admin`` operates a broker, ``messages`` sends and receives, ``sql`` queries
topics, ``perf`` measures, ``backup`` and ``restore`` keep everything and bring it back; ``output`` is how they print.
Where the broker is and how to log in, :mod:`magnetar.contexts` says for all of them.
"""
