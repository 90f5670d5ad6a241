"""The shape of the code: sizes, line lengths, imports, constructions and caught exceptions."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from docblocks import ROOT, where

MAX_LINES = 500
MAX_FUNCTION_LINES = 80
MAX_COLUMNS = 100
MAX_MODULES = 16
MAX_LATE_IMPORTS = 220
"""Of what a cold search, a sync without changes or a hook does without, and of optional extras."""
MAX_POSITIONAL = 3
SOURCE = ROOT / "src" / "clawmark"
ONE_MODULE_PER_VERB = SOURCE / "cli" / "commands"


def modules() -> Iterator[Path]:
    for folder in ("src", "tests", "bench", "scripts"):
        yield from sorted((ROOT / folder).rglob("*.py"))
    yield from sorted(ROOT.glob("*.py"))


MODULES = list(modules())
SOURCES = [file for file in MODULES if file.is_relative_to(SOURCE)]


@cache
def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", MODULES, ids=where)
def test_a_module_and_its_functions_are_small_and_it_has_a_docstring(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_LINES
    tree = parse(file)
    if text.strip() and "tests" not in file.parts:
        assert ast.get_docstring(tree)
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: length for name, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}


def test_test_files_have_unique_names() -> None:
    """Without packages in the test tree, two modules of one name would shadow each other."""
    names = [file.name for file in MODULES if "tests" in file.parts and file.name != "conftest.py"]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_packages_have_few_modules_at_one_level() -> None:
    counts = Counter(file.parent for file in SOURCES if file.name != "__init__.py")
    del counts[ONE_MODULE_PER_VERB]
    assert {where(folder): count for folder, count in counts.items() if count > MAX_MODULES} == {}


def test_lines_of_source_fit_a_screen() -> None:
    long = [
        f"{where(file)}:{number}"
        for file in SOURCES
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if sum(unicodedata.category(letter) != "Mn" for letter in line) > MAX_COLUMNS
    ]
    assert long == []


def test_named_tuples_with_many_values_are_built_by_keyword() -> None:
    fields = {
        node.name: sum(isinstance(part, ast.AnnAssign) for part in node.body)
        for file in SOURCES
        for node in ast.walk(parse(file))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases)
    }
    positional = [
        f"{where(file)}:{node.lineno} {name}"
        for file in SOURCES
        for node in ast.walk(parse(file))
        if isinstance(node, ast.Call)
        and (name := _called(node)) in fields
        and len(node.args) > MAX_POSITIONAL
    ]
    assert fields
    assert positional == []


def test_few_imports_are_inside_functions() -> None:
    late = {where(file): len(lines) for file in SOURCES if (lines := _late_imports(file))}
    assert sum(late.values()) < MAX_LATE_IMPORTS, late


def test_a_caught_exception_of_any_kind_has_a_comment() -> None:
    """`except Exception` is for boundaries, and the comment says which one it is."""
    bare = []
    for file in SOURCES:
        lines = file.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            before = lines[number - 1].lstrip() if number else ""
            if re.match(r"\s*except (Base)?Exception\b", line) and not (
                re.search(r":\s+#", line) or before.startswith("#")
            ):
                bare.append(f"{where(file)}:{number + 1}")
    assert bare == []


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _late_imports(file: Path) -> set[int]:
    """Return the lines of the imports inside functions, with calls of `import_module`."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        inner.lineno
        for node in ast.walk(parse(file))
        if isinstance(node, functions)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
        or (isinstance(inner, ast.Call) and _called(inner) == "import_module")
    }
