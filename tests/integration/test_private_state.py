"""Everything Clawmark keeps for itself is for the user alone, whatever the umask says."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("Windows has other permissions", allow_module_level=True)

REPLACE = """
import sys
from clawmark import Memory
with Memory.open(sys.argv[1]) as memory:
    memory.replace("MEMORY.md", "# Memory\\n\\n- zebra\\n- more\\n", sys.argv[2])
"""


def test_doctor_finds_an_index_that_others_may_open_and_closes_it(tmp_path: Path) -> None:
    workspace, state = tmp_path / "ws", tmp_path / "state"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("# Memory\n\n- zebra\n", encoding="utf-8")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "clawmark",
            *words,
            "--workspace",
            str(workspace),
            "--state-dir",
            str(state),
        ]
        return subprocess.run(command, capture_output=True, text=True)

    assert run("index").returncode == 0 and run("doctor").returncode == 0
    index = next((state / "memory").glob("*.sqlite"))
    index.chmod(0o644)
    (state / "memory").chmod(0o755)
    found = run("doctor")
    assert found.returncode == 1 and f"chmod -R go= {state / 'memory'}" in found.stdout
    assert run("doctor", "--fix").returncode == 0
    assert [stat.S_IMODE(path.stat().st_mode) for path in (state / "memory", index)] == [
        0o700,
        0o600,
    ]
    assert run("doctor").returncode == 0


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o027, 0o077])
def test_files_are_0600_and_folders_0700(umask: int, tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "ws"
    home.mkdir()
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("# Memory\n\n- zebra\n", encoding="utf-8")
    base = hashlib.sha256((workspace / "MEMORY.md").read_bytes()).hexdigest()
    tool = [sys.executable, "-m", "clawmark"]
    for command in (
        [*tool, "init", str(workspace)],
        [*tool, "remember", "a note about zebra", "--workspace", str(workspace)],
        [*tool, "search", "zebra", "--workspace", str(workspace)],
        [*tool, "index", "--force", "--instant", "--workspace", str(workspace)],
        [sys.executable, "-c", REPLACE, str(workspace), base],
    ):
        ended = subprocess.run(
            command,
            env={**os.environ, "HOME": str(home)},
            capture_output=True,
            text=True,
            umask=umask,
        )
        assert ended.returncode == 0, ended.stderr
    found = [home / ".clawmark", *(home / ".clawmark").rglob("*")]
    assert {"clawmark.json", "locks", "memory", "versions"} <= {path.name for path in found}
    for path in found:
        expected = 0o700 if path.is_dir() else 0o600
        mode = stat.S_IMODE(path.stat().st_mode)
        is_object = path.is_file() and "objects" in path.parts  # git makes them read-only
        assert mode == expected or (is_object and mode == 0o400), path
