"""Modules of at most 500 lines, functions of at most 80, and each module of the package says what
it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from docblocks import ROOT, where

MOST_LINES = 500
MOST_FUNCTION_LINES = 80


def modules() -> Iterator[Path]:
    for folder in ("src", "tests", "bench", "scripts"):
        yield from sorted((ROOT / folder).rglob("*.py"))
    yield from sorted(ROOT.glob("*.py"))


MODULES = list(modules())


@pytest.mark.parametrize("file", MODULES, ids=where)
def test_a_module_and_its_functions_are_small_and_it_says_what_it_is(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count("\n") <= MOST_LINES
    tree = ast.parse(text)
    if text.strip() and "tests" not in file.parts:  # the names of tests speak for themselves
        assert ast.get_docstring(tree)
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: length for name, length in lengths.items() if length > MOST_FUNCTION_LINES} == {}


def test_test_files_have_names_of_their_own() -> None:
    """Without packages in the test tree, two modules of one name would shadow each other."""
    names = [file.name for file in MODULES if "tests" in file.parts and file.name != "conftest.py"]
    assert sorted({name for name in names if names.count(name) > 1}) == []
