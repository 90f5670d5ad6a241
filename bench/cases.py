"""How many of the hostile cases are met: the tests that play them, run whole, counted and written
down.

    python bench/cases.py [--python PYTHON] [--only TEXT]

Input: groups of test files, each about one kind of hostile input; with `CLAWMARK_ALL=1` they
leave nothing out (all waits of the silent providers, 50 kills instead of 10, long stories for the
machine). Output: a table, and `bench/results/cases.json`, in which `--only` replaces the rows of
the groups it runs. The shared folder has to be there: without it the tests would be skipped, which
counts as a miss."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

from harness import RESULTS, ROOT, code_version, run, shared_folder, table, write_result

GROUPS = {
    "hostile workspace, seeds 1 and 2": (
        "test_hostile_index",
        "test_workspace_hostile",
        "test_hostile_embedding",
    ),
    "hostile queries, paths and tool arguments": ("test_hostile_tools",),
    "hostile configurations": ("test_hostile_configs",),
    "hostile command lines": ("test_hostile_cli",),
    "hostile transcripts and secrets": ("test_transcripts_hostile", "test_hostile_secrets"),
    "hostile injections in recalled text": ("test_hostile_recall", "test_hostile_runtime"),
    "hostile MCP clients, stdio and HTTP": (
        "test_mcp_hostile_stdio",
        "test_mcp_hostile_http",
        "test_mcp_limits",
    ),
    "text that is not Unicode, at every other door": ("test_hostile_surrogates",),
    "hostile paths for the SDK adapters": ("test_adapter_hostile",),
    "114 faults of a provider, search and index": ("test_provider_faults",),
    "50 kills while a provider is paid": ("test_provider_kill",),
    "a planted key is nowhere": ("test_provider_secrets",),
    "private memory and 67 sessions": ("test_scopes",),
    "one whole day": ("test_day",),
}
ELSEWHERE = {
    "random stories end as a fresh rebuild": ("tests/property/test_machine.py",),
    "install and remove, real configurations": ("tests/unit/hooks/test_hooks_install.py",),
    # The test with a real OpenClaw installs it first; `bench/interop_openclaw.py` does the same and
    # writes its result.
    "recorded inputs and outputs of OpenClaw": (
        "tests/compat",
        "--ignore=tests/compat/test_real_openclaw.py",
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter with the extra `test`"
    )
    parser.add_argument("--only", default="", help="run the groups whose names contain TEXT")
    given = parser.parse_args()
    python = given.python
    shared_folder()
    groups = {
        name: [f"tests/integration/{file}.py" for file in files] for name, files in GROUPS.items()
    }
    groups |= {name: list(files) for name, files in ELSEWHERE.items()}
    known = {row["what"]: row for row in earlier()}
    rows = [
        {"what": name, **count(python, files), "commit": code_version(python)}
        if given.only in name
        else known[name]
        for name, files in groups.items()
        if given.only in name or name in known
    ]
    shown = [
        (str(row["what"]), str(row["passed"]), str(row["failed"]), str(row["skipped"]))
        for row in rows
    ]
    print(table([("what", "passed", "failed", "skipped"), *shown]))
    write_result("cases", "python bench/cases.py", python, {"rows": rows})
    return 1 if any(row["failed"] or row["skipped"] or not row["passed"] for row in rows) else 0


def earlier() -> list[dict[str, Any]]:
    """Return the rows of the result file; none if there is no file."""
    file = RESULTS / "cases.json"
    found: list[dict[str, Any]] = (
        json.loads(file.read_text(encoding="utf-8"))["rows"] if file.is_file() else []
    )
    return found


def count(python: str, files: list[str]) -> dict[str, int]:
    """Run tests to their end; how they ended."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        env = {**os.environ, "CLAWMARK_ALL": "1"}
        run([python, "-m", "pytest", "-q", f"--junit-xml={report}", *files], env, ROOT)
        cases = list(ElementTree.parse(report).iter("testcase"))
    for case in cases:
        for failure in (*case.iter("failure"), *case.iter("error")):
            print(f"{case.get('name')}: {failure.get('message')}")
    ends = Counter(_end(case) for case in cases)
    return {how: ends[how] for how in ("passed", "failed", "skipped")}


def _end(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


if __name__ == "__main__":
    sys.exit(main())
