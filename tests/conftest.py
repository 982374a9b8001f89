"""For all tests: an example of Hypothesis may take as long as it does, since the machine has other work, too."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.load_profile("here")
