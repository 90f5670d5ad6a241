"""What an import adds to a process: the reason why the core has few of them.

    python bench/imports.py [--rounds 15] [--python PYTHON]

Each number is user + system CPU of a whole new process above `python -c pass`: milliseconds, the
least of the rounds, in which the commands take turns. Modules that are not installed are left out.
Output: a table, and `bench/results/imports.json`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from harness import clean_environment, run, table, write_result

MODULES = (
    "typing",
    "argparse",
    "json",
    "hashlib",
    "pathlib",
    "dataclasses",
    "importlib.metadata",
    "apsw",
    "simsimd",
)
OTHERS = ("click", "rich", "msgspec", "numpy")
CLASSES = 20
FIELDS = "    a: int\n    b: str\n    c: float\n    d: tuple\n    e: bool\n"
TUPLES = "from typing import NamedTuple\n" + "".join(
    f"class A{n}(NamedTuple):\n{FIELDS}" for n in range(CLASSES)
)
DATACLASSES = "from dataclasses import dataclass\n" + "".join(
    f"@dataclass(frozen=True, slots=True)\nclass A{n}:\n{FIELDS}" for n in range(CLASSES)
)


def main() -> None:
    parser = argparse.ArgumentParser(description="What an import adds to a process.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--python", default=sys.executable)
    given = parser.parse_args()
    programs = {
        "pass": "pass",
        f"{CLASSES} named tuples of typing": TUPLES,
        f"{CLASSES} frozen, slotted dataclasses": DATACLASSES,
        **{f"import {name}": f"import {name}" for name in (*MODULES, *OTHERS)},
    }
    with tempfile.TemporaryDirectory() as home:
        least = measure(given.python, programs, given.rounds, Path(home))
    added = {
        name: round(1000 * (cpu - least["pass"]), 1)
        for name, cpu in least.items()
        if name != "pass"
    }
    base = round(1000 * least["pass"], 1)
    print(
        table(
            [
                ("program", "added ms"),
                ("python -c pass", f"({base})"),
                *((n, f"{ms}") for n, ms in added.items()),
            ]
        )
    )
    body = {
        "unit": "CPU milliseconds above `python -c pass`",
        "rounds": given.rounds,
        "pass": base,
        "added": added,
    }
    write_result("imports", "python bench/imports.py", given.python, body)


def measure(python: str, programs: dict[str, str], rounds: int, home: Path) -> dict[str, float]:
    """The least CPU seconds of each program, run from a compiled module so that compiling is not
    measured.
    """
    env = clean_environment(home)
    commands = {}
    for number, (name, text) in enumerate(programs.items()):
        (home / f"program{number}.py").write_text(text, encoding="utf-8")
        commands[name] = [
            python,
            "-c",
            f"import sys; sys.path.insert(0, {str(home)!r}); import program{number}",
        ]
    least: dict[str, float] = {}
    for _ in range(rounds + 1):
        for name, command in commands.items():
            ran = run(command, env)
            if ran.code == 0:
                least[name] = min(least.get(name, ran.cpu), ran.cpu)
    return least


if __name__ == "__main__":
    main()
