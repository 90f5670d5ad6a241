"""What exists is documented, and what is documented exists: errors, settings, names, tools,
commands.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

from docblocks import ROOT

import clawmark
from clawmark.agent.tools import make_tools
from clawmark.config.keys import KEYS
from clawmark.memory import Memory
from clawmark.model import errors
from clawmark.model.documents import Excerpt
from clawmark.model.values import Filters, Found

PACKAGE = ROOT / "src" / "clawmark"
REFERENCE = ROOT / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def test_every_error_is_documented_with_its_parent_and_exit_code() -> None:
    documented = re.findall(
        r"^\| `(\w+)` \| (?:`(\w+)`)? ?\| (\d) \|", page("errors"), flags=re.MULTILINE
    )
    actual = []
    for name, one in inspect.getmembers(errors, inspect.isclass):
        assert issubclass(one, errors.ClawmarkError)
        parent = "" if one is errors.ClawmarkError else one.__bases__[0].__name__
        actual.append((name, parent, str(one.exit_code)))
    assert sorted(documented) == sorted(actual)


def test_the_generated_pages_are_what_the_code_makes_them() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "reference"), "--check"]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_every_setting_is_documented() -> None:
    text = page("config")
    assert [key.name for key in KEYS if f"`{key.name}`" not in text] == []


def test_every_public_name_can_be_imported_and_is_documented() -> None:
    text = page("library")
    for name in clawmark.__all__:
        assert getattr(clawmark, name) is not None
        assert re.search(rf"\b{re.escape(name)}\b", text), name


def test_every_verb_of_memory_is_documented_once_and_no_other() -> None:
    verbs = {
        name
        for name, member in inspect.getmembers(Memory)
        if not name.startswith("_") and callable(member)
    }
    documented = re.findall(r"^\| `(?:Memory)?\.(\w+)\(", page("library"), flags=re.MULTILINE)
    assert sorted(documented) == sorted(verbs)


def test_every_tool_and_parameter_is_documented() -> None:
    def search(query: str, limit: int, threshold: float, filters: Filters) -> Found:
        raise AssertionError(query)

    def read(path: str, start: int, lines: int | None) -> Excerpt:
        raise AssertionError(path)

    text = page("tools")
    for tool in make_tools(
        search, read, citations="auto", session_key=None, max_results=6, min_score=0.35
    ):
        section = text.split(f"\n## {tool.name}\n")[1].split("\n## ")[0]
        properties = tool.parameters["properties"]
        assert isinstance(properties, dict)
        assert [name for name in properties if f"\n| `{name}` |" not in section] == []
