"""Nothing at run time needs a network: index, search and demo in processes that have none."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

HANG_SECONDS = 600

BLOCK_SOCKETS = """\
import sys

def _no_network(event, args):
    if event in (
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.sendto",
        "socket.sendmsg",
    ):
        raise OSError("the network is off")

sys.addaudithook(_no_network)
"""


class Offline(NamedTuple):
    """How to run a command without network: an empty network namespace where permitted, else
    refused socket calls.
    """

    prefix: list[str]
    env: dict[str, str]

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.prefix, *argv],
            capture_output=True,
            encoding="utf-8",
            timeout=HANG_SECONDS,
            check=False,
            env=self.env,
            cwd=self.env["HOME"],
        )

    def clawmark(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "clawmark", *words)


@pytest.fixture
def offline(tmp_path: Path) -> Offline:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLAWMARK_", "OPENCLAW_"))
    }
    env = {**kept, "HOME": str(tmp_path), "NO_COLOR": "1"}
    tool = shutil.which("unshare")
    for flags in ("-rn", "-n"):
        if (
            tool
            and subprocess.run([tool, flags, "true"], capture_output=True, check=False).returncode
            == 0
        ):
            return Offline([tool, flags], env)
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(BLOCK_SOCKETS, encoding="utf-8")
    paths = [str(blocked), *filter(None, [env.get("PYTHONPATH")])]
    return Offline([], {**env, "PYTHONPATH": os.pathsep.join(paths)})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(
        "# Memory\n\n- The user drinks green tea in the morning.\n", encoding="utf-8"
    )
    log = "# 2026-02-24\n\n- We chose PostgreSQL for billing because the old store lost writes.\n"
    (folder / "memory" / "2026-02-24.md").write_text(log, encoding="utf-8")
    return folder


def test_the_offline_processes_of_these_tests_really_have_no_network(offline: Offline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        call = (
            f"import socket; socket.create_connection(('127.0.0.1', "
            f"{server.getsockname()[1]}), timeout=5)"
        )
        assert subprocess.run([sys.executable, "-c", call], check=False).returncode == 0
        assert offline.run(sys.executable, "-c", call).returncode != 0


def test_index_and_search_answer_without_a_network(
    offline: Offline, workspace: Path, tmp_path: Path
) -> None:
    places = ["--workspace", str(workspace), "--state-dir", str(tmp_path / "state")]
    indexed = offline.clawmark("index", *places)
    assert indexed.returncode == 0, indexed.stderr
    found = offline.clawmark("search", "which database did we pick?", "--min-score", "0", *places)
    assert found.returncode == 0, found.stderr
    assert "memory/2026-02-24.md#L" in found.stdout


def test_remembering_and_finding_again_needs_no_network(
    offline: Offline, workspace: Path, tmp_path: Path
) -> None:
    places = ["--workspace", str(workspace), "--state-dir", str(tmp_path / "state")]
    written = offline.clawmark("remember", "Redis replaces memcached for sessions", *places)
    assert written.returncode == 0, written.stderr
    found = offline.clawmark("search", "memcached", *places)
    assert found.returncode == 0, found.stderr
    assert "Redis replaces memcached for sessions" in found.stdout


def test_the_demo_runs_without_a_network(offline: Offline) -> None:
    shown = offline.clawmark("demo")
    assert shown.returncode == 0, shown.stderr
    assert "memory/" in shown.stdout
    assert "Traceback" not in shown.stderr
