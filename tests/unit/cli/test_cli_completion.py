"""Which words complete a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark.agent.review.hunks import appended_hunk
from clawmark.cli import VERBS, main
from clawmark.cli.completion import as_bash, complete, split_line
from clawmark.memory import Memory
from clawmark.model.provenance import Origin


def words(*typed: str) -> list[str]:
    return [word for word, _ in complete(typed).words]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAWMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("CLAWMARK_WORKSPACE", str(tmp_path / "agent"))
    for path in ("MEMORY.md", "memory/2024-05-01.md", "memory/projects/ferry.md"):
        file = tmp_path / "agent" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("- x\n", encoding="utf-8")
    return tmp_path / "agent"


def test_the_first_word_is_a_command_with_its_summary() -> None:
    assert words("") == [*VERBS, "help"]
    assert complete(["rec"]).words == (("recent", VERBS["recent"][1]),)
    assert words("help", "rec") == ["recent"]
    assert words("nothing", "") == []


def test_flags_are_those_of_the_command_and_not_offered_twice() -> None:
    assert words("search", "--max") == ["--max-results"]
    assert words("ls", "-t", "--t") == []
    assert "--pattern" in words("add", "--pattern", "a", "--")
    assert words("search", "--", "--max") == []
    assert {"--workspace", "-w", "--version"} <= set(words("-"))


def test_choices_are_completed_as_words_and_as_values_of_flags() -> None:
    assert words("config", "un") == ["unset"]
    assert words("completion", "") == ["bash", "zsh", "fish"]
    assert words("import", "claude") == ["claude", "claude-code"]


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        (("add", ""), "folders"),
        (("-w", ""), "folders"),
        (("search", "--workspace=x"), "folders"),
        (("search", "-c", ""), "files"),
        (("search", "--batch", ""), "files"),
        (("search", ""), ""),
    ],
)
def test_folders_and_files_are_left_to_the_shell(typed: tuple[str, ...], kind: str) -> None:
    assert complete(typed).files == kind


def test_memory_files_are_completed_one_folder_at_a_time(workspace: Path) -> None:
    assert words("get", "") == ["MEMORY.md", "memory/"]
    assert words("edit", "memory/") == ["memory/2024-05-01.md", "memory/projects/"]
    assert words("ls", "MEMORY.md", "memory/p") == ["memory/projects/"]
    assert words("remember", "--to", "M") == ["MEMORY.md"]
    assert words("remember", "--to=M") == ["--to=MEMORY.md"]


def test_files_are_completed_before_a_version(workspace: Path) -> None:
    assert words("restore", "M") == ["MEMORY.md"]
    assert words("diff", "memory/p") == ["memory/projects/"]


def test_what_can_be_forgotten_and_reviewed_is_completed(workspace: Path, tmp_path: Path) -> None:
    imported = workspace / "memory" / "imports" / "chatgpt"
    imported.mkdir(parents=True)
    (imported / "a.md").write_text("- x\n", encoding="utf-8")
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "a.md").write_text("- x\n", encoding="utf-8")
    with Memory.open() as memory:
        memory.add_source(str(tmp_path / "vault"), name="vault")
        memory.conversation("agent:main:main").on_user("Hello.")
        session = memory.sessions()[0].path
        hunk = appended_hunk("MEMORY.md", "- The heron is back.", "Said twice.")
        origin = Origin(actor="agent", kind="curation", trust="agent")
        memory.review.add([hunk], title="Curate", origin=origin, base={"MEMORY.md": "0" * 64})
    assert words("forget", "--source", "") == ["chatgpt", "vault"]
    assert words("forget", "--session", "") == [session]
    assert words("review", "accept", "") == ["p1"]
    assert words("review", "") == ["list", "show", "accept", "reject", "edit"]


def test_the_workspace_on_the_line_is_used(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "MEMORY.md").write_text("- x\n", encoding="utf-8")
    for flags in (("-w", f"{tmp_path}/other"), (f"-w{tmp_path}/other",)):
        assert words(*flags, "get", "") == ["MEMORY.md"]
        assert words("get", *flags, "") == ["MEMORY.md"]
    assert words("-w", f"{tmp_path}/none", "get", "") == []


def test_settings_and_their_values_are_completed() -> None:
    assert words("config", "set", "memory.cit") == ["memory.citations"]
    assert words("config", "set", "memory.citations", "") == ["auto", "on", "off"]
    assert words("config", "set", "memorySearch.enabled", "t") == ["true"]
    assert words("config", "list", "") == []
    assert words("config", "get", "memory.citations", "") == []


def test_the_commands_of_openclaw_take_their_own_flags() -> None:
    assert words("memory", "s") == ["status", "search"]
    assert words("memory", "search", "--max") == ["--max-results"]


def test_sources_and_sessions_are_completed(workspace: Path) -> None:
    assert words("search", "--source", "") == ["memory", "sessions"]
    assert words("sources", "") == ["remove"]
    assert words("sessions", "sh") == ["show"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ([""], "")),
        ("clawmark ", (["clawmark", ""], "")),
        ("clawmark ge", (["clawmark", "ge"], "")),
        ("clawmark get 'memory/a b", (["clawmark", "get", "memory/a b"], "'")),
        ('clawmark get "memory/a b', (["clawmark", "get", "memory/a b"], '"')),
        ("clawmark get memory/a\\ b", (["clawmark", "get", "memory/a b"], "")),
        ("clawmark get memory/a\\ ", (["clawmark", "get", "memory/a "], "")),
        ("clawmark get a\\", (["clawmark", "get", "a"], "")),
    ],
)
def test_a_line_of_bash_is_split_like_bash_does(line: str, expected: object) -> None:
    assert split_line(line) == expected


@pytest.mark.parametrize(
    ("word", "current", "quote", "expected"),
    [
        ("memory/a b.md", "memory/a", "", "memory/a\\ b.md"),
        ("memory/a b.md", "memory/a", "'", "memory/a b.md"),
        ("notes:ferry.md", "notes:f", "", "ferry.md"),
        ("--to=MEMORY.md", "--to=M", "", "MEMORY.md"),
        ("memory/$(x);y.md", "", "", "memory/\\$\\(x\\)\\;y.md"),
        ("memory/żółw.md", "", "", "memory/żółw.md"),
    ],
)
def test_a_word_is_escaped_for_bash(word: str, current: str, quote: str, expected: str) -> None:
    assert as_bash(word, current, quote) == expected


def test_names_that_a_terminal_would_interpret_are_not_offered(workspace: Path) -> None:
    (workspace / "memory" / "x\x1b]0;y.md").write_text("- x\n", encoding="utf-8")
    assert words("get", "memory/x") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_clawmark_for_the_words(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    assert f"completion {shell} -- " in capsys.readouterr().out
