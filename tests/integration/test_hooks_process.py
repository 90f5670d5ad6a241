"""`clawmark hook` as hosts run it: real processes, transcripts of Claude Code and Codex, and things
that go wrong.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from commands import CLAWMARK, HANG_SECONDS, Place

from clawmark.agent.prompt.recall import parse_block

HOSTS = ("claude-code", "codex")
DAY = "2026-03-04"
KEY = "ghp_" + "0123456789abcdefghij" + "ABCDEFGHIJKLMNOP"


def line_of(host: str, speaker: str, text: str, minute: int) -> str:
    time = f"{DAY}T10:{minute:02}:00.000Z"
    if host == "codex":
        kind = "input_text" if speaker == "user" else "output_text"
        payload = {"type": "message", "role": speaker, "content": [{"type": kind, "text": text}]}
        return json.dumps({"timestamp": time, "type": "response_item", "payload": payload})
    message = {"role": speaker, "content": [{"type": "text", "text": text}]}
    return json.dumps(
        {
            "type": speaker,
            "timestamp": time,
            "uuid": f"u{minute}",
            "sessionId": "s1",
            "message": message,
        }
    )


def transcript(host: str, folder: Path, talk: list[tuple[str, str]], first: int = 0) -> Path:
    """A transcript with the noise that hosts write; a later call appends to the same file."""
    file = folder / f"{host}.jsonl"
    head = (
        {"type": "session_meta", "payload": {"id": "s1"}}
        if host == "codex"
        else {"type": "summary", "summary": "x"}
    )
    lines = [] if file.exists() else [json.dumps(head)]
    lines += [line_of(host, *said, minute) for minute, said in enumerate(talk, first)]
    with file.open("a", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")
    return file


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    for folder in (made.home, made.workspace / "memory"):
        folder.mkdir(parents=True)
    (made.workspace / "MEMORY.md").write_text(
        "# Facts\n\n- Billing runs on PostgreSQL, because of row locks.\n"
    )
    return made


def fire(
    place: Place,
    host: str,
    event: str,
    fields: object = None,
    *more: str,
    env: dict[str, str] | None = None,
) -> Any:
    """What a hook answers; it must end with 0 and one JSON object, whatever happens."""
    ran = subprocess.run(
        [*CLAWMARK, "hook", host, event, *more],
        input=fields if isinstance(fields, bytes) else json.dumps(fields or {}).encode(),
        env=place.environment(env),
        capture_output=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert ran.returncode == 0
    assert ran.stderr.count(b"\n") <= 1 and b"Traceback" not in ran.stderr
    answer = json.loads(ran.stdout)
    assert isinstance(answer, dict)
    return answer, ran.stderr.decode()


def context_of(answer: Any, event: str) -> str:
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == event
    assert set(answer) == {"hookSpecificOutput"} and set(output) == {
        "hookEventName",
        "additionalContext",
    }
    return str(output["additionalContext"])


def notes(place: Place) -> list[str]:
    return [
        path.read_text(encoding="utf-8")
        for path in sorted((place.workspace / "memory").glob("*-*-*-*.md"))
    ]


@pytest.mark.parametrize("host", HOSTS)
def test_a_session_begins_with_what_is_known(place: Place, host: str) -> None:
    answer, err = fire(place, host, "SessionStart", {"session_id": "s1", "source": "startup"})
    text = context_of(answer, "SessionStart")
    assert "row locks" in text and len(text) < 10_000 and err == ""
    assert not place.state.exists() or not list(place.state.rglob("*.sqlite")), (
        "the index is not even opened"
    )


@pytest.mark.parametrize("host", HOSTS)
def test_a_message_recalls_what_is_written_about_it(place: Place, host: str) -> None:
    answer, _ = fire(
        place, host, "UserPromptSubmit", {"prompt": "Which database does billing run on?"}
    )
    (item,) = parse_block(context_of(answer, "UserPromptSubmit"))
    assert "row locks" in item.text and item.citation == "MEMORY.md#L1-L3"
    (place.workspace / "memory" / f"{DAY}.md").write_text(
        f"# {DAY}\n\n- Mallory owns the sitemap generator.\n"
    )
    answer, _ = fire(place, host, "UserPromptSubmit", {"prompt": "who owns the sitemap generator?"})
    assert "Mallory" in context_of(answer, "UserPromptSubmit"), "a note made since is found"
    answer, _ = fire(
        place, host, "UserPromptSubmit", {"prompt": "please tidy up the imports in this module"}
    )
    assert answer == {}


def test_a_recall_takes_no_vectors_away(place: Place) -> None:
    """Whatever embeds by default here: a hook indexes for its own sake and leaves the other vectors
    where they are.
    """

    def spaces() -> list[str]:
        return [
            json.dumps(space["identity"])
            for space in place.run("status", "--json").json()["spaces"]
        ]

    assert place.run("index").code == 0
    before = spaces()
    (place.workspace / "memory" / f"{DAY}.md").write_text("- Mallory owns the sitemap generator.\n")
    answer, _ = fire(
        place, "codex", "UserPromptSubmit", {"prompt": "who owns the sitemap generator?"}
    )
    assert "Mallory" in context_of(answer, "UserPromptSubmit")
    assert spaces() == before != []


def test_a_recall_asks_no_service(place: Place) -> None:
    """The configured provider is a service that is not there: a hook must not even try it."""
    config = place.folder / "clawmark.json"
    remote = '{ provider: "openai", remote: { baseUrl: "http://127.0.0.1:9/v1", apiKey: "k" } }'
    config.write_text(f"{{ agents: {{ defaults: {{ memorySearch: {remote} }} }} }}")
    answer, err = fire(
        place,
        "codex",
        "UserPromptSubmit",
        {"prompt": "which database does billing run on?"},
        "--config",
        str(config),
    )
    assert "row locks" in context_of(answer, "UserPromptSubmit") and err == ""


@pytest.mark.parametrize("host", HOSTS)
def test_each_word_is_noted_once_before_a_compaction_and_at_the_end(
    place: Place, host: str
) -> None:
    talk = [
        ("user", "We picked PostgreSQL for billing."),
        ("assistant", "Looking."),
        ("assistant", "Migrated."),
    ]
    fields = {"session_id": "s1", "transcript_path": str(transcript(host, place.folder, talk))}
    for _ in range(2):
        assert fire(place, host, "PreCompact", {**fields, "trigger": "auto"}) == ({}, "")
    (first,) = notes(place)
    assert "We picked PostgreSQL" in first and "Migrated." in first and "Looking." not in first
    assert f"**Source**: {host}, flush" in first and "**Session ID**: s1" in first
    transcript(host, place.folder, [("user", f"The token is {KEY}."), ("assistant", "Ok.")], 9)
    for _ in range(2):
        assert fire(place, host, "SessionEnd", {**fields, "reason": "other"}) == ({}, "")
    first_again, second = sorted(notes(place), key=lambda text: "exit" in text)
    assert first_again == first
    assert (
        f"{host}, exit" in second
        and "PostgreSQL" not in second
        and KEY not in second
        and "> Ok." in second
    )


def test_a_transcript_without_dates_is_noted_next_to_notes_without_dates(place: Place) -> None:
    place.write("memory/projects.md", "A note of no day.\n")
    file = place.home / "undated.jsonl"
    talk = (("user", "The parser must accept tabs."), ("assistant", "Tabs are accepted now."))
    file.write_text(
        "".join(
            json.dumps({"type": who, "message": {"role": who, "content": text}}) + "\n"
            for who, text in talk
        )
    )
    fields = {"session_id": "s1", "transcript_path": str(file)}
    assert fire(place, "claude-code", "SessionEnd", fields) == ({}, "")
    assert fire(place, "claude-code", "SessionEnd", fields) == ({}, ""), (
        "it is known how far the note goes"
    )
    (note,) = place.workspace.glob("memory/*-*.md")
    assert "Tabs are accepted now." in note.read_text()
    missing = {"session_id": "s2", "transcript_path": str(file.with_name("gone.jsonl"))}
    assert fire(place, "claude-code", "SessionEnd", missing) == ({}, "")


def test_hooks_that_run_at_once_leave_one_note(place: Place) -> None:
    """Codex runs the hooks of the user and of the project side by side."""
    file = transcript(
        "codex", place.folder, [("user", "We picked PostgreSQL for billing."), ("assistant", "Ok.")]
    )
    fields = {"session_id": "s1", "transcript_path": str(file)}
    with ThreadPoolExecutor(3) as pool:
        assert (
            list(pool.map(lambda _: fire(place, "codex", "SessionEnd", fields), range(3)))
            == [({}, "")] * 3
        )
    assert len(notes(place)) == 1


@pytest.mark.parametrize("host", HOSTS)
def test_a_session_without_messages_leaves_nothing(place: Place, host: str) -> None:
    file = transcript(host, place.folder, [("assistant", "Hello?")])
    for path in (str(file), str(place.folder / "no-such.jsonl"), str(place.workspace), "", None):
        assert fire(place, host, "SessionEnd", {"session_id": "s1", "transcript_path": path}) == (
            {},
            "",
        )
    assert notes(place) == []


def test_recalled_text_is_not_noted_as_something_new(place: Place) -> None:
    answer, _ = fire(
        place, "claude-code", "UserPromptSubmit", {"prompt": "which database does billing run on?"}
    )
    recalled = context_of(answer, "UserPromptSubmit")
    talk = [("user", f"Deploy on Friday.\n{recalled}"), ("assistant", "Ok.")]
    file = transcript("claude-code", place.folder, talk)
    fire(place, "claude-code", "SessionEnd", {"session_id": "s1", "transcript_path": str(file)})
    (note,) = notes(place)
    assert "Deploy on Friday." in note and "row locks" not in note


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"])
def test_a_hook_inside_a_hook_answers_nothing(place: Place, event: str) -> None:
    fields = {"prompt": "which database does billing run on?"}
    assert fire(place, "codex", event, fields, env={"CLAWMARK_HOOK": "1"}) == ({}, "")
    assert notes(place) == []


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (("claude-code", "SessionStart"), b"not json"),
        (("claude-code", "SessionStart"), b"[1]"),
        (("claude-code", "SessionStart"), b"\xff\xfe\x00"),
        (("claude-code", "NoSuchEvent"), b"{}"),
        (("emacs", "SessionStart"), b"{}"),
        (("claude-code", "SessionStart", "--flag-of-a-later-version"), b"{}"),
        (("claude-code", "SessionStart", "--workspace", "/no/such/folder"), b"{}"),
        (("claude-code", "SessionStart", "--config", "/no/such/file"), b"{}"),
        (("claude-code", "UserPromptSubmit", "--items", "many"), b"{}"),
    ],
)
def test_every_failure_is_one_line_and_an_empty_answer(
    place: Place, words: tuple[str, ...], given: bytes
) -> None:
    answer, err = fire(place, words[0], words[1], given, *words[2:])
    assert answer == {} and err.startswith("clawmark: ")


def test_a_damaged_index_and_a_read_only_state_stop_no_host(place: Place) -> None:
    fire(place, "codex", "UserPromptSubmit", {"prompt": "which database does billing run on?"})
    (index,) = place.state.rglob("*.sqlite")
    index.write_bytes(b"damaged" * 1_000)
    answer, _ = fire(
        place, "codex", "UserPromptSubmit", {"prompt": "which database does billing run on?"}
    )
    assert answer == {} or "row locks" in context_of(answer, "UserPromptSubmit")
    index.unlink()
    index.mkdir()
    assert (
        fire(place, "codex", "UserPromptSubmit", {"prompt": "which database does billing run on?"})[
            0
        ]
        == {}
    )


def test_the_answer_is_json_in_a_plain_locale(place: Place) -> None:
    (place.workspace / "MEMORY.md").write_text("# Grüße\n\n- 世界 \u2028 🎉\n", encoding="utf-8")
    answer, _ = fire(place, "claude-code", "SessionStart", env={"LC_ALL": "C", "PYTHONUTF8": "0"})
    assert "世界" in context_of(answer, "SessionStart")


@pytest.mark.skipif(os.name != "posix", reason="only there can a pipe be waited for")
def test_a_host_that_never_closes_its_end_is_answered(place: Place) -> None:
    command = [*CLAWMARK, "hook", "claude-code", "SessionStart"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=place.environment(), text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write('{"session_id": "s1"}')
        process.stdin.flush()
        assert "row locks" in process.stdout.read()
        process.send_signal(signal.SIGTERM)
        process.stdin.close()


def test_a_hook_loads_nothing_heavy(place: Place) -> None:
    program = (
        "import sys; from clawmark.cli import main; main(['hook', "
        "'codex', 'SessionStart']); print(*sys.modules)"
    )
    ran = subprocess.run(
        [CLAWMARK[0], "-c", program],
        input="{}",
        env=place.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert (
        loaded
        & {
            "asyncio",
            "mcp",
            "numpy",
            "http.client",
            "threading",
            "dataclasses",
            "clawmark.engine.sync.run",
        }
        == set()
    )


@pytest.mark.parametrize("host", HOSTS)
def test_what_install_registers_is_what_the_host_can_run(place: Place, host: str) -> None:
    """Install for real, take the commands out of the host's file as the host does, and run each in
    a shell.
    """
    done = place.run("install", host, "--json")
    assert done.code == 0 and len(done.json()["changes"]) == (3 if host == "claude-code" else 2)
    assert place.run("install", host, "--json").json()["changes"] == []
    if host == "codex":
        import tomllib

        hooks = tomllib.loads((place.home / ".codex" / "config.toml").read_text())["hooks"]
    else:
        hooks = json.loads((place.home / ".claude" / "settings.json").read_text())["hooks"]
    for event in ("SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"):
        ((group,),) = ([one["hooks"] for one in hooks[event]],)
        ran = subprocess.run(
            group[0]["command"],
            shell=True,
            cwd=place.home,
            input=json.dumps({"prompt": "which database does billing run on?"}).encode(),
            env=place.environment({"CLAWMARK_WORKSPACE": None, "CLAWMARK_STATE_DIR": None}),
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, b"")
        assert bool(json.loads(ran.stdout)) is (event in ("SessionStart", "UserPromptSubmit"))
    assert place.run("install", host, "--remove").code == 0
    assert [path for path in place.home.rglob("*") if path.is_file()] == []


def test_the_server_that_install_registers_answers(place: Place) -> None:
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    assert place.run("install", "cursor").code == 0
    server = json.loads((place.home / ".cursor" / "mcp.json").read_text())["mcpServers"]["clawmark"]
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    with subprocess.Popen(
        [server["command"], *server["args"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=place.home,
        env=place.environment(
            {"CLAWMARK_WORKSPACE": None, "CLAWMARK_STATE_DIR": None, "PYTHONWARNINGS": None}
        ),
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "clawmark"
        process.stdin.close()


def test_a_dry_run_shows_the_diff_without_other_peoples_secrets_and_changes_nothing(
    place: Place,
) -> None:
    file = place.home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(
        '{"mcpServers": {"x": {"env": {"GITHUB_TOKEN": '
        '"ghp_abcdefghijklmnopqrstuvwxyz0123456789"}}}}'
    )
    before = file.read_bytes()
    shown = place.run("install", "cursor", "--dry-run")
    assert shown.code == 0 and '"clawmark"' in shown.out and "ghp_abcdefghijklmnop" not in shown.out
    assert file.read_bytes() == before and [path.name for path in place.home.rglob("*")] == [
        ".cursor",
        "mcp.json",
    ]


@pytest.mark.parametrize(
    "words", [["emacs"], ["cursor", "--project", "--user"], [], ["openclaw", "--project"]]
)
def test_a_wrong_command_line_is_a_usage_error(place: Place, words: list[str]) -> None:
    assert place.run("install", *words).code == 2


def injected(answer: Any) -> str:
    """The text that a hook puts before the model."""
    told, _ = answer
    return str(told.get("hookSpecificOutput", {}).get("additionalContext", ""))


@pytest.mark.parametrize("host", HOSTS)
def test_text_that_the_session_start_shows_is_not_recalled_again(place: Place, host: str) -> None:
    today = place.run("remember", "The quagga lives behind the old lighthouse", "--json").json()[
        "path"
    ]
    place.write("memory/2026-02-01.md", "# 2026-02-01\n\n- The dodo nests in the harbour crane.\n")
    fields = {"session_id": "s1", "transcript_path": str(place.folder / "not-there-yet.jsonl")}
    shown = injected(fire(place, host, "SessionStart", fields))
    assert "quagga" in shown and today in shown and "PostgreSQL" in shown and "dodo" not in shown
    for prompt in ("Where does the quagga live?", "Which database does billing run on?"):
        assert injected(fire(place, host, "UserPromptSubmit", {**fields, "prompt": prompt})) == ""
    assert "dodo" in injected(
        fire(place, host, "UserPromptSubmit", {**fields, "prompt": "Where does the dodo nest?"})
    )


@pytest.mark.parametrize("host", HOSTS)
def test_file_that_changed_after_the_session_began_is_recalled(place: Place, host: str) -> None:
    file = transcript(
        host, place.folder, [("user", "Good morning."), ("assistant", "Good morning.")]
    )
    place.run("remember", "The quagga lives behind the old lighthouse")
    fields = {
        "session_id": "s1",
        "transcript_path": str(file),
        "prompt": "Where does the quagga live?",
    }
    assert "quagga" in injected(fire(place, host, "UserPromptSubmit", fields))


def test_part_of_a_file_that_did_not_fit_into_the_session_start_is_recalled(place: Place) -> None:
    filler = "".join(
        f"- Filler line {number} about nothing in particular.\n" for number in range(2_000)
    )
    middle = len(filler) // 2
    place.write(
        "MEMORY.md",
        f"# Facts\n\n{filler[:middle]}\n- The quagga lives behind the old "
        f"lighthouse.\n\n{filler[middle:]}",
    )
    assert "quagga" not in injected(fire(place, "claude-code", "SessionStart"))
    fields = {"session_id": "s1", "prompt": "Where does the quagga live?"}
    assert "quagga" in injected(fire(place, "claude-code", "UserPromptSubmit", fields))


@pytest.mark.parametrize(
    ("host", "words"), [("gemini", "a folder that it trusts"), ("codex", "trust the hooks")]
)
def test_install_says_what_has_to_be_trusted(place: Place, host: str, words: str) -> None:
    assert words in place.run("install", host).out
