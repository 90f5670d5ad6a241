"""Watching a memory, in the library and by `clawmark watch`: changes on disk are indexed without a
search."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import CLAWMARK, Place, new_place

from clawmark import Memory
from clawmark.model.reports import WatchEvent
from clawmark.testing import HashingEmbedder

LONG = 60.0
"""A test that has to wait this long has failed."""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the watcher's own tests cover polling"
)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    write(folder / "memory" / "2026-02-01.md", "# 1\n\nThe heron nests by the pier.\n")
    return folder


def opened(workspace: Path, **settings: object) -> Memory:
    return Memory.open(
        workspace,
        state_dir=workspace.parent / "state",
        embedder=HashingEmbedder(),
        overrides={"memorySearch.sync.watchDebounceMs": 20, **settings},
    )


def paths(memory: Memory, question: str) -> set[str]:
    return {hit.path for hit in memory.search(question, freshen=False, min_score=0.0).hits}


def test_what_changes_is_indexed_without_a_search(workspace: Path) -> None:
    with opened(workspace) as memory, memory.watch() as watching:
        assert watching.wait_quiet(LONG)
        assert paths(memory, "heron") == {"memory/2026-02-01.md"}
        write(workspace / "memory" / "birds" / "osprey.md", "The osprey fishes at noon.\n")
        assert watching.wait_quiet(LONG)
        assert "memory/birds/osprey.md" in paths(memory, "osprey")
        os.rename(workspace / "memory" / "birds", workspace / "memory" / "animals")
        assert watching.wait_quiet(LONG)
        assert "memory/animals/osprey.md" in paths(memory, "osprey")
        (workspace / "memory" / "animals" / "osprey.md").unlink()
        assert watching.wait_quiet(LONG)
        assert memory.status().files == 1 and memory.status().last_sync["reason"] == "watch"


def test_an_edit_that_keeps_size_and_time_is_found(workspace: Path) -> None:
    file = workspace / "memory" / "2026-02-01.md"
    with opened(workspace) as memory, memory.watch() as watching:
        assert watching.wait_quiet(LONG)
        before = file.stat()
        file.write_text(file.read_text().replace("heron", "egret"))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert watching.wait_quiet(LONG)
        assert file.stat().st_size == before.st_size
        assert paths(memory, "egret") == {"memory/2026-02-01.md"}


def test_a_listener_receives_events_until_the_handle_is_closed(workspace: Path) -> None:
    events: list[WatchEvent] = []
    with opened(workspace) as memory:
        with memory.watch(events.append) as watching:
            assert watching.wait_quiet(LONG)
            write(workspace / "MEMORY.md", "The gull is loud.\n")
            assert watching.wait_quiet(LONG)
        told = len(events)
        memory.sync()
        assert len(events) == told, "no event comes after the handle was closed"
    kinds = [event.kind for event in events]
    assert kinds[0] == "began" and {"changed", "progress", "done"} <= set(kinds)
    assert str(workspace / "MEMORY.md") in {
        event.path for event in events if event.kind == "changed"
    }
    progress = next(event.progress for event in events if event.progress is not None)
    assert (progress.stage, progress.source, progress.total) == ("text", "memory", 1)


def test_a_failing_listener_does_not_stop_the_watcher(workspace: Path) -> None:
    def listener(event: WatchEvent) -> None:
        raise RuntimeError(event.kind)

    with opened(workspace) as memory, memory.watch(listener) as watching:
        assert watching.wait_quiet(LONG)
        write(workspace / "MEMORY.md", "The gull is loud.\n")
        assert watching.wait_quiet(LONG)
        assert memory.status().files == 2 and watching.polls_because == ""


def test_closing_the_memory_ends_its_watching(workspace: Path) -> None:
    memory = opened(workspace)
    watching = memory.watch()
    assert watching.wait_quiet(LONG)
    memory.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("clawmark")]


def test_with_watching_switched_off_only_the_rest_of_it_runs(workspace: Path) -> None:
    with (
        opened(workspace, **{"memorySearch.sync.watch": False}) as memory,
        memory.watch() as watching,
    ):
        assert watching.wait_quiet(LONG) and watching.watched_folders == 0
        assert memory.status().files == 1, "what was there is indexed"


def test_a_manual_sync_while_watching_reports_its_own_work(workspace: Path) -> None:
    with (
        opened(workspace, **{"memorySearch.sync.watchDebounceMs": 3_600_000}) as memory,
        memory.watch() as watching,
    ):
        assert watching.wait_quiet(LONG)
        write(workspace / "memory" / "osprey.md", "The osprey fishes at noon.\n")
        seen: list[object] = []
        assert memory.sync(progress=seen.append).added == 1
        assert seen


def test_small_growth_of_a_transcript_waits_and_large_growth_does_not(workspace: Path) -> None:
    sessions = workspace.parent / "state" / "agents" / "main" / "sessions"
    settings = {
        "memorySearch.sources": ["memory", "sessions"],
        "memorySearch.sync.sessions.deltaMessages": 5,
    }
    line = (
        '{"type":"message","timestamp":"2026-02-01T10:00:00Z",'
        '"message":{"role":"user","content":"The %s was here."}}\n'
    )
    (workspace.parent / "state").mkdir()
    with Memory.open(
        workspace,
        agent="main",
        state_dir=workspace.parent / "state",
        embedder=HashingEmbedder(),
        overrides={"memorySearch.sync.watchDebounceMs": 20, **settings},
    ) as memory:
        done = threading.Semaphore(0)

        def told(event: WatchEvent) -> None:
            if event.kind == "done" and event.reason == "watch":
                done.release()

        with memory.watch(told) as watching:
            assert done.acquire(timeout=LONG)
            write(sessions / "one.jsonl", line % "dipper")
            assert done.acquire(timeout=LONG)
            with (sessions / "one.jsonl").open("a") as file:
                file.write(line % "wagtail")
            assert done.acquire(timeout=LONG)
            assert memory.status().due_by_source["sessions"] == 1, "one message more is little"
            with (sessions / "one.jsonl").open("a") as file:
                file.write("".join(line % f"wren {number}" for number in range(5)))
            assert watching.wait_quiet(LONG)
            assert "sessions/one.jsonl" in paths(memory, "wagtail")


# --- the command ---


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    write(
        made.state / "clawmark.json",
        '{ memorySearch: { provider: "none", sync: { watchDebounceMs: 20 } } }',
    )
    return made


class Running:
    """`clawmark watch` in its own process, and its output."""

    def __init__(self, place: Place, *words: str, before: Sequence[str] = ()) -> None:
        self.process = subprocess.Popen(
            [*before, *CLAWMARK, "watch", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=place.environment(),
            cwd=place.folder,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], LONG)
        assert ready, "no output"
        return self.process.stdout.readline().decode()

    def events(self, is_enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Read events until there are enough."""
        seen: list[dict[str, Any]] = []
        while not is_enough(seen):
            seen.append(json.loads(self.line()))
        return seen

    def stop(self, number: int) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LONG)
        return self.process.returncode, out.decode(), err.decode()


