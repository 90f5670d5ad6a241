"""The hostile workspace of the shared folder, for the tests that need it: made once, with its
cases.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("CLAWMARK_SHARED") or Path(__file__).resolve().parents[3] / "shared")
MAKER = Path(os.environ.get("CLAWMARK_HOSTILE") or SHARED / "hostile" / "make_hostile_workspace.py")

needs_maker = pytest.mark.skipif(
    not MAKER.is_file(), reason="the shared folder with the hostile workspace is not here"
)


def make(folder: Path, seed: int = 1) -> Path:
    """Make the hostile tree in a folder that does not exist yet."""
    subprocess.run(
        [sys.executable, str(MAKER), str(folder), "--seed", str(seed)],
        check=True,
        capture_output=True,
    )
    return folder


def remove(folder: Path) -> None:
    """Take the tree away again; some of its folders forbid it to everyone else."""
    subprocess.run(
        [sys.executable, str(MAKER), str(folder), "--remove"], check=True, capture_output=True
    )


def cases(folder: Path, corpus: str) -> dict[str, dict[str, Any]]:
    """The cases of one corpus by their id."""
    lines = (folder / "cases" / f"{corpus}.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


def input_bytes(case: dict[str, Any]) -> bytes:
    """The exact bytes of a case that is a text."""
    if "input_b64" in case:
        return base64.b64decode(case["input_b64"])
    return str(case["input"]).encode("utf-8", "surrogatepass")
