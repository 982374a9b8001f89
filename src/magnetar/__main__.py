"""The command ``magnetar``, and ``python -m magnetar``: what a Ctrl-C meets while the program is being loaded."""

from __future__ import annotations


def main() -> None:
    """Load the program and run it; a Ctrl-C meanwhile ends it quietly, as a shell expects."""
    try:
        from magnetar.app.main import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
