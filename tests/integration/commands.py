"""Runs the real command line in processes of its own, with a home, a state folder and a workspace
of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

HANG_SECONDS = 300
"""Nothing takes this long; a command that does is hanging."""

CLAWMARK = (sys.executable, "-m", "clawmark")


class Ran(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Place(NamedTuple):
    """Where commands run."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def environment(self, more: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """None of the caller's settings; `more` adds variables, or takes them away with None."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CLAWMARK_", "OPENCLAW_"))
        }
        ours: dict[str, str | None] = {
            **kept,
            "HOME": str(self.home),
            "CLAWMARK_STATE_DIR": str(self.state),
            "CLAWMARK_WORKSPACE": str(self.workspace),
            "PYTHONWARNINGS": "error",
            **(more or {}),
        }
        return {name: value for name, value in ours.items() if value is not None}

    def run(
        self,
        *words: str,
        stdin: str | bytes = b"",
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        timeout: float = HANG_SECONDS,
    ) -> Ran:
        """Run one command to its end."""
        done = subprocess.run(
            [*CLAWMARK, *words],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
            env=self.environment(env),
            cwd=cwd or self.folder,
        )
        return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    def write(self, path: str, text: str) -> Path:
        """Write a file of the workspace."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file


def new_place(folder: Path) -> Place:
    """A home and a workspace with two notes; the state folder is made by the first command."""
    place = Place(folder)
    place.home.mkdir()
    place.write("MEMORY.md", "# Facts\n\nWe chose PostgreSQL for billing because MySQL was slow.\n")
    place.write(
        "memory/2026-11-15.md",
        "# 2026-11-15\n\n- Tea with Ann at the harbour.\n- The router got a new cable.\n",
    )
    return place


def says_one_clear_thing(ran: Ran) -> bool:
    """One message, at most one hint below it, and no traceback."""
    lines = ran.err.strip().splitlines()
    return "Traceback" not in ran.err and 1 <= len(lines) <= 2 and lines[0].startswith("clawmark: ")
