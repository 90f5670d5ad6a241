"""Whatever happens to QMD, the built-in backend answers within the same call and says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from commands import Place
from qmds import qmd_command, wrapper

from clawmark import Memory
from clawmark.model.values import Found

NOTE = "# 2026-02-24\n\nThe heron nests by the old pier.\n"
QUESTION = "where does the heron nest?"
STOP_AT_SEARCH = 'case "$1" in search|query|vsearch) {0};; *) exec "$QMD" "$@";; esac'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.home.mkdir()
    made.state.mkdir()
    made.write("memory/2026-02-24.md", NOTE)
    return made


def opened(place: Place, command: str, **more: Any) -> Memory:
    settings = {f"memory.qmd.{name.replace('_', '.')}": value for name, value in more.items()}
    overrides = {
        "memory.backend": "qmd",
        "memory.qmd.command": command,
        "memory.qmd.limits.timeoutMs": 30_000,
        "memorySearch.provider": "none",
    }
    return Memory.open(
        place.workspace,
        state_dir=place.state,
        overrides=overrides | settings,
        background=False,
    )


def replaced(found: Found, *words: str) -> bool:
    """Whether the built-in backend has answered, for a reason with these words."""
    assert [hit.path for hit in found.hits] == ["memory/2026-02-24.md"]
    assert found.fallback_from == "qmd" and found.degraded is not None
    missing = [word for word in words if word not in found.degraded.reason]
    assert not missing, found.degraded.reason
    return True


def test_qmd_killed_in_the_middle_of_a_query_still_gives_a_labelled_answer(place: Place) -> None:
    ready, go = place.folder / "ready", place.folder / "go"
    os.mkfifo(ready)
    os.mkfifo(go)
    # The real QMD starts when the test lets it, and is killed then, with its launcher.
    script = STOP_AT_SEARCH.format(f'echo $$ > "{ready}"; read x < "{go}"; exec "$QMD" "$@"')
    with opened(place, wrapper(place.folder, script)) as memory:
        memory.sync()
        answers: list[Found] = []
        asking = threading.Thread(target=lambda: answers.append(memory.search(QUESTION)))
        asking.start()
        pid = int(ready.read_text())
        go.write_text("\n")
        os.kill(pid, signal.SIGKILL)
        asking.join()
        assert replaced(answers[0], "was ended by SIGKILL")
        status = memory.status()
        assert status.backend == "builtin" and status.fallback is not None
        assert status.fallback.from_ == "qmd" and "SIGKILL" in status.fallback.reason


def test_a_query_whose_inner_node_process_is_killed_gives_a_labelled_answer(place: Place) -> None:
    """`qmd` is a launcher: it survives the process that searches."""
    preload = place.folder / "kill.cjs"
    preload.write_text(
        "if (process.argv[1].endsWith('qmd.js')) process.kill(process.pid, 'SIGKILL');\n",
        encoding="utf-8",
    )
    script = STOP_AT_SEARCH.format(f'NODE_OPTIONS="--require {preload}" exec "$QMD" "$@"')
    with opened(place, wrapper(place.folder, script)) as memory:
        assert replaced(memory.search(QUESTION), "`qmd query`")


def test_without_qmd_the_reason_and_the_command_to_install_it_are_given(place: Place) -> None:
    with opened(place, "no-such-qmd") as memory:
        found = memory.search(QUESTION)
        assert replaced(found, "The command no-such-qmd was not found.")
        assert found.degraded is not None
        assert found.degraded.fix.startswith("npm install -g @tobilu/qmd@")


def test_without_node_the_reason_is_given(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    command = qmd_command()
    empty = place.folder / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    with opened(place, command) as memory:
        assert replaced(memory.search(QUESTION), "the command node was not found")


def test_a_damaged_qmd_index_is_reported_and_a_forced_sync_repairs_it(place: Place) -> None:
    with opened(place, qmd_command()) as memory:
        memory.sync()
        folder = place.state / "qmd" / memory.places.agent_id / "xdg-cache" / "qmd"
        for file in folder.iterdir():
            file.write_bytes(os.urandom(9000))
        found = memory.search(QUESTION)
        assert replaced(found, "file is not a database")
        assert found.degraded is not None and "--force" in found.degraded.fix
        memory.sync(force=True)
        assert memory.search(QUESTION).fallback_from == ""


def test_a_qmd_that_hangs_is_killed_at_the_time_limit(place: Place) -> None:
    left = place.folder / "left"
    script = STOP_AT_SEARCH.format(f'sleep 1000 & echo $! > "{left}"; wait')
    with opened(place, wrapper(place.folder, script), limits_timeoutMs=700) as memory:
        memory.sync()
        assert replaced(memory.search(QUESTION), "took longer than 0.7 s")
    # What the command started is gone as well: it was in the same process group.
    assert not _is_alive(int(left.read_text()))


def test_a_real_query_that_waits_for_a_model_is_killed_at_the_time_limit(place: Place) -> None:
    # Without a proxy that answers, the download of the model never ends.
    with opened(place, qmd_command(), searchMode="query", limits_timeoutMs=3000) as memory:
        memory.sync(instant_only=True)
        assert replaced(memory.search(QUESTION), "`qmd query`")


def test_output_without_end_is_refused(place: Place) -> None:
    script = STOP_AT_SEARCH.format("while :; do echo '[[[[[[[[[[[[[[[[[[[[[[[['; done")
    with opened(place, wrapper(place.folder, script)) as memory:
        assert replaced(memory.search(QUESTION), "printed more than 200,000 bytes")


@pytest.mark.parametrize(
    "output",
    ["", "hello", '{"results": []}', '["a"]', '[{"file": 1}]', '[{"file": "qmd://x/y"}]', "[[]"],
)
def test_output_that_is_not_an_answer_is_refused(place: Place, output: str) -> None:
    answer = place.folder / "answer"
    answer.write_text(output, encoding="utf-8")
    script = STOP_AT_SEARCH.format(f'cat "{answer}"')
    with opened(place, wrapper(place.folder, script)) as memory:
        assert replaced(memory.search(QUESTION), "printed")


def test_noise_around_the_answer_is_ignored(place: Place) -> None:
    script = STOP_AT_SEARCH.format(
        'echo "[node-llama-cpp] loading"; echo "Warning: [x"; "$QMD" "$@"; echo "[done]"'
    )
    with opened(place, wrapper(place.folder, script)) as memory:
        found = memory.search(QUESTION)
        assert found.fallback_from == "" and len(found.hits) == 1


def test_vectors_that_were_never_made_are_a_failure_and_not_an_empty_answer(place: Place) -> None:
    with opened(place, qmd_command(), searchMode="vsearch") as memory:
        memory.sync(instant_only=True)
        assert replaced(memory.search(QUESTION), "QMD has no vectors yet")


def test_an_update_that_fails_leaves_the_old_index_and_says_so(place: Place) -> None:
    mark = place.folder / "fail"
    script = f'if [ -e "{mark}" ] && [ "$1" = update ]; then exit 7; fi; exec "$QMD" "$@"'
    with opened(place, wrapper(place.folder, script)) as memory:
        memory.sync()
        mark.touch()
        place.write("memory/new.md", "Nothing about birds.\n")
        found = memory.search(QUESTION)
        assert found.fallback_from == "" and len(found.hits) == 1 and found.due_files == 1
        assert found.degraded is not None and "exit code 7" in found.degraded.reason


def test_an_update_killed_in_the_middle_is_finished_by_the_next_one(place: Place) -> None:
    mark = place.folder / "kill"
    script = (
        f'if [ "$1" = update ] && rm "{mark}" 2>/dev/null; then kill -9 $$; fi; exec "$QMD" "$@"'
    )
    with opened(place, wrapper(place.folder, script)) as memory:
        memory.sync()
        mark.touch()
        place.write("memory/new.md", "The bittern booms.\n")
        assert "SIGKILL" in str(memory.search("bittern").degraded)
        assert [hit.path for hit in memory.search("bittern").hits] == ["memory/new.md"]


def test_keys_in_the_environment_are_not_passed_to_qmd(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    seen = place.folder / "seen"
    script = f'env > "{seen}"; exec "$QMD" "$@"'
    with opened(place, wrapper(place.folder, script)) as memory:
        memory.sync()
    assert "not-a-real-key" not in seen.read_text() and "INDEX_PATH=" in seen.read_text()


def test_the_commands_show_the_fallback(place: Place) -> None:
    tree = {
        "memory": {"backend": "qmd", "qmd": {"command": "no-such-qmd"}},
        "memorySearch": {"provider": "none"},
    }
    (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
    reason = "The command no-such-qmd was not found."
    body = place.run("search", "heron", "--json").json()
    assert body["fallback"] == {"from": "qmd", "reason": reason} and body["results"]
    sentence = f"clawmark: The built-in backend answers instead of qmd. {reason} npm install"
    assert place.run("search", "heron").err.startswith(sentence)
    status = place.run("status", "--json").json()
    assert status["backend"] == "builtin"
    assert status["fallback"]["from"] == "qmd" and status["fallback"]["reason"] == reason
    assert reason in place.run("status").out
    ran = place.run("doctor")
    assert ran.code == 1 and reason in ran.out and "npm install -g @tobilu/qmd@" in ran.out
    assert reason in place.run("index").err
    with Memory.open(place.workspace, state_dir=place.state, background=False) as memory:
        payload = memory.tools()[0].call({"query": "heron"})
    assert payload["fallback"] == {"from": "qmd", "reason": reason}


def _is_alive(pid: int) -> bool:
    ran = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return ran.returncode == 0 and not ran.stdout.startswith("Z")
