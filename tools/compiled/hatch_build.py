"""The build hook of hatchling, off by default: wheels with the shared libraries beside the sources.

``HATCH_BUILD_HOOK_ENABLE_CUSTOM=true`` switches it on (``pip wheel .``, cibuildwheel); without it, and for editable
installations, the wheel is the pure one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from typing_extensions import override


class CompiledWheel(BuildHookInterface):  # type: ignore[type-arg,misc,unused-ignore]  # hatchling is not installed here
    """Compiles the modules of ``magnetar.compiled_build`` into the wheel."""

    PLUGIN_NAME = "custom"

    @override
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have the libraries packed. Raises CalledProcessError."""
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        work = root / "build" / "wheel"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root / "src"), str(root)))}
        command = [sys.executable, "-m", "tools.compiled.library", str(root), str(work), "--level", "3"]
        subprocess.run(command, cwd=root, env=environment, check=True)
        for library in sorted((work / "lib").rglob("*.so")):
            build_data["force_include"][str(library)] = str(library.relative_to(work / "lib"))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
