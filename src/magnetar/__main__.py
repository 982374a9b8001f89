"""``python -m magnetar`` is the command ``magnetar``."""

from __future__ import annotations

from magnetar.app.main import main

main()
