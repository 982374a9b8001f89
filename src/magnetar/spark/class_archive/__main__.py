"""The command line of `magnetar.spark.class_archive`."""

from __future__ import annotations

import argparse
import sys

from magnetar.model.errors import MagnetarError
from magnetar.spark import class_archive
from magnetar.spark.class_archive.archive import make
from magnetar.spark.java.options import option


def main(arguments: list[str] | None = None) -> int:
    """Make the archive and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m magnetar.spark.class_archive", description=class_archive.__doc__)
    parser.add_argument(
        "--option", action="store_true", help="print Java's option for the one that is there; make none"
    )
    try:
        if parser.parse_args(arguments).option:
            sys.stdout.write(f"{option()}\n")
        else:
            sys.stdout.write(f"{make()}\n")
    except (MagnetarError, OSError) as error:
        sys.stderr.write(f"class_archive: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
