"""Machines of a team: each has a workspace, a state folder and a configuration of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from clawmark import Memory


class Machine(NamedTuple):
    """The machine of one member."""

    folder: Path
    team: dict[str, Any]

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def config(self) -> Path:
        return self.folder / "clawmark.json"

    def put(self, path: str, text: str) -> None:
        """Write a file of the workspace."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def open(self, *, background: bool = False, **sections: Any) -> Memory:
        """Open the memory; `sections` are more sections of the configuration."""
        self.configure(**sections)
        return Memory.open(
            self.workspace,
            config=self.config,
            state_dir=self.folder / "state",
            provider="none",
            background=background,
        )

    def configure(self, **sections: Any) -> None:
        """Write the configuration."""
        self.config.write_text(json.dumps({"team": self.team, **sections}), encoding="utf-8")


def make_machine(folder: Path, name: str, uri: str, **team: Any) -> Machine:
    """Make the machine of a member; `team` are more keys of its configuration."""
    given = {"uri": uri, "name": name, "spaces": ["team"], **team}
    machine = Machine(folder / name, given)
    (machine.workspace / "memory").mkdir(parents=True)
    machine.configure()
    return machine
