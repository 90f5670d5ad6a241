"""A fresh machine's first minute: how much an install adds, how long it takes, and that the demo
needs no network.

    python bench/install.py [--base PYTHON] [--keep DIR]

Input: the files of this repository that git knows or would add, copied to a temporary folder, as
a clone would have them. For `pip install .` and the extras `local` and `lancedb` it makes a new
virtual environment and reads the growth of its folder; then it runs `clawmark demo` with the
network off. Other extras are only weighed. Installing itself needs a package index. Output: a
table, and `bench/results/install.json`."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import ROOT, clean_environment, must, network_off, run, table, verdict, write_result

FLOORS_MB = {".": 120.0, ".[local]": 250.0, ".[lancedb]": 550.0}
OTHER_EXTRAS = (
    "http2",
    "socks",
    "sqlite-vec",
    "gguf",
    "onnx",
    "mcp",
    "chat",
    "anthropic",
    "openai-agents",
    "pydantic-ai",
    "langgraph",
    "llama-index",
)
"""Extras whose size is measured without a limit; none of them changes the demo."""
MB = 1_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--base", default=sys.executable, help="interpreter that makes the virtual environments"
    )
    parser.add_argument(
        "--keep",
        type=Path,
        help="work in this folder and leave it, to look at or to measure further",
    )
    given = parser.parse_args()
    place = Path(given.keep or tempfile.mkdtemp(prefix="clawmark-install-")).resolve()
    place.mkdir(parents=True, exist_ok=True)
    try:
        copy = clone(place / "repository")
        rows = [install(given.base, copy, what, place) for what in FLOORS_MB]
        python = str(place / "venv-local" / "bin" / "python")
        extras = {extra: extra_size(given.base, copy, extra, place) for extra in OTHER_EXTRAS}
        print(show(rows))
        print("\n".join(f"{extra:<16}{size:>8} MB" for extra, size in extras.items()))
        result = {"installs": rows, "other_extras_megabytes": extras}
        write_result("install", "python bench/install.py", python, result)
    finally:
        if not given.keep:
            shutil.rmtree(place, ignore_errors=True)
    good = all(row["verdict"] == "ok" and row["demo_exit"] == 0 for row in rows)
    return 0 if good else 1


def clone(target: Path) -> Path:
    """Copy what a clone would hold: tracked files and those not yet added, but nothing that is
    ignored.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    shutil.rmtree(target, ignore_errors=True)
    for name in listed.stdout.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    return target


def install(base: str, copy: Path, what: str, place: Path) -> dict[str, Any]:
    """One install into one new environment, and the demo in it without network."""
    name = re.sub(r"\W", "", what)
    venv = place / (f"venv-{name}" if name else "venv")
    shutil.rmtree(venv, ignore_errors=True)
    must(run([base, "-m", "venv", str(venv)]), "making a virtual environment")
    before = weigh(venv)
    pip = [
        str(venv / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--quiet",
        what,
    ]
    installed = must(run(pip, cwd=copy), f"pip install '{what}'")
    grown = (weigh(venv) - before) / MB
    packages = run(
        [
            str(venv / "bin" / "python"),
            "-m",
            "pip",
            "list",
            "--format=freeze",
            "--disable-pip-version-check",
        ]
    )
    shutil.rmtree(place / "home", ignore_errors=True)
    prefix, extra, way = network_off(place / "blocked")
    env = {**clean_environment(place / "home"), **extra}
    demo = run([*prefix, str(venv / "bin" / "clawmark"), "demo"], env, cwd=place)
    print(
        f"--- clawmark demo after pip install '{what}', {way}, exit "
        f"{demo.code}\n{demo.out}{demo.err}"
    )
    return {
        "install": f"pip install '{what}'",
        "megabytes": round(grown, 1),
        "floor": FLOORS_MB[what],
        "verdict": verdict(grown, FLOORS_MB[what], at_least=False),
        "install_seconds": round(installed.wall, 1),
        "packages": sorted(
            line for line in packages.out.split() if not line.startswith(("pip=", "setuptools="))
        ),
        "network": way,
        "demo_exit": demo.code,
        "demo_citations": len(re.findall(r"\.md#L\d", demo.out)),
        "demo_seconds": round(demo.wall, 1),
        "demo_cpu_seconds": round(demo.cpu, 1),
    }


def extra_size(base: str, copy: Path, extra: str, place: Path) -> float:
    """Return the megabytes that an install with one extra adds to a new environment."""
    venv = place / "venv-extra"
    shutil.rmtree(venv, ignore_errors=True)
    must(run([base, "-m", "venv", str(venv)]), "making a virtual environment")
    before = weigh(venv)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", f".[{extra}]"]
    must(run([*pip, "--disable-pip-version-check"], cwd=copy), f"pip install '.[{extra}]'")
    return round((weigh(venv) - before) / MB, 1)


def weigh(folder: Path) -> int:
    """Bytes on disk below a folder, as `du` counts them; a hard-linked file counts once."""
    seen, total = set(), 0
    for path in folder.rglob("*"):
        found = path.lstat()
        if (found.st_dev, found.st_ino) not in seen:
            seen.add((found.st_dev, found.st_ino))
            total += found.st_blocks * 512
    return total


def show(rows: list[dict[str, Any]]) -> str:
    lines = [["install", "MB", "floor", "", "pip", "demo, network off"]]
    for row in rows:
        demo = (
            f"exit {row['demo_exit']}, {row['demo_citations']} citations, {row['demo_seconds']} s"
        )
        size = [f"{row['megabytes']:.1f}", f"<= {row['floor']:.0f}", row["verdict"]]
        lines.append([row["install"], *size, f"{row['install_seconds']} s", demo])
    return table(lines)


if __name__ == "__main__":
    sys.exit(main())
