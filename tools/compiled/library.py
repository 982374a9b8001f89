"""Source to shared libraries: mypyc writes C, the machine's compiler compiles it, several files at a time.

``python -m tools.compiled.library ROOT INTO`` is a process of its own, since mypy keeps all it has read in memory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, cast

from magnetar.compiled_build import COMPILED

LIBRARY: Final = "magnetar_compiled"
"""The group's name: all modules are in one library, ``magnetar_compiled__mypyc``, and refer to it."""
CONFIGURATION: Final = Path(__file__).with_name("mypy.ini")
"""That of mypy: it reads the types to know them, `make check` judges them."""


def missing() -> str:
    """Return what this machine lacks to compile, or nothing."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None and shutil.which("cc") is None:
        return f"no C compiler ({compiler}); on Debian: apt-get install gcc"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return f"no Python.h in {sysconfig.get_path('include')}; on Debian: apt-get install python3-dev"
    try:
        import mypyc.build  # noqa: F401
    except ImportError as error:
        return f"no mypyc: {error}"
    return ""


def source_of(module: str) -> str:
    """Return where a module's source stands below ``src``."""
    return module.replace(".", "/") + ".py"


def compile_into(
    root: Path, into: Path, modules: tuple[str, ...] = COMPILED, *, level: str = "2", jobs: int | None = None
) -> list[Path]:
    """Compile ``modules`` of the checkout ``root``; returns the libraries, below ``into`` as they are to be imported.

    What C says as before is not compiled again. Changes the working directory. Raises SystemExit with the words of
    mypy or the compiler.
    """
    import setuptools
    import setuptools.command.build_ext as builder  # before mypyc, which takes distutils otherwise
    from mypyc.build import mypycify

    os.chdir(root)
    work = into / "c"
    paths = [f"src/{source_of(name)}" for name in modules]
    extensions = mypycify(
        [f"--config-file={CONFIGURATION}", *paths],
        only_compile_paths=paths,
        opt_level=level,
        debug_level="0",
        multi_file=True,
        target_dir=str(work),
        group_name=LIBRARY,
    )

    class BuildSideBySide(builder.build_ext):  # type: ignore[misc]  # it has no types
        def build_extensions(self) -> None:
            compile_some = self.compiler.compile

            def compile_all(sources: list[str], **rest: Any) -> list[str]:
                headers = max(path.stat().st_mtime for path in work.rglob("*.h"))

                def compile_one(source: str) -> list[str]:
                    made: list[str] = self.compiler.object_filenames([source], output_dir=rest["output_dir"])
                    since = Path(made[0]).stat().st_mtime if Path(made[0]).exists() else 0.0
                    if since > max(headers, Path(source).stat().st_mtime):
                        return made
                    return cast("list[str]", compile_some([source], **rest))

                with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
                    return [each for some in pool.map(compile_one, sources) for each in some]

            self.compiler.compile = compile_all
            super().build_extensions()

    command = BuildSideBySide(setuptools.Distribution({"name": LIBRARY, "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(into / "lib"), str(into / "o")
    command.ensure_finalized()
    command.run()
    return [into / "lib" / Path(one).relative_to(into / "lib") for one in command.get_outputs()]


def main() -> None:
    """Compile, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("into", type=Path)
    parser.add_argument("--level", default="2", help="the compiler's optimization")
    parser.add_argument("--modules", default="", help="comma list, instead of those of magnetar.compiled_build")
    chosen = parser.parse_args()
    modules = tuple(chosen.modules.split(",")) if chosen.modules else COMPILED
    for library in compile_into(chosen.root.resolve(), chosen.into.resolve(), modules, level=chosen.level):
        print(library)


if __name__ == "__main__":
    main()
