"""The tree in figures: folders, longest files, names with two meanings, references that lead nowhere.

``python -m tools.structure`` prints the folders of `src` with their modules and everything that breaks a stated rule;
``--of DIRECTORY`` looks at another checkout, so that two of them can be compared; ``--folders`` prints the tree only.
`tests/test_layout.py` holds what must be zero.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.syntax_trees import parsed

ROOT: Final = Path(__file__).resolve().parent.parent
LINES_MAX: Final = 400
MODULES_MAX: Final = 15
GENERATED: Final = ("src/magnetar/protocol/generated", "src/magnetar/admin_client/generated")
BOTH_SIDES: Final = frozenset({"Consumer", "Producer"})
"""Class names that Apache Pulsar itself has in the broker and in the client."""
TWINS: Final = ("src/magnetar/client/aio/", "src/magnetar/client/blocking/")
"""Packages whose classes have the same names on purpose: those of one are awaited, those of the other block."""
NOUNS: Final = frozenset({"hashing", "hash_ring", "ring"})
"""Modules that end like a participle and are nouns of the field."""
OUTSIDE: Final = re.compile(
    r"\bSEMANTICS\b|\bPIPELINES\b|\bSTYLE(?:\.md| rule| \d)|\bPAIN(?:\.md| \d)|\bARCHITECTURE\b|\bCLUSTER\.md"
    r"|\bBOOKKEEPER\.md|\{(?:probe|mem|src)\}|\bissue \d+\b(?! of)|\.\./shared|/work/"
)
"""What cites a document that the repository does not have."""
IDIOMS: Final = {
    "behind": re.compile(r"\bbehind\b"),
    "told, tells": re.compile(r"\b(?:told|tells)\b"),
    "nobody": re.compile(r"\b[Nn]obody\b"),
    "whoever": re.compile(r"\b[Ww]hoever\b"),
}
_FRAGMENT: Final = re.compile(r"(?:Of|As|The same|Like|With|In|For|By|To|From|Where|When)\b[^.:;]*[.:;]?")


@dataclass(frozen=True)
class Module:
    """One Python file of the tree, parsed."""

    path: str
    text: str
    tree: ast.Module

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2].removesuffix(".py")

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def in_product(self) -> bool:
        return self.path.startswith("src/")


@dataclass
class Structure:
    """A checkout, and what of it breaks a rule; every property is a list of sentences, empty when all is well."""

    root: Path = ROOT
    modules: list[Module] = field(init=False)
    texts: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=self.root, capture_output=True, check=True)
        names = [name for name in listed.stdout.decode().split("\0") if name and not name.startswith(GENERATED)]
        self.texts = {}
        for name in names:
            path = self.root / name
            if path.is_file() and path.suffix in (".py", ".md", ".toml", ".yaml", ".tsv", "") and not path.is_symlink():
                self.texts[name] = path.read_text(errors="replace")
        of_modules = {name: text for name, text in self.texts.items() if name.endswith(".py")}
        trees = parsed(of_modules.values())
        self.modules = [Module(name, text, tree) for (name, text), tree in zip(of_modules.items(), trees, strict=True)]

    def folders(self) -> dict[str, int]:
        """Modules of each folder of `src`, `__init__` not counted."""
        counts: dict[str, int] = {}
        for module in self.modules:
            if module.in_product:
                counts[module.folder] = counts.get(module.folder, 0) + (module.name != "__init__")
        return dict(sorted(counts.items()))

    @property
    def full_folders(self) -> list[str]:
        return [f"{folder}: {count} modules" for folder, count in self.folders().items() if count > MODULES_MAX]

    @property
    def long_files(self) -> list[str]:
        found = sorted((-module.lines, module.path) for module in self.modules if module.lines > LINES_MAX)
        return [f"{path}: {-lines} lines" for lines, path in found]

    @property
    def duplicate_classes(self) -> list[str]:
        places: dict[str, list[str]] = defaultdict(list)
        for module in self.modules:
            for node in module.tree.body if module.in_product else ():
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(module.path)
        return [
            f"{name}: {', '.join(found)}"
            for name, found in sorted(places.items())
            if len(found) > 1 and name not in BOTH_SIDES and not _are_twins(found)
        ]

    @property
    def participles(self) -> list[str]:
        return [
            module.path
            for module in self.modules
            if module.in_product and module.name.endswith("ing") and module.name not in NOUNS
        ]

    @property
    def incomplete_reading_lists(self) -> list[str]:
        """Packages whose `__init__` leaves modules or packages of theirs unnamed."""
        found = []
        inside: dict[str, set[str]] = defaultdict(set)
        for module in self.modules:
            if module.in_product:
                inside[module.folder].add(module.name)
                inside[module.folder.rpartition("/")[0]].add(module.folder.rpartition("/")[2])
        for module in self.modules:
            if not module.in_product or module.name != "__init__":
                continue
            said = ast.get_docstring(module.tree) or ""
            unnamed = [
                name
                for name in sorted(inside[module.folder] - {"__init__", "generated"})
                if f"``{name}``" not in said and not name.startswith("_")
            ]
            if unnamed:
                found.append(f"{module.path}: {', '.join(unnamed)}")
        return found

    @property
    def imports_of_tests(self) -> list[str]:
        return [
            f"{module.path} imports from {node.module}"
            for module in self.modules
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.rpartition(".")[2].startswith("test_")
        ]

    @property
    def outside_references(self) -> list[str]:
        return [
            f"{path}:{number}: {line.strip()[:100]}"
            for path, text in self.texts.items()
            if path not in ("tools/structure.py", "CHANGELOG.md")
            for number, line in enumerate(text.splitlines(), 1)
            if OUTSIDE.search(line)
        ]

    @property
    def numbered_test_docstrings(self) -> list[str]:
        """Tests whose docstring begins with a rule's number instead of a sentence."""
        return [
            f"{module.path}: {said[:80]}"
            for module, said in self._docstrings()
            if not module.in_product and re.match(r"\d+\.\d+", said)
        ]

    @property
    def fragments(self) -> list[str]:
        """Docstrings whose first sentence begins with a preposition or conjunction: most of them are no sentences."""
        return [
            f"{module.path}: {said.splitlines()[0][:90]}"
            for module, said in self._docstrings()
            if _FRAGMENT.fullmatch(said.splitlines()[0])
        ]

    def _docstrings(self) -> Iterator[tuple[Module, str]]:
        for module in self.modules:
            for node in _defined(module.tree):
                said = ast.get_docstring(node)
                if said:
                    yield module, said

    def idioms(self) -> dict[str, int]:
        """Lines of Python with turns of phrase that have a plainer word."""
        return {
            name: sum(bool(found.search(line)) for module in self.modules for line in module.text.splitlines())
            for name, found in IDIOMS.items()
        }


Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _defined(tree: ast.Module) -> Iterator[Documented]:
    """The module, and what is defined in it at any depth; expressions, which are most of a tree, are not looked at."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, Documented):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, ())
            if isinstance(inner, list):
                left += inner


def _are_twins(paths: list[str]) -> bool:
    """Whether these are two modules, one in each package of twins."""
    return len(paths) == 2 and all(any(path.startswith(room) for path in paths) for room in TWINS)


@functools.cache
def checkout() -> Structure:
    """This checkout, read and parsed once for all rules."""
    return Structure()


RULES: Final = (
    "full_folders", "long_files", "duplicate_classes", "participles", "incomplete_reading_lists", "imports_of_tests",
    "outside_references", "numbered_test_docstrings", "fragments",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.structure", description=__doc__)
    parser.add_argument("--of", type=Path, default=ROOT, help="a checkout (default: this one)")
    parser.add_argument("--folders", action="store_true", help="the folders with their numbers of modules, no more")
    parser.add_argument("--all", action="store_true", help="every place, not only the first ten of each rule")
    parser.add_argument("--below", default="", help="only places whose line holds this text")
    known = parser.parse_args()
    structure = Structure(known.of)
    for folder, count in structure.folders().items():
        depth = folder.count("/") - 1
        print(f"{'  ' * depth}{folder.rpartition('/')[2]}/ {count}")
    if known.folders:
        return
    print()
    for rule in RULES:
        found = [line for line in getattr(structure, rule) if known.below in line]
        print(f"{rule.replace('_', ' ')}: {len(found)}")
        for line in found if known.all else found[:10]:
            print(f"    {line}")
    print("lines with", ", ".join(f"{name}: {count}" for name, count in structure.idioms().items()))


if __name__ == "__main__":
    main()
