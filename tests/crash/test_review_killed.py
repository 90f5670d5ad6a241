"""A process that is killed while it accepts or rejects a proposal leaves it pending with the file
unchanged, or decided with the file changed; what was accepted is never written twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PAGE = "# Memory\n\n- Tom likes tea\n- The ferry starts in February\n"
LOG = "# 2026-11-16\n\n- old\n"

# For each step, a forked process does the work and kills itself right before that step. Steps are
# the calls that change or sync files. The parent then looks at what is left, and accepts the rest.
CHILD = r"""
import json, os, shutil, signal, sys
from datetime import UTC, datetime
from clawmark.agent.review.box import ProposalBox
from clawmark.agent.review.hunks import Because, appended_hunk, make_hunks
from clawmark.agent.review.proposals import Proposal
from clawmark.history.journal import Journal
from clawmark.model.provenance import Origin
from clawmark.workspace import Workspace

what, folder, page, log = sys.argv[1:5]
now = lambda: datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def opened(root):
    journal = Journal(f"{root}/state/journal.jsonl", now)
    workspace = Workspace(f"{root}/ws", lock_dir=f"{root}/state/locks", journal=lambda: journal)
    return ProposalBox(f"{root}/state/proposals", now, workspace)


def prepare(root):
    os.makedirs(f"{root}/ws/memory")
    for path, text in (("MEMORY.md", page), ("memory/2026-11-16.md", log)):
        with open(f"{root}/ws/{path}", "w") as file:
            file.write(text)
    hunks = make_hunks(
        "MEMORY.md", page, page.replace("February", "March"), lambda line: Because("why")
    )
    more = (
        appended_hunk("MEMORY.md", "- added", "why"),
        appended_hunk("memory/2026-11-16.md", "- also added", "why"),
    )
    origin = Origin(actor="agent", kind="curation", trust="agent")
    opened(root).add([*hunks, *more], title="Changes", origin=origin)


def work(root, step):
    count = 0

    def counted(real):
        def call(*arguments, **named):
            nonlocal count
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)
        return call

    for name in ("open", "write", "fsync", "replace", "rename", "unlink", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))
    box = opened(root)
    box.accept("p1") if what == "accept" else box.reject("p1")


def texts(root):
    return [open(f"{root}/ws/{path}").read() for path in ("MEMORY.md", "memory/2026-11-16.md")]


found = []
for step in range(1, 400):
    root = f"{folder}/{step}"
    prepare(root)
    pid = os.fork()
    if not pid:
        work(root, step)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    killed = texts(root)
    box = opened(root)
    states = [hunk.state for hunk in box.get("p1").hunks]
    looked = texts(root)
    if box.get("p1").pending:
        assert isinstance(box.accept("p1"), Proposal)
    found.append(
        {
            "done": not os.WIFSIGNALED(status),
            "killed": killed,
            "states": states,
            "looked": looked,
            "after": texts(root),
            "again": [one.id for one in opened(root).list()],
        }
    )
    if not os.WIFSIGNALED(status):
        break
    shutil.rmtree(root)
print(json.dumps(found))
"""


def steps(tmp_path: Path, what: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-c", CHILD, what, str(tmp_path), PAGE, LOG]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    assert found[-1]["done"] and len(found) > 10, "every step was a place to be killed at"
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_an_acceptance_killed_at_any_step_is_whole_or_undone_and_never_doubled(
    tmp_path: Path,
) -> None:
    new_page = PAGE.replace("February", "March") + "- added\n"
    new_log = LOG + "- also added\n"
    seen = set[tuple[str, ...]]()
    for one in steps(tmp_path, "accept"):
        page, log = one["killed"]
        assert page in (PAGE, new_page) and log in (LOG, new_log)
        # The files of one proposal are written one after the other; each counts on its own.
        expected = "accepted" if page == new_page else "pending"
        expected_log = "accepted" if log == new_log else "pending"
        assert one["states"] == [expected, expected, expected_log]
        assert one["looked"] == one["killed"]
        assert one["after"] == [new_page, new_log]
        assert one["again"] == []
        seen.add(tuple(one["states"]))
    assert len(seen) == 3, "before the first file, between the two, and after the second"


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_rejection_killed_at_any_step_is_done_or_can_be_repeated(tmp_path: Path) -> None:
    for one in steps(tmp_path, "reject"):
        assert one["killed"] == [PAGE, LOG]
        assert one["states"] in (["pending"] * 3, ["rejected"] * 3)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_file_changed_by_hand_after_the_kill_decides_by_its_content(tmp_path: Path) -> None:
    script = CHILD.replace(
        "    killed = texts(root)\n",
        "    with open(f'{root}/ws/MEMORY.md', 'a') as file:\n"
        "        file.write('- by hand\\n')\n"
        "    killed = texts(root)\n",
    )
    command = [sys.executable, "-c", script, "accept", str(tmp_path), PAGE, LOG]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    for one in json.loads(done.stdout):
        page = one["after"][0]
        assert sorted(page.split("\n")) == sorted(
            (PAGE.replace("February", "March") + "- added\n- by hand\n").split("\n")
        )
