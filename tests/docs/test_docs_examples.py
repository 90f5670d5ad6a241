"""Every block marked `<!-- runs -->` runs, in the order of its document, and prints what the
document says it prints.

A document gets a home and a folder of its own; its blocks share them, and the folder a block
changes to. In a `console` block the lines after a command are its output. They are compared with
numbers masked (scores and dates differ from day to day) and `…` standing for anything; a command
without lines after it may print what it likes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

import pytest
from docblocks import ROOT, Block, blocks, documents, where

HANG_SECONDS = 300
SHOWN_DAY = "2026-11-15"
FOREIGN = (
    "CLAWMARK_",
    "OPENCLAW_",
    "OLLAMA_",
    "AWS_",
)  # with keys, what would make an example ask a service
RUNNABLE = [file for file in documents() if any(block.runs for block in blocks(file))]


class Command(NamedTuple):
    """One command of a console block, and the output written below it."""

    text: str
    output: str


class Place(NamedTuple):
    """Where the blocks of one document run."""

    home: Path
    path: str

    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(FOREIGN) and "_API_KEY" not in name
        }
        return {
            **kept,
            "HOME": str(self.home),
            "PATH": self.path,
            "NO_COLOR": "1",
            "PYTHONWARNINGS": "error",
        }


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A new user's home, with this interpreter's `clawmark` on the path."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    script = binaries / "clawmark"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m clawmark "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    return Place(home, f"{binaries}{os.pathsep}{os.environ['PATH']}")


def make_workspace(folder: Path) -> None:
    """For a document that begins with a program: the workspace that its readers already have."""
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(
        "# Facts\n\nWe chose PostgreSQL for billing.\n", encoding="utf-8"
    )


def commands(text: str) -> list[Command]:
    found: list[Command] = []
    for line in text.split("\n"):
        if line.startswith("$ "):
            found.append(Command(line[2:], ""))
        elif found:
            found[-1] = found[-1]._replace(output=found[-1].output + line + "\n")
    return found


def pattern(output: str) -> re.Pattern[str]:
    """Expected output as a pattern: any number for a number, any time for a time, any blanks,
    anything for `…`.
    """
    words = [re.escape(word) for word in output.split()]
    text = r"\s+".join(words)
    text = re.sub(r"(\\s\+)?…(\\s\+)?", ".*?", text)
    text = re.sub(r"\d+", lambda _: r"\d+", text)
    text = re.sub(r"\\d\+(?:\\\.\\d\+)?\\s\+m?s\b", lambda _: r"[\d.]+\s+(?:ms|s|min)", text)
    return re.compile(r"\s*" + text + r"\s*", re.DOTALL)


def run_console(block: Block, place: Place, folder: Path) -> Path:
    """Run the block's commands one by one; gives the folder they ended in."""
    for command in commands(block.text):
        # The documents show the log of one day; commands write and read the log of today.
        script = f"set -e\n{command.text.replace(SHOWN_DAY, date.today().isoformat())}\npwd >&3\n"
        read, write = os.pipe()
        with os.fdopen(read) as folders:
            ran = subprocess.run(
                ["bash", "-c", f"exec 3>&{write}\n{script}"],
                cwd=folder,
                env=place.environment(),
                capture_output=True,
                encoding="utf-8",
                timeout=HANG_SECONDS,
                check=False,
                pass_fds=[write],
            )
            os.close(write)
            ended = folders.read().strip()
        at = f"{where(block.file)}:{block.line} $ {command.text}"
        assert ran.returncode == 0, f"{at}\n{ran.stdout}{ran.stderr}"
        assert "Traceback" not in ran.stderr, f"{at}\n{ran.stderr}"
        if command.output.strip():
            assert pattern(command.output).fullmatch(ran.stdout), f"{at}\n{ran.stdout}"
        folder = Path(ended)
    return folder


def run_python(block: Block, place: Place, folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", block.text],
        cwd=folder,
        env=place.environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, f"{where(block.file)}:{block.line}\n{ran.stdout}{ran.stderr}"


@pytest.mark.parametrize("file", RUNNABLE, ids=where)
def test_the_examples_of_a_document_run(file: Path, place: Place) -> None:
    folder = place.home
    if next(block for block in blocks(file) if block.runs).language == "python":
        make_workspace(place.home / "agent")
    for block in blocks(file):
        if block.runs and block.language == "console":
            folder = run_console(block, place, folder)
        elif block.runs:
            assert block.language == "python", where(file)
            run_python(block, place, folder)


def test_the_readme_and_the_tutorial_are_among_them() -> None:
    assert {ROOT / "README.md", ROOT / "docs" / "tutorial.md"} <= set(RUNNABLE)
