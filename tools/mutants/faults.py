"""Which single faults a module can have: every small change of its text that a tired programmer might have made.

Pure: text in, faults out. A fault keeps the rest of the module byte for byte, so its diff is one line long. What
only people read (log lines, error texts, annotations, protocols) is left alone: no test should be needed for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_COMPARISONS: Final = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_ARITHMETIC: Final = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}
KINDS: Final = (
    "and, or", "arithmetic", "comparison", "condition turned round", "constant", "not left out", "other jump",
    "returns nothing", "statement left out",
)  # fmt: skip
"""Statements left out, results not returned and conditions of rarely taken ways are what survives most."""
_FOR_PEOPLE: Final = {"complain", "complaints"}
"""Calls of these, and of the module's ``log``, are read by people; nothing else depends on them."""
_SPOKEN: Final = {"__repr__", "__str__", "__del__"}
_ASKED_BY_TESTS: Final = "Assert "
"""What begins so says for tests whether everything fits together: of its faults no broker knows."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One change: the bytes from ``start`` to ``end`` of the module's text become ``text``."""

    path: str
    where: str
    """Class and function, dotted; empty at module level."""
    kind: str
    start: int
    end: int
    text: str
    line: int
    lines: tuple[int, int]
    """First and last line of the statement, or of its head: who passes one of them can notice the fault."""
    in_function: bool
    """Otherwise it is passed by the tests that import the module."""
    before: str
    """Its line, or lines, joined and stripped."""
    after: str

    @property
    def name(self) -> str:
        """What it is called in the list of equivalent faults: survives changes elsewhere in the file."""
        return f"{self.path}\t{self.where}\t{self.before}\t{self.after}"

    def apply(self, source: bytes) -> bytes:
        """The module with this fault."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def faults_of(path: str, source: bytes, *, after: str | None = None) -> list[Fault]:
    """All of one module, or those whose line is ``after`` then, in its order; changes that are no Python are left
    out."""
    finder = _Finder(path, source, after)
    finder.body(ast.parse(source).body, "")
    return finder.found


class _Finder:
    def __init__(self, path: str, source: bytes, after: str | None) -> None:
        self.found: list[Fault] = []
        self._after = after
        self._path = path
        self._source = source
        self._starts = [0]
        for line in source.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._where = ""
        self._in_function = False
        self._lines = (0, 0)

    # statements --------------------------------------------------------------------------------------------------

    def body(self, statements: list[ast.stmt], where: str) -> None:
        """Faults of these statements and of all inside them."""
        for statement in statements:
            self._where = where
            self._statement(statement, where)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, where: str) -> None:
        outside, self._in_function = self._in_function, True
        first = next((one for one in node.body if not _for_people(one)), node.body[0])
        self._lines = (first.lineno, first.lineno)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            self._expression(default)
        last = node.body[-1]
        if isinstance(last, ast.Return) and last.value is None:
            node.body[-1] = ast.Pass()  # to leave it out changes nothing
        self.body(node.body, where)
        self._in_function = outside

    def _statement(self, node: ast.stmt, where: str) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if (
                    node.name not in _SPOKEN
                    and not _is_stub(node)
                    and not (ast.get_docstring(node) or "").startswith(_ASKED_BY_TESTS)
                ):
                    self._function(node, f"{where}.{node.name}".lstrip("."))
                return
            case ast.ClassDef():
                if not any("Protocol" in ast.unparse(base) for base in node.bases):
                    self.body(node.body, f"{where}.{node.name}".lstrip("."))
                return
            case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass() | ast.Global() | ast.Nonlocal():
                return
            case _:
                pass
        blocks = [block for name in ("body", "orelse", "finalbody") if (block := getattr(node, name, None))]
        blocks += [handler.body for handler in getattr(node, "handlers", ())]
        blocks += [case.body for case in getattr(node, "cases", ())]
        last = min((block[0].lineno - 1 for block in blocks), default=node.end_lineno or node.lineno)
        self._lines = (node.lineno, max(node.lineno, last))
        if _for_people(node) or (isinstance(node, ast.If) and all(map(_for_people, node.body)) and not node.orelse):
            return
        self._whole(node, where)
        if not isinstance(node, ast.Raise):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    if not (isinstance(node, ast.AnnAssign) and child is node.annotation):
                        self._expression(child)
                elif isinstance(child, ast.withitem):
                    self._expression(child.context_expr)
        for block in blocks:
            self.body(block, where)

    def _whole(self, node: ast.stmt, where: str) -> None:
        """Faults of the statement as such: it is missing, it is another one, its condition is turned round."""
        making = where.endswith("__init__")
        match node:
            case ast.If() | ast.While() if not isinstance(node.test, ast.Constant):
                self._negate(node.test)
            case ast.Expr(value=ast.Call() | ast.Await()):
                self._replace(node, "pass", "statement left out")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign() | ast.Delete():
                if where and not making:
                    self._replace(node, "pass", "statement left out")
            case ast.Return(value=None) | ast.Raise():
                self._replace(node, "pass", "statement left out")
            case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
                self._replace(node, "return None", "returns nothing")
            case ast.Continue():
                self._replace(node, "break", "other jump")
            case ast.Break():
                self._replace(node, "continue", "other jump")
            case _:
                pass

    # expressions -------------------------------------------------------------------------------------------------

    def _expression(self, root: ast.expr | None) -> None:
        for node in _inside(root):
            match node:
                case ast.Compare():
                    operands = [node.left, *node.comparators]
                    for index, operator in enumerate(node.ops):
                        self._operator(operands[index], operands[index + 1], _COMPARISONS[type(operator)], "comparison")
                case ast.BoolOp():
                    old = "and" if isinstance(node.op, ast.And) else "or"
                    pair = (old, "or" if old == "and" else "and")
                    for left, right in zip(node.values, node.values[1:], strict=False):
                        self._operator(left, right, pair, "and, or")
                case ast.BinOp() if type(node.op) in _ARITHMETIC and not _is_text(node) and not _is_type(node):
                    self._operator(node.left, node.right, _ARITHMETIC[type(node.op)], "arithmetic")
                case ast.UnaryOp(op=ast.Not()):
                    self._span(self._at(node), self._at(node.operand), "", "not left out")
                case ast.IfExp():
                    self._negate(node.test)
                case ast.Constant(value=bool()):
                    self._replace(node, str(not node.value), "constant")
                case ast.Constant(value=int(number)):
                    self._replace(node, str(number + 1), "constant")
                case _:
                    pass

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare | ast.UnaryOp):  # those are turned round as what they are
            old = self._source[self._at(test) : self._end(test)].decode()
            self._replace(test, f"not ({old})", "condition turned round")

    def _operator(self, left: ast.expr, right: ast.expr, pair: tuple[str, str], kind: str) -> None:
        start, end = self._end(left), self._at(right)
        pattern = r"\s+".join(map(re.escape, pair[0].split()))
        if pair[0][0].isalpha():
            pattern = rf"\b{pattern}\b"
        found = re.search(pattern.encode(), self._source[start:end])
        if found is not None:
            self._span(start + found.start(), start + found.end(), pair[1], kind)

    # spans -------------------------------------------------------------------------------------------------------

    def _at(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def _replace(self, node: ast.expr | ast.stmt, text: str, kind: str) -> None:
        self._span(self._at(node), self._end(node), text, kind)

    def _span(self, start: int, end: int, text: str, kind: str) -> None:
        source = self._source
        changed = source[:start] + text.encode() + source[end:]
        first = source.rfind(b"\n", 0, start) + 1
        stop = source.find(b"\n", end)
        if stop < 0:
            stop = len(source)
        shown = stop + len(changed) - len(source)
        line = source.count(b"\n", 0, start) + 1
        after = _joined(changed[first:shown])
        if self._after not in (None, after):
            return
        try:
            compile(changed, self._path, "exec")
        except SyntaxError:
            return
        self.found.append(
            Fault(
                self._path, self._where, kind, start, end, text, line, self._lines, self._in_function,
                _joined(source[first:stop]), after,
            )
        )  # fmt: skip


def _joined(text: bytes) -> str:
    return " ".join(text.decode().split())


def _inside(root: ast.expr | None) -> Iterator[ast.expr]:
    """The expression and all below it, without annotations, lambdas' signatures and texts."""
    if root is None or isinstance(root, ast.JoinedStr):
        return
    yield root
    for child in ast.iter_child_nodes(root):
        if isinstance(child, ast.expr):
            yield from _inside(child)
        elif isinstance(child, ast.comprehension):
            for part in (child.iter, *child.ifs):
                yield from _inside(part)
        elif isinstance(child, ast.keyword) and not _asserts(child):
            yield from _inside(child.value)


def _asserts(argument: ast.keyword) -> bool:
    """``strict=True``: like an assertion, it says what holds anyway."""
    return argument.arg == "strict" and isinstance(argument.value, ast.Constant) and argument.value.value is True


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _is_type(node: ast.BinOp) -> bool:
    """``int | None`` and its like, in isinstance and aliases."""
    last = node.right
    if isinstance(last, ast.Constant):
        return last.value is None
    name = ast.unparse(last).rpartition(".")[2]
    is_class = name[:1].isupper() and not name.isupper()
    return isinstance(node.op, ast.BitOr) and (is_class or name in _BUILTIN_TYPES)


_BUILTIN_TYPES: Final = {"int", "str", "bytes", "bytearray", "memoryview", "float", "bool", "dict", "list", "tuple"}


def _is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = [one for one in node.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    return not body


def _for_people(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    names = ast.unparse(node.value.func).split(".")
    return names[0] == "log" or bool(_FOR_PEOPLE & set(names))
