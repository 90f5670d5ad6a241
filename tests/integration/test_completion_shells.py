"""Completion in real shells: keys are typed at a terminal, and the completed command runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Place, new_place
from typists import Typist

STARTS = {
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh": ("zsh", "-f", "-i"),
    "fish": ("fish", "--no-config", "-i"),
}
SETUPS = {
    "bash": "bind 'set enable-bracketed-paste off'; bind 'set bell-style none'",
    "zsh": "autoload -Uz compinit; compinit -u; unsetopt beep prompt_sp; PS1='> '",
    "fish": "function fish_prompt; echo '> '; end; function fish_greeting; end",
}
SOURCES = {
    "bash": 'eval "$(clawmark completion bash)"',
    "zsh": 'eval "$(clawmark completion zsh)"',
    "fish": "clawmark completion fish | source",
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = new_place(tmp_path)
    program = tmp_path / "bin" / "clawmark"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m clawmark "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    place.write("memory/with a space.md", "- Found behind a space.\n")
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ferry.md").write_text("- Found in an added folder.\n", encoding="utf-8")
    assert place.run("add", str(notes)).code == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "MEMORY.md").write_text("- Found in the other workspace.\n", encoding="utf-8")
    (tmp_path / "mine.json").write_text("{}", encoding="utf-8")
    return place


@pytest.fixture(params=STARTS)
def shell(request: pytest.FixtureRequest, place: Place) -> Iterator[Typist]:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    env = place.environment({"PS1": "> ", "PYTHONWARNINGS": None})
    env["PATH"] = f"{place.folder / 'bin'}:{env['PATH']}"
    with Typist(STARTS[name], env) as typist:
        typist.type(f"cd {place.folder}; {SETUPS[name]}")
        typist.type(SOURCES[name])
        typist.type("echo rea''dy")
        typist.wait_for("ready")
        typist.wait_for("> ")
        yield typist
        typist.press(b"\x15")
        typist.type("exit")


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("clawmark rec\t", "The router got a new cable."),
        ("clawmark get MEM\t", "We chose PostgreSQL"),
        ("clawmark get mem\t2026\t", "The router got a new cable."),
        ("clawmark get memory/with\t", "Found behind a space."),
        ("clawmark get notes:fe\t", "Found in an added folder."),
        ("clawmark --works\tother get M\t", "Found in the other workspace."),
        ("clawmark -w other get M\t", "Found in the other workspace."),
        ("clawmark ls memory --fi\t", "memory/2026-11-15.md\nmemory/with a space.md"),
        ("clawmark config pa\t", "Workspace"),
        ("clawmark -j config get memorySearch.query.maxR\t", '"value": 6'),
        ("clawmark -c mi\tconfig path", "mine.json\n"),
        ("clawmark help rem\t", "usage: clawmark remember"),
    ],
)
def test_the_completed_command_runs(shell: Typist, typed: str, shown: str) -> None:
    for part in typed.split("\t")[:-1]:
        shell.press(part.encode() + b"\t")
        shell.wait_for(part.split()[-1] if part.strip() else "")
    shell.type(typed.split("\t")[-1])
    shell.type("echo do''ne")
    assert shown in shell.wait_for("done")
