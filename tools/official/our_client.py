"""The suite on our client: ``import pulsar`` finds `magnetar`, ``import _pulsar`` the names of it that the suite uses.

`sitecustomize` of a folder put first on the path installs a finder; nothing of the suite is rewritten.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final

_START: Final = "from tools.official.our_client import install\n\ninstall()\n"


class _Mirror(ModuleType):
    """A module of ours under the official name; what ours does not have can be imported, and fails when it is used."""

    def __init__(self, name: str, ours: ModuleType) -> None:
        super().__init__(name)
        self._ours = ours
        self.__path__ = []
        self.__all__ = list(getattr(ours, "__all__", [one for one in vars(ours) if not one.startswith("_")]))

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            found: object = getattr(self._ours, name)
        except AttributeError:
            return type(name, (), {"__init__": _missing, "__doc__": "What magnetar does not have."})
        return found


def _missing(self: object, *_: object, **__: object) -> None:
    raise NotImplementedError(f"magnetar has no {type(self).__name__}")


class _Alias(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        del path, target
        if fullname.partition(".")[0] not in ("pulsar", "_pulsar"):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        top, _, rest = spec.name.partition(".")
        name = "magnetar" if top == "_pulsar" or not rest else f"magnetar.{rest}"
        ours = importlib.import_module("magnetar.schema" if name.startswith("magnetar.schema.") else name)
        return _Mirror(spec.name, ours)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is."""


def install() -> None:
    """Have the official client's names lead to ours, in this process."""
    sys.meta_path.insert(0, _Alias())


def folder(below: Path, checkout: Path) -> str:
    """Make the folder whose presence on the path installs it; returns the path to set."""
    where = below / "our-client"
    where.mkdir(parents=True, exist_ok=True)
    (where / "sitecustomize.py").write_text(_START)
    return f"{where}:{checkout / 'src'}:{checkout}"