@pytest.fixture
def running() -> Iterator[list[Running]]:
    started: list[Running] = []
    yield started
    for one in started:
        one.process.kill()
        one.process.communicate()


def added(events: list[dict[str, Any]]) -> int:
    """How many files the syncs among some events have added."""
    return sum(event["report"]["added"] for event in events if event["event"] == "done")


def changed(events: list[dict[str, Any]]) -> set[str]:
    """The paths that some events call changed."""
    return {event["path"] for event in events if event["event"] == "changed"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_prints_events_as_json_and_exits_cleanly_on_a_signal(
    place: Place, running: list[Running], number: int
) -> None:
    watch = Running(place, "--json")
    running.append(watch)
    started, *first = watch.events(lambda seen: added(seen) == 2)
    assert (started["event"], started["pollsBecause"]) == ("started", "")
    assert (first[-1]["event"], first[-1]["files"], first[-1]["dueFiles"]) == ("done", 2, 0)
    place.write("memory/new.md", "The osprey is new.")
    # A sync of another reason may run in between, and may be the one that finds the file.
    then = watch.events(lambda seen: added(seen) == 1 and "memory/new.md" in changed(seen))
    assert [event["files"] for event in then if event["event"] == "done"][-1] == 3
    code, out, err = watch.stop(number)
    assert (code, err) == (0, "")
    assert json.loads(out.splitlines()[-1])["event"] == "stopped"


def test_watch_prints_events_as_lines(place: Place, running: list[Running]) -> None:
    watch = Running(place)
    running.append(watch)
    assert "watching " in watch.line()
    assert "2 added in " in watch.line()
    place.write("memory/new.md", "The osprey is new.")
    while "1 added in " not in (line := watch.line()):
        pass
    assert "3 files" in line and "up to date" in line
    code, out, err = watch.stop(signal.SIGTERM)
    assert (code, err) == (0, "") and out.endswith("stopped\n")


def test_a_workspace_that_disappears_is_reported_and_found_again(
    place: Place, running: list[Running]
) -> None:
    watch = Running(place)
    running.append(watch)
    while "2 added" not in watch.line():
        pass
    away = place.workspace.rename(place.folder / "away")
    while "1 folder could not be listed" not in watch.line():
        pass
    away.rename(place.workspace)
    place.write("memory/new.md", "The osprey is new.")
    while "1 added" not in (line := watch.line()):
        pass
    assert "could not be listed" not in line


def limited_to(watches: int) -> list[str]:
    """The words before a command that limit its inotify watches, in a user namespace of its own."""
    script = f'echo {watches} > /proc/sys/user/max_inotify_watches && exec "$@"'
    words = ["unshare", "-r", "sh", "-c", script, "sh"]
    try:
        subprocess.run([*words, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no user namespaces here")
    return words


@pytest.mark.parametrize("watches", [0, 2])
def test_without_enough_watches_there_is_one_warning_and_polling(
    place: Place, running: list[Running], watches: int
) -> None:
    watch = Running(place, "--json", before=limited_to(watches))
    running.append(watch)
    events = watch.events(lambda seen: added(seen) == 2)
    (started,) = (event for event in events if event["event"] == "started")
    assert (started["folders"], started["pollsBecause"]) == (0, "the system has no watches left")
    place.write("memory/new.md", "The osprey is found by polling.")
    events += watch.events(lambda seen: added(seen) == 1)
    (warning,) = (event for event in events if event["event"] == "warning")
    assert "Raise fs.inotify.max_user_watches" in warning["message"]


def test_watches_that_run_out_later_lead_to_polling(place: Place, running: list[Running]) -> None:
    watch = Running(place, "--json", before=limited_to(3))
    running.append(watch)
    started, *_ = watch.events(lambda seen: added(seen) == 2)
    assert (started["folders"], started["pollsBecause"]) == (3, "")
    place.write("memory/birds/new.md", "The osprey is found by polling.")
    events = watch.events(
        lambda seen: added(seen) == 1 and any(event["event"] == "warning" for event in seen)
    )
    place.write("memory/birds/newer.md", "The heron is found by polling, too.")
    events += watch.events(lambda seen: added(seen) == 1)
    assert sum(event["event"] == "warning" for event in events) == 1


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_system_without_inotify_instances_is_reported_once(place: Place) -> None:
    injected = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "inject=inotify_init1:error=EMFILE"]
    process = subprocess.Popen(
        [*injected, *CLAWMARK, "watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=place.environment(),
        cwd=place.folder,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        told = ""
        while "added in " not in told:
            told += process.stdout.readline().decode()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=LONG)
    assert told.count("no watches left") == 1
    assert told.count("Raise fs.inotify.max_user_watches") == 1


def test_a_failed_sync_is_reported_once_with_a_hint(place: Place, running: list[Running]) -> None:
    assert place.run("index").code == 0
    lock = next((place.state / "memory").glob("*.sqlite.lock"))
    lock.unlink()
    lock.mkdir()  # not even root can lock it
    place.write("memory/new.md", "The osprey is new.")
    watch = Running(place)
    running.append(watch)
    while "failed: " not in (line := watch.line()):
        assert "watching " in line
    shown = place.run("index")
    assert shown.code == 3
    message, hint = shown.err.removeprefix("clawmark: ").splitlines()
    assert line.partition("failed: ")[2].rstrip() == f"{message} {hint.strip()}"
    _, _, err = watch.stop(signal.SIGTERM)
    assert err == ""


def test_on_a_terminal_one_line_is_redrawn(place: Place) -> None:
    import pty

    ours, theirs = pty.openpty()
    env = {**place.environment(), "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [*CLAWMARK, "watch"], stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=place.folder
    )
    os.close(theirs)
    try:
        shown = read_until(ours, "2 added in ")
        place.write("memory/new.md", "The osprey is new.")
        shown += read_until(ours, "memory/new.md: 1 added in ")
        process.send_signal(signal.SIGINT)
        assert process.wait(LONG) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert "Ctrl-C to stop" in shown and "● 3 files · 3 chunks" in shown
    lines = shown.replace("\r\n", "\n").split("\n")
    assert len(lines) == 2, "the first line, and the one that is redrawn"


def read_until(descriptor: int, text: str) -> str:
    shown = ""
    while text not in shown:
        ready, _, _ = select.select([descriptor], [], [], LONG)
        assert ready, shown
        shown += os.read(descriptor, 65_536).decode("utf-8", "replace")
    return shown
