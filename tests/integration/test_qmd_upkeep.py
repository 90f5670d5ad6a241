"""QMD's index is kept up to date by watchers, intervals and session starts."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from chat import ChatServer, say
from qmds import qmd_command, wrapper

from clawmark import Memory
from clawmark.agent.models.catalog import choose_completer
from clawmark.model.errors import ConfigError
from clawmark.model.reports import WatchEvent

QUIET_SECONDS = 120


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("The heron nests.\n", encoding="utf-8")
    return folder


def opened(workspace: Path, background: bool = True, **more: Any) -> Memory:
    settings = {f"memory.qmd.{name.replace('_', '.')}": value for name, value in more.items()}
    overrides: dict[str, object] = {
        "memory.backend": "qmd",
        "memory.qmd.command": qmd_command(),
        "memory.qmd.limits.timeoutMs": 30_000,
        "memory.qmd.update.onBoot": False,
        "memorySearch.provider": "none",
    }
    return Memory.open(
        workspace,
        state_dir=workspace.parent / "state",
        overrides=overrides | settings,
        background=background,
    )


def ran(workspace: Path, name: str) -> tuple[str, Path]:
    """Return a command that writes the first word of each call to a file."""
    log = workspace.parent / name
    return wrapper(workspace.parent, f'echo "$1" >> "{log}"; exec "$QMD" "$@"'), log


def test_watching_updates_qmd_and_not_the_builtin_index(workspace: Path) -> None:
    done = threading.Event()

    def listen(event: WatchEvent) -> None:
        if event.kind == "done" and event.report is not None and event.report.added:
            done.set()

    with opened(workspace, background=False) as memory, memory.watch(listen) as watching:
        assert done.wait(QUIET_SECONDS) and watching.wait_quiet(QUIET_SECONDS)
        assert watching.kept().files == 1 and watching.kept().embedder.startswith("qmd")
        done.clear()
        (workspace / "memory" / "new.md").write_text("The bittern booms.\n", encoding="utf-8")
        assert done.wait(QUIET_SECONDS)
        found = memory.search("bittern", freshen=False)
        assert [hit.path for hit in found.hits] == ["memory/new.md"]
    assert not list((workspace.parent / "state").glob("memory/*.sqlite"))


def test_a_long_running_process_updates_qmd_when_it_starts(workspace: Path) -> None:
    with opened(workspace, update_onBoot=True) as memory:
        background = memory._backend.primary._background  # type: ignore[attr-defined]
        worker = background.worker()
        assert worker.wait_for(lambda: worker.runs > 0, QUIET_SECONDS)
        assert memory.status().files == 1
    with opened(workspace, update_onBoot=False, update_interval="0") as memory:
        assert not memory._backend.primary._background.is_begun  # type: ignore[attr-defined]


def test_the_interval_updates_qmd_by_itself(workspace: Path) -> None:
    with opened(workspace, update_interval="200ms") as memory:
        background = memory._backend.primary._background  # type: ignore[attr-defined]
        worker = background.worker()
        assert worker.wait_for(lambda: worker.runs > 1, QUIET_SECONDS)
        assert memory.status().files == 1


def test_updates_that_no_search_asked_for_are_not_repeated_within_the_debounce(
    workspace: Path,
) -> None:
    command, log = ran(workspace, "log")
    with opened(workspace, background=False, command=command, update_debounceMs=60_000) as memory:
        memory.sync()
        log.unlink()
        (workspace / "memory" / "new.md").write_text("The bittern booms.\n", encoding="utf-8")
        assert not memory.session_started("agent:main:main")
        assert not log.exists()
        assert len(memory.search("bittern").hits) == 1  # a search needs it, and gets it
        assert log.read_text().split()[0] == "update"
    with opened(workspace, background=False, command=command, update_debounceMs=0) as memory:
        (workspace / "memory" / "newer.md").write_text("The bittern sleeps.\n", encoding="utf-8")
        assert memory.session_started("agent:main:main")
        assert len(memory.search("bittern", freshen=False).hits) == 2


def test_embedding_runs_only_where_the_mode_needs_vectors_and_its_failure_is_reported(
    workspace: Path,
) -> None:
    log = workspace.parent / "log"
    script = f'echo "$1" >> "{log}"; [ "$1" = embed ] && sleep 1000; exec "$QMD" "$@"'
    command = wrapper(workspace.parent, script)
    with opened(workspace, background=False, command=command) as memory:
        memory.sync()
    assert "embed" not in log.read_text().split()
    slow = {"searchMode": "vsearch", "update_embedTimeoutMs": 300}
    with opened(workspace, background=False, command=command, **slow) as memory:
        degraded = memory.sync().degraded
        assert degraded is not None and "`qmd embed` took longer than 0.3 s" in degraded.reason
        memory.sync()  # not again at once
    assert log.read_text().split().count("embed") == 1
    off = {"searchMode": "vsearch", "update_embedInterval": "0"}
    with opened(workspace, background=False, command=command, **off) as memory:
        assert memory.sync().degraded is None


def test_a_slow_update_ends_at_its_time_limit(workspace: Path) -> None:
    command = wrapper(workspace.parent, '[ "$1" = update ] && sleep 1000; exec "$QMD" "$@"')
    quick = {"command": command, "update_updateTimeoutMs": 5000}
    with opened(workspace, background=False, **quick) as memory:
        degraded = memory.sync().degraded
        assert degraded is not None and "`qmd update` took longer than" in degraded.reason
        assert memory.search("heron").fallback_from == "qmd"


def test_a_slow_command_about_collections_ends_at_its_time_limit(workspace: Path) -> None:
    command = wrapper(workspace.parent, '[ "$1" = collection ] && sleep 1000; exec "$QMD" "$@"')
    with opened(
        workspace, background=False, command=command, update_commandTimeoutMs=300
    ) as memory:
        degraded = memory.sync().degraded
        assert degraded is not None and "took longer than 0.3 s" in degraded.reason


def test_two_memories_of_one_workspace_update_qmd_at_once(workspace: Path) -> None:
    with opened(workspace, background=False) as one, opened(workspace, background=False) as two:
        reports = [one.sync, two.sync]
        threads = [threading.Thread(target=sync) for sync in reports]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for memory in (one, two):
            found = memory.search("heron")
            assert len(found.hits) == 1 and found.fallback_from == ""


def test_the_first_search_can_wait_until_the_index_is_complete(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.backends.qmd.backend.FIRST_SECONDS", 0.001)
    with opened(workspace, background=False, update_waitForBootSync=False) as memory:
        assert memory.search("heron").fallback_from == "qmd"
    with opened(workspace, background=False, update_waitForBootSync=True) as memory:
        assert memory.search("heron").fallback_from == ""


def test_questions_are_made_from_the_notes_although_qmd_answers(workspace: Path) -> None:
    fact = "The heron nests by the old pier and comes back in March of every year."
    (workspace / "MEMORY.md").write_text(f"{fact}\n", encoding="utf-8")
    with ChatServer() as server, opened(workspace, background=False) as memory:
        said = {"question": "When does the heron come back?", "quote": "comes back in March"}
        server.script([say(json.dumps(said))])
        model = choose_completer(f"scripted@{server.openai_url}", {})
        (question,) = memory.make_questions(1, completer=model)
    assert question["path"].startswith("MEMORY.md")


def test_the_builtin_index_is_not_verified_while_qmd_answers(workspace: Path) -> None:
    message = r"memory\.backend is qmd"
    with opened(workspace, background=False) as memory, pytest.raises(ConfigError, match=message):
        memory.verify()


def test_prompts_of_a_long_running_process_start_qmd_once(workspace: Path) -> None:
    command, log = ran(workspace, "calls")
    with opened(workspace, background=False, command=command) as memory:
        for _ in range(3):
            assert "provider qmd" in memory.prompt("agent:main:main").text
    assert log.read_text().split() == ["--version"]
