"""What the benchmarks share: where things are, how a command is run and weighed, how a result file
is written.

Input: command lines. Output: what they cost (CPU of the whole process, by `wait4`) and JSON
files in `bench/results` that say how they were made. What is measured and what counts as good is
left to each script."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"

# An audit hook sees every socket call of the interpreter, by every library, and cannot be
# taken out again.
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


class Run(NamedTuple):
    """One finished command."""

    code: int
    out: str
    err: str
    cpu: float
    """User and system seconds of the process and of the children it waited for."""
    wall: float


def shared_folder() -> Path:
    """The folder with the exam, the data and the corpus maker: `CLAWMARK_SHARED`, or `shared`
    next to the repository.
    """
    folder = Path(os.environ.get("CLAWMARK_SHARED") or ROOT.parent / "shared")
    if not (folder / "exam" / "exam.py").is_file():
        sys.exit("The shared folder (exam, data, bench) was not found. Set CLAWMARK_SHARED to it.")
    return folder


def clawmark_command(python: str) -> list[str]:
    """The installed script next to this interpreter, which is what people type; else the module."""
    script = Path(python).parent / ("clawmark.exe" if os.name == "nt" else "clawmark")
    return [str(script)] if script.exists() else [python, "-m", "clawmark"]


def clean_environment(home: Path) -> dict[str, str]:
    """The environment of a new user: a home of its own and no setting of ours left in it."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLAWMARK_", "OPENCLAW_"))
    }
    home.mkdir(parents=True, exist_ok=True)
    # An empty value lets Python keep its compiled modules, as it does for everyone: compiling is
    # not what is measured.
    return {**kept, "HOME": str(home), "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": ""}


def run(
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str = "",
) -> Run:
    """Run a command to its end; its output goes through files, so that no pipe can stall it."""
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as given,
    ):
        given.write(stdin.encode())
        given.seek(0)
        started = time.perf_counter()
        child = subprocess.Popen(list(argv), stdin=given, stdout=out, stderr=err, env=env, cwd=cwd)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return Run(
        code=child.returncode,
        out=texts[0],
        err=texts[1],
        cpu=used.ru_utime + used.ru_stime,
        wall=wall,
    )


def must(ran: Run, what: str) -> Run:
    """The run, or the end of the benchmark with the last words of the command that failed."""
    if ran.code != 0:
        sys.exit(f"{what} ended with exit code {ran.code}:\n{(ran.err or ran.out).strip()[-2000:]}")
    return ran


def settings_file(folder: Path, provider: str) -> list[str]:
    """The options that choose an embedder; `auto` means the defaults, so no file at all."""
    if provider == "auto":
        return []
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"provider-{provider}.json"
    path.write_text(json.dumps(settings(provider)), encoding="utf-8")
    return ["--config", str(path)]


def settings(provider: str) -> dict[str, Any]:
    return {} if provider == "auto" else {"memorySearch": {"provider": provider}}


def network_off(folder: Path) -> tuple[list[str], dict[str, str], str]:
    """How to run a command without network: words to put before it, variables to add, and the name
    of the way.
    """
    for flags in ("-rn", "-n"):
        tool = shutil.which("unshare")
        if (
            tool
            and subprocess.run([tool, flags, "true"], capture_output=True, check=False).returncode
            == 0
        ):
            return [tool, flags], {}, f"unshare {flags}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(BLOCK_SOCKETS, encoding="utf-8")
    return [], {"PYTHONPATH": str(folder)}, "sockets blocked by an audit hook"


def facts(python: str) -> dict[str, Any]:
    """What a reader needs to place the numbers; nothing that names the machine or its folders."""
    probe = (
        "import json, platform, apsw; "
        "print(json.dumps([platform.python_version(), apsw.sqlite_lib_version(), "
        "apsw.apsw_version()]))"
    )
    versions = run([python, "-c", probe])
    found = json.loads(versions.out) if versions.code == 0 else [platform.python_version(), "", ""]
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "python": found[0],
        "sqlite": found[1],
        "apsw": found[2],
    }


def write_result(name: str, command: str, python: str, body: Mapping[str, Any]) -> Path:
    """Write `bench/results/<name>.json`; `command` is what a reader types to make it again."""
    head = {
        "name": name,
        "command": command,
        "clawmark": _clawmark_version(python),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": facts(python),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(
        json.dumps({**head, **body}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(f"written: bench/results/{path.name}")
    return path


def commit(folder: Path = ROOT, part: str = "") -> str:
    """The commit measured, or the last one that changed a part of it; with `+` when the working
    tree has changes there.
    """
    try:
        asked = ["git", "log", "-1", "--format=%H", *(["--", part] if part else [])]
        head = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)
        if head.returncode != 0:
            return ""
        # Result files are made by the very run that is being written down, so they do not count as
        # a change.
        changed = ["git", "status", "--porcelain", "--", part or ".", ":!bench/results"]
        dirty = subprocess.run(changed, cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return head.stdout.strip()[:12] + ("+" if dirty.stdout.strip() else "")


def code_version(python: str) -> str:
    """The commit of the Clawmark that an interpreter imports, or its version when it is not from a
    checkout.
    """
    found = run([python, "-c", "import clawmark; print(clawmark.__file__)"])
    package = Path(must(found, f"importing clawmark with {python}").out.strip()).parent
    return commit(package.parent, "clawmark") or _clawmark_version(python)


def verdict(value: float, floor: float, at_least: bool) -> str:
    good = value >= floor if at_least else value <= floor
    return "ok" if good else "MISSED"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned text; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        return platform.processor()
    return platform.processor()


def _clawmark_version(python: str) -> str:
    """From the package itself, or from the project file when it runs from the source tree."""
    asked = run([python, "-c", "import importlib.metadata as m; print(m.version('clawmark'))"])
    if asked.code == 0:
        return asked.out.strip()
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("version"):
            return line.split('"')[1]
    return "unknown"
