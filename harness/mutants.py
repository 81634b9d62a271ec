"""Mutation testing of a package's quick tests: `python -m harness.mutants ROOM...`.

One place of the room's code is changed at a time (a comparison, a sign, a number, a condition, a
call or a returned value left out), seeded and 60 times, in a copy of the tree. A change that no
quick test of the room notices survives; the list of survivors says where. Scores are kept in
mutants.toml. A room is a folder of the product, its tests are those of the same folder in tests/
and its own doctests.
"""

from __future__ import annotations

import argparse
import ast
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[1]
SCORES = ROOT / "mutants.toml"
_QUICK = "not slow and not thorough and not load and not browser"
_PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", _QUICK, "--tb=no")
_NO_TESTS = 5
"""What pytest ends with where it has found no test to run."""
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


class Mutant(NamedTuple):
    """One changed place: its `path` in the tree, the original text and the new one."""

    path: str
    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before[:60]!r} -> {self.after[:60]!r}"


def mutants_of(path: str, source: str) -> Iterator[Mutant]:
    """Yield every mutant of one file; annotations, decorators, f-strings and texts stay.

    >>> for mutant in mutants_of("a.py", "def f(x):\\n    return x < 1\\n"):
    ...     print(mutant)
    a.py:2: 'return x < 1' -> 'return None'
    a.py:2: 'x < 1' -> '(x <= 1)'
    a.py:2: '1' -> '2'
    """
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    raw = b"".join(lines)
    for node, after in _changes(ast.parse(source)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        changed = raw[:begin] + after.encode() + raw[end:]
        yield Mutant(path, node.lineno, raw[begin:end].decode(), after, changed.decode())


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield each node below with the text that replaces it."""
    match node:
        case ast.JoinedStr() | ast.ImportFrom():
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case (
            ast.Return(value=ast.Constant(value=None))
            | ast.BinOp(op=ast.Mult() | ast.Div(), right=ast.Constant(value=1.0))
        ):
            pass  # the change would alter nothing, or the last digit only
        case ast.Compare(ops=[operator]) | ast.BoolOp(op=operator) | ast.BinOp(op=operator):
            if swapped := _SWAPS.get(type(operator)):
                yield node, f"({_with_operator(node, swapped())})"
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
        case ast.Return(value=ast.expr()):
            yield node, "return None"
        case ast.Expr(value=ast.Call()):
            yield node, "pass"
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "type_params"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _changes(child)


def _with_operator(node: ast.Compare | ast.BoolOp | ast.BinOp, operator: ast.AST) -> str:
    changed = ast.parse(ast.unparse(node), mode="eval").body
    if isinstance(changed, ast.Compare):
        changed.ops = [operator]  # type: ignore[list-item]
    else:
        changed.op = operator  # type: ignore[attr-defined]
    return ast.unparse(changed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Write down by test which lines it runs, where coverage is measured (`-p harness.mutants`)."""
    if (measured := coverage.Coverage.current()) is not None:
        measured.switch_context(item.nodeid)
    return (yield)


class Room:
    """A package, its quick tests, and the lines that each test runs, measured once in a copy."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.copies = name, queue.SimpleQueue[Path]()
        copy = _copied(folder / "copy0")
        package = name if name == "evenhand" else f"evenhand/{name.removeprefix('evenhand/')}"
        tests = [path for path in (f"tests/{name}", package) if (copy / path).exists()]
        links = [path for path in (copy / package).glob("*") if path.is_symlink()]  # other rooms
        self.tests = [*tests, *(f"--ignore={path.relative_to(copy)}" for path in links)]
        began = time.monotonic()
        measured = [
            "-m",
            "coverage",
            "run",
            f"--source={package}",
            f"--data-file={folder / 'lines'}",
        ]
        # What this run compiles is kept: the sources of mutants differ from it in their times.
        code = _python(copy, [*measured, *_PYTEST, "-p", "harness.mutants", *self.tests], None, "")
        if code:
            raise SystemExit(f"{name}: its quick tests do not pass as they are (pytest: {code})")
        self.patience = 30 + 3 * (time.monotonic() - began)
        self.lines = coverage.CoverageData(str(folder / "lines"))
        self.lines.read()
        self.copies.put(copy)
        for number in range(1, os.cpu_count() or 1):
            self.copies.put(shutil.copytree(copy, folder / f"copy{number}", symlinks=True))

    def notices(self, mutant: Mutant) -> bool:
        """Return whether a quick test fails on the mutant: those that run its statement, then their
        whole files, which may share what a fixture made, or all if an import runs it. What runs in
        another process only is not noticed.
        """
        copy = self.copies.get()
        path = copy / mutant.path
        before, times = path.read_text("utf-8"), path.stat()
        real = {Path(file).resolve(): file for file in self.lines.measured_files()}
        name = next((real[f] for f in real if f.as_posix().endswith("/" + mutant.path)), "")
        by_line = self.lines.contexts_by_lineno(name)
        lines = _lines_of_statement(before, mutant.line)
        contexts = {context for line in lines for context in by_line.get(line, ())}
        if not contexts:  # after a coroutine CPython 3.11 records no more lines of its caller
            lines = _lines_of_function(before, mutant.line)
            contexts = {context for line in lines for context in by_line.get(line, ())}
        nearest = sorted(contexts - {""})
        files = sorted({test.partition("::")[0] for test in nearest})
        try:
            path.write_text(mutant.source, "utf-8")
            for tests in (nearest, self.tests if "" in contexts else files):
                code = _python(copy, [*_PYTEST, *tests], self.patience) if tests else 0
                if code not in (0, _NO_TESTS):
                    return True
            return False
        finally:
            path.write_text(before, "utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            self.copies.put(copy)


def _lines_of_statement(source: str, line: int) -> range:
    """Return the lines of the innermost statement around a line, without those of its body."""
    around = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    innermost = max(around, key=lambda node: node.lineno)
    body = getattr(innermost, "body", None)
    end = body[0].lineno if body else (innermost.end_lineno or 0) + 1
    return range(innermost.lineno, max(end, line + 1))


def _lines_of_function(source: str, line: int) -> range:
    """Return the lines of the body of the innermost function around a line, which may be none.

    >>> _lines_of_function("x = 1\\ndef f(\\n    y=1,\\n):\\n    y += 1\\n    return y\\n", 6)
    range(5, 7)
    """
    bodies = [
        range(node.body[0].lineno, (node.end_lineno or 0) + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return max((body for body in bodies if line in body), key=min, default=range(0))


def _copied(folder: Path) -> Path:
    """Copy the tree without what git ignores, links as links, to `folder`."""
    names = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, names.stdout.decode().split("\0")):
        if os.path.lexists(ROOT / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def _python(
    copy: Path, arguments: Sequence[str], timeout: float | None, keeps_no_bytecode: str = "1"
) -> int:
    """Run Python in a copy; return its exit code, or -1 after `timeout` seconds. What it compiles
    is kept only if `keeps_no_bytecode` is empty.
    """
    shared = ROOT / os.environ.get("EVENHAND_SHARED", "../shared")
    variables = {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": keeps_no_bytecode,
        "EVENHAND_SHARED": str(shared),
    }
    with suppress(subprocess.TimeoutExpired):
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=copy,
            env={**os.environ, **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
        ).returncode
    return -1


def score(room: str, count: int, seed: int) -> tuple[int, list[Mutant]]:
    """Return how many mutants of a room were made, and those that no quick test noticed."""
    files = sorted(path for path in (ROOT / room).rglob("*.py") if path.resolve() == path)
    mutants = [
        mutant
        for path in files
        for mutant in mutants_of(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    ]
    drawn = random.Random(f"{seed} {room}").sample(mutants, min(count, len(mutants)))
    with tempfile.TemporaryDirectory() as folder:
        tested_room = Room(room, Path(folder))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            noticed = [*pool.map(tested_room.notices, drawn)]
    return len(drawn), [
        mutant for mutant, is_noticed in zip(drawn, noticed, strict=True) if not is_noticed
    ]


def main() -> None:
    """Print a room's survivors and write its score into mutants.toml."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rooms", nargs="+")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=20261126)
    options = parser.parse_args()
    if missing := [room for room in options.rooms if not (ROOT / room).is_dir()]:
        parser.error(f"there is no folder {missing[0]}")
    scores = tomllib.loads(SCORES.read_text("utf-8")) if SCORES.is_file() else {}
    for room in options.rooms:
        n_mutants, survivors = score(room.strip("/"), options.count, options.seed)
        print(*survivors, sep="\n")
        print(f"{room}: {n_mutants - len(survivors)} of {n_mutants} noticed", flush=True)
        scores[room.strip("/")] = {"noticed": n_mutants - len(survivors), "mutants": n_mutants}
        lines = [
            f'"{name}" = {{ noticed = {s["noticed"]}, mutants = {s["mutants"]} }}'
            for name, s in sorted(scores.items())
        ]
        SCORES.write_text(
            "\n".join(["# By `make mutants ROOM=...`; of each room's quick tests.", *lines, ""]),
            "utf-8",
        )


if __name__ == "__main__":
    main()
